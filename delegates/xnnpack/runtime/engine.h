// The library's objects for one instance: memory for results, operators.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/threads.h"
#include "taper/delegates/xnnpack/runtime/weights.h"

namespace taper::delegates::xnnpack {

class Engine {
 public:
  /// Packs the weights that are not packed yet. They outlive the engine. nullptr: the memory does
  /// not suffice, or the library refuses the part.
  static Engine* create(PackStore& store, const Part& part, const Shape* shapes, Weights& weights,
                        const Threads* threads);
  static void destroy(Memory& memory, Engine* engine);

  /// Whether it was made from these weights, for these threads.
  bool fits(const Weights& weights, const Threads* threads) const {
    return &weights_ == &weights && pool_.threads == threads;
  }

  /// Takes the sizes of the operands. False: the library refuses them, or has other result sizes,
  /// or a constant has another size than it had.
  bool reshape(const Part& part, const Shape* shapes);
  bool set_addresses(const xnn_external_value* values, index_t count) {
    return xnn_setup_runtime_v2(runtime_, static_cast<size_t>(count), values) == xnn_status_success;
  }
  bool run() { return xnn_invoke_runtime(runtime_) == xnn_status_success; }

 private:
  Engine(PackStore& store, Weights& weights, const Threads* threads)
      : weights_(weights), packed_(store, weights), pool_{threads} {}
  ~Engine();
  bool build(const Part& part, const Shape* shapes);

  Weights& weights_;
  PackedWeights packed_;
  pthreadpool pool_;
  xnn_workspace_t workspace_ = nullptr;
  xnn_runtime_t runtime_ = nullptr;
};

}  // namespace taper::delegates::xnnpack
