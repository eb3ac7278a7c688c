// The library's objects for one instance: packed weights, memory for results, operators.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/threads.h"

namespace taper::delegates::xnnpack {

class Engine {
 public:
  /// Packs the constants. nullptr: the memory does not suffice, or the library refuses the part.
  static Engine* create(Memory& memory, const Part& part, const Shape* shapes,
                        const void* const* constants, const Threads* threads);
  static void destroy(Memory& memory, Engine* engine);

  /// Whether it was made from constants at these addresses, for these threads.
  bool fits(const void* const* constants, const Threads* threads) const;
  /// Whether it was made for constants of these sizes. The library does not look at them again.
  bool has_sizes(const Shape* constants) const;

  /// Takes the sizes of the operands. False: the library refuses them, or has other result sizes,
  /// or a constant has another size than it had.
  bool reshape(const Part& part, const Shape* shapes);
  bool set_addresses(const xnn_external_value* values, index_t count) {
    return xnn_setup_runtime_v2(runtime_, static_cast<size_t>(count), values) == xnn_status_success;
  }
  bool run() { return xnn_invoke_runtime(runtime_) == xnn_status_success; }

 private:
  static size_t bytes_of(const Part& part) {
    return sizeof(Engine) + static_cast<size_t>(part.constants()) * (sizeof(Shape) + sizeof(void*));
  }
  // of the constants, behind the object
  Shape* sizes() { return reinterpret_cast<Shape*>(this + 1); }
  const Shape* sizes() const { return reinterpret_cast<const Shape*>(this + 1); }
  const void** addresses() { return reinterpret_cast<const void**>(sizes() + constants_); }
  const void* const* addresses() const {
    return reinterpret_cast<const void* const*>(sizes() + constants_);
  }
  bool build(const Part& part, const Shape* shapes);

  index_t constants_ = 0;
  size_t bytes_ = 0;
  pthreadpool pool_{nullptr};
  xnn_workspace_t workspace_ = nullptr;
  xnn_runtime_t runtime_ = nullptr;
};

}  // namespace taper::delegates::xnnpack
