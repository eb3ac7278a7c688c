#include "taper/delegates/xnnpack/runtime/weights.h"

#include <cstring>
#include <new>

namespace taper::delegates::xnnpack {

// Before the elements that the library packed.
struct alignas(64) Weights::Packed {
  Packed* next;
  size_t bytes;  // with this head
  xnn_weights_cache_look_up_key key;
  uint32_t turn;

  void* elements() { return this + 1; }
};

namespace {

// Kernels of the library read whole vectors, so they read behind the end.
constexpr size_t bytes_behind = 128;

}  // namespace

Weights* Weights::create(Memory& memory, const Part& part, const Shape* shapes,
                         const void* const* addresses) {
  const index_t count = part.constants();
  void* place = memory.allocate(bytes_of(count));
  if (place == nullptr) return nullptr;
  Weights* weights = new (place) Weights();
  weights->count_ = count;
  auto* kept = const_cast<const void**>(weights->addresses());
  for (index_t i = 0; i < count; ++i) weights->sizes()[i] = shapes[i], kept[i] = addresses[i];
  return weights;
}

void Weights::destroy(Memory& memory, Weights* weights) {
  Packed* packed = weights->packed_;
  while (packed != nullptr) {
    Packed* next = packed->next;
    memory.release(packed, packed->bytes);
    packed = next;
  }
  memory.release(weights, bytes_of(weights->count_));
}

bool Weights::are_at(const void* const* others) const {
  return std::memcmp(addresses(), others, static_cast<size_t>(count_) * sizeof(void*)) == 0;
}

bool Weights::have_sizes(const Shape* constants) const {
  for (index_t i = 0; i < count_; ++i)
    if (sizes()[i].rank != constants[i].rank || !sizes()[i].same_sizes(constants[i])) return false;
  return true;
}

PackedWeights::PackedWeights(Memory& memory, Weights& weights)
    : memory_(memory), weights_(weights) {
  provider_.context = this;
  provider_.look_up = [](void* context, const Key* key) {
    return static_cast<PackedWeights*>(context)->look_up(*key);
  };
  provider_.reserve_space = [](void* context, size_t bytes) {
    return static_cast<PackedWeights*>(context)->reserve(bytes);
  };
  provider_.look_up_or_insert = [](void* context, const Key* key, void* elements, size_t) {
    return static_cast<PackedWeights*>(context)->insert(*key, elements);
  };
  provider_.is_finalized = [](void*) { return true; };
  provider_.offset_to_addr = [](void*, size_t address) { return reinterpret_cast<void*>(address); };
  provider_.delete_cache = [](void*) { return xnn_status_success; };
}

PackedWeights::~PackedWeights() { drop_reserved(); }

size_t PackedWeights::look_up(const Key& key) {
  const uint32_t turn = turn_++;
  for (Weights::Packed* p = weights_.packed_.load(std::memory_order_acquire); p != nullptr;
       p = p->next)
    if (p->turn == turn && p->key.seed == key.seed && p->key.kernel == key.kernel &&
        p->key.bias == key.bias)
      return reinterpret_cast<size_t>(p->elements());
  return SIZE_MAX;
}

void* PackedWeights::reserve(size_t bytes) {
  drop_reserved();  // of an operator that could not be made
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t all = sizeof(Weights::Packed) + bytes + bytes_behind;
  void* place = memory_.allocate(all);
  if (place == nullptr) return nullptr;
  reserved_ = new (place) Weights::Packed{nullptr, all, {}, 0};
  return reserved_->elements();
}

// If another session has packed the same meanwhile, both copies stay.
size_t PackedWeights::insert(const Key& key, void* elements) {
  if (reserved_ == nullptr || reserved_->elements() != elements) return SIZE_MAX;
  Weights::Packed* mine = reserved_;
  reserved_ = nullptr;
  mine->key = key, mine->turn = turn_ - 1;
  mine->next = weights_.packed_.load(std::memory_order_relaxed);
  while (!weights_.packed_.compare_exchange_weak(mine->next, mine, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
  }
  return reinterpret_cast<size_t>(elements);
}

void PackedWeights::drop_reserved() {
  if (reserved_ != nullptr) memory_.release(reserved_, reserved_->bytes);
  reserved_ = nullptr;
}

}  // namespace taper::delegates::xnnpack
