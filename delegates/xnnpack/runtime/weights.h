// The constants of an instruction, and what the library packed of them.
#pragma once
#include <xnnpack.h>

#include <atomic>

#include "taper/delegates/xnnpack/runtime/pack_store.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/precision.h"

namespace taper::delegates::xnnpack {

/// Packed weights only become more until the program is closed, so threads read them without locks.
class Weights {
 public:
  /// nullptr: there is no memory. `part` outlives them, and `shapes` are those of the constants.
  static Weights* create(PackStore& store, const Part& part, const Shape* shapes,
                         const void* const* addresses);
  /// No engine uses it any more.
  static void destroy(PackStore& store, Weights* weights);

  /// Whether these constants lie at these addresses.
  bool are_at(const void* const* addresses) const;
  /// Whether the constants have these sizes. The library does not look at them again.
  bool have_sizes(const Shape* constants) const;
  const void* const* addresses() const {
    return reinterpret_cast<const void* const*>(sizes() + count_);
  }

  Weights* next = nullptr;  ///< of the same blob

 private:
  friend class PackedWeights;
  struct Packed;

  static size_t bytes_of(index_t constants) {
    return sizeof(Weights) + static_cast<size_t>(constants) * (sizeof(Shape) + sizeof(void*));
  }
  // of the constants, behind the object
  Shape* sizes() { return reinterpret_cast<Shape*>(this + 1); }
  const Shape* sizes() const { return reinterpret_cast<const Shape*>(this + 1); }

  // A constant at this address was packed.
  void tell_packed(Memory& memory, const void* elements) const;

  const Part* part_ = nullptr;
  index_t count_ = 0;
  std::atomic<Packed*> packed_{nullptr};
};

/// What the library asks when it makes the operators of one engine. It asks in the same order for
/// every engine of a part. So an entry is found by its turn, and by the key of the library, which
/// alone does not tell all operators apart.
class PackedWeights {
 public:
  PackedWeights(PackStore& store, Weights& weights);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;

  /// The library begins to make operators of this precision. Weights in f16 are others than in f32.
  void begin(Precision precision);
  xnn_weights_cache_t provider() { return &provider_; }

 private:
  using Key = xnn_weights_cache_look_up_key;

  size_t find(const Key& key, uint32_t turn) const;
  size_t look_up(const Key& key);
  void* reserve(size_t bytes);
  size_t insert(const Key& key, void* elements);
  void drop_reserved();

  PackStore& store_;
  Weights& weights_;
  PackStore::Block* reserved_ = nullptr;  ///< the library writes there
  void* entry_ = nullptr;                 ///< for what says so
  uint32_t turn_ = 0;
  xnn_weights_cache_provider provider_{};
};

}  // namespace taper::delegates::xnnpack
