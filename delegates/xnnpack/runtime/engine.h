// The library's operators for one instance.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/grouped_product.h"
#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/delegates/xnnpack/runtime/node_observer.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/precision.h"
#include "taper/delegates/xnnpack/runtime/threads.h"
#include "taper/delegates/xnnpack/runtime/weights.h"
#include "taper/delegates/xnnpack/runtime/workspace.h"

namespace taper::delegates::xnnpack {

class Engine {
 public:
  /// Packs the weights that are not packed yet. They outlive the engine. nullptr: the memory does
  /// not suffice, or the library refuses the part. It computes in f32 if the part or the processor
  /// has no f16. `is_timed`: `tell` knows how long nodes take.
  static Engine* create(PackStore& store, const Part& part, const Shape* shapes, Weights& weights,
                        Workspace& workspace, const Threads* threads, Precision precision,
                        bool is_timed);
  static void destroy(Memory& memory, Engine* engine);

  /// Whether it was made from these weights, for these threads.
  bool fits(const Weights& weights, const Threads* threads, bool is_timed) const {
    return &weights_ == &weights && pool_.threads == threads && is_timed_ == is_timed;
  }
  /// Whether a reshape failed. The library then takes the memory for planned that it did not get:
  /// the engine can only be destroyed.
  bool is_broken() const { return is_broken_; }

  bool is_timed() const { return is_timed_; }

  Workspace& workspace() const { return workspace_; }

  /// Takes the sizes of the operands. False: the library refuses them, or has other result sizes,
  /// or a constant has another size than it had.
  bool reshape(const Part& part, const Shape* shapes);
  bool set_addresses(const xnn_external_value* values, index_t count) {
    return xnn_setup_runtime_v2(runtime_, static_cast<size_t>(count), values) == xnn_status_success;
  }
  /// nullptr: the part is a graph. Otherwise neither `set_addresses` nor `run` is called.
  GroupedProduct* grouped_product() const { return grouped_product_; }
  bool run() { return xnn_invoke_runtime(runtime_) == xnn_status_success; }
  /// Tells what the last run took, if the engine is timed.
  void tell(const Part& part, NodeObserver& observer) const;

  Engine* next = nullptr;  ///< of the same blob, while nobody uses it

 private:
  Engine(PackStore& store, Weights& weights, Workspace& workspace, const Threads* threads,
         bool is_timed);
  ~Engine();
  bool build(const Part& part, const Shape* shapes, Precision precision);
  bool take_sizes(const Part& part, const Shape* shapes);

  Memory& memory_;
  Weights& weights_;
  Workspace& workspace_;
  PackedWeights packed_;
  pthreadpool pool_;
  bool is_timed_;
  Precision precision_ = Precision::f32;
  bool is_broken_ = false;
  xnn_runtime_t runtime_ = nullptr;
  GroupedProduct* grouped_product_ = nullptr;  // in the place of the runtime
};

}  // namespace taper::delegates::xnnpack
