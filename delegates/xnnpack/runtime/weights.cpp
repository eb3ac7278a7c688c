#include "taper/delegates/xnnpack/runtime/weights.h"

#include <cstring>
#include <new>
#include <utility>

namespace taper::delegates::xnnpack {

// What the library packed for one operator. Other weights may share the block.
struct Weights::Packed {
  Packed* next;
  PackStore::Block* block;
  xnn_weights_cache_look_up_key key;
  uint32_t turn;
};

Weights* Weights::create(PackStore& store, const Part& part, const Shape* shapes,
                         const void* const* addresses) {
  const index_t count = part.constants();
  void* place = allocate(store.memory(), bytes_of(count));
  if (place == nullptr) return nullptr;
  Weights* weights = new (place) Weights();
  weights->part_ = &part, weights->count_ = count;
  auto* kept = const_cast<const void**>(weights->addresses());
  for (index_t i = 0; i < count; ++i) weights->sizes()[i] = shapes[i], kept[i] = addresses[i];
  return weights;
}

void Weights::destroy(PackStore& store, Weights* weights) {
  Packed* packed = weights->packed_;
  while (packed != nullptr) {
    Packed* next = packed->next;
    store.leave(packed->block);
    store.memory().release(packed, sizeof(Packed));
    packed = next;
  }
  store.memory().release(weights, bytes_of(weights->count_));
}

void Weights::tell_packed(Memory& memory, const void* elements) const {
  index_t i = 0;
  while (i < count_ && addresses()[i] != elements) ++i;
  if (i == count_) return;
  const index_t count = sizes()[i].numel(), value = part_->operands() + i;
  const bool is_half_byte =
      part_->quantized(value) != nullptr && part_->quantized(value)->bits() == 4;
  memory.was_packed(
      elements,
      static_cast<size_t>(is_half_byte ? count / 2 : count * size_bytes(part_->dtype(value))));
}

bool Weights::are_at(const void* const* others) const {
  return std::memcmp(addresses(), others, static_cast<size_t>(count_) * sizeof(void*)) == 0;
}

bool Weights::have_sizes(const Shape* constants) const {
  for (index_t i = 0; i < count_; ++i)
    if (sizes()[i].rank != constants[i].rank || !sizes()[i].same_sizes(constants[i])) return false;
  return true;
}

PackedWeights::PackedWeights(PackStore& store, Weights& weights)
    : store_(store), weights_(weights) {
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

PackedWeights::~PackedWeights() {
  drop_reserved();
  if (entry_ != nullptr) store_.memory().release(entry_, sizeof(Weights::Packed));
}

void PackedWeights::begin(Precision precision) {
  constexpr uint32_t first_of_f16 = 1u << 31;
  turn_ = precision == Precision::f16 ? first_of_f16 : 0;
}

// Of this turn.
size_t PackedWeights::find(const Key& key, uint32_t turn) const {
  for (Weights::Packed* p = weights_.packed_.load(std::memory_order_acquire); p != nullptr;
       p = p->next)
    if (p->turn == turn && p->key.seed == key.seed && p->key.kernel == key.kernel &&
        p->key.bias == key.bias)
      return reinterpret_cast<size_t>(p->block->elements());
  return SIZE_MAX;
}

size_t PackedWeights::look_up(const Key& key) { return find(key, turn_++); }

void* PackedWeights::reserve(size_t bytes) {
  drop_reserved();  // of an operator that could not be made
  if (entry_ == nullptr) entry_ = allocate(store_.memory(), sizeof(Weights::Packed));
  if (entry_ != nullptr) reserved_ = store_.reserve(bytes);
  return reserved_ == nullptr ? nullptr : reserved_->place();
}

// If another session has packed the same meanwhile, both entries stay, and share the block. The
// library also inserts nothing, for some operators whose weights it has just found.
size_t PackedWeights::insert(const Key& key, void* elements) {
  if (elements == nullptr) return find(key, turn_ - 1);
  if (reserved_ == nullptr || reserved_->elements() != elements) return SIZE_MAX;
  PackStore::Block* block = store_.share(reserved_);
  reserved_ = nullptr;
  weights_.tell_packed(store_.memory(), key.kernel);
  auto* mine = new (std::exchange(entry_, nullptr)) Weights::Packed{nullptr, block, key, turn_ - 1};
  mine->next = weights_.packed_.load(std::memory_order_relaxed);
  while (!weights_.packed_.compare_exchange_weak(mine->next, mine, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
  }
  return reinterpret_cast<size_t>(block->elements());
}

void PackedWeights::drop_reserved() {
  if (reserved_ != nullptr) store_.drop(reserved_);
  reserved_ = nullptr;
}

}  // namespace taper::delegates::xnnpack
