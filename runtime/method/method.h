#pragma once
#include <atomic>
#include <cstdint>

#include "taper/runtime/method/session.h"
#include "taper/runtime/profile/profiler.h"

namespace taper {

namespace internal {
struct MethodData;
}

/// The host memory of a method: one piece for everything, or a piece for each purpose, such as fast
/// RAM for activations and slow RAM for tables. An empty piece is taken from `metadata`. If all are
/// empty, everything is taken from the rest of the session's memory.
struct MethodMemory {
  Span<std::byte> metadata, activations, scratch, io;
  Span<const Span<std::byte>> device;  ///< element i: memory of space i + 1

  MethodMemory() = default;
  MethodMemory(Span<std::byte> everything) : metadata(everything) {}
};

/// Limits that stop `execute` early. A stopped method may be executed again. Its states are as the
/// last finished instruction left them.
struct Limits {
  uint64_t steps = UINT64_MAX;                ///< instructions
  const std::atomic<bool>* cancel = nullptr;  ///< looked at before each instruction
};

/// Describes an instruction, for profiles and reports.
struct InstructionInfo {
  const char* op = nullptr;        ///< "add.Tensor", the name of a backend, "copy", "bind", …
  const Kernel* kernel = nullptr;  ///< nullptr: not a kernel
  const char* source = nullptr;    ///< from the debug table, nullptr without one: "lenet.cpp:14"
  const char* module = nullptr;    ///< the same: "features.3.conv"
  Span<const Slot> arguments;      ///< arguments and results, with their current shapes
};

/// One method of a session, with its plan: the memory, the tables and the prepared kernels. One
/// thread at a time.
///
///   method.set_input(0, image, {1, 1, 28, 28});
///   method.execute();
///   argmax(method.output(0));
///
/// A Method is a handle on the memory given to `create`. This memory and the session must outlive
/// it, or `close`. A closed method whose memory is intact has no inputs, outputs and instructions,
/// and its calls return invalid_argument.
class Method {
 public:
  /// Builds the tables and prepares every instruction at the maximum of every symbol. So an
  /// instruction that cannot work fails here. `requirements` tells the memory. The memory for
  /// tensors and scratch is not touched: a page of it costs only when a call uses it. Inputs start
  /// with their largest shapes and without defined content. Errors: invalid_argument (no such
  /// method), out_of_memory, invalid_program, not_supported; `info` says where and why.
  static Result<Method> create(Session& session, const char* name, const MethodMemory& memory = {},
                               ErrorInfo* info = nullptr);

  /// Ends the method. Then you may free its memory, and the session has one open method less.
  /// Kernels and devices that hold something for the method are told. Call this before you free or
  /// reuse the memory, or if there are such kernels; otherwise you need not.
  ///
  /// Errors: invalid_argument if it is closed already; device_failed if work that waited failed (it
  /// is closed nonetheless).
  Error close();

  /// The method's name; nullptr: the method is closed.
  const char* name() const;
  index_t input_count() const;
  index_t output_count() const;
  /// The name of an input or output; nullptr: there is none at this index.
  const char* input_name(index_t i) const;
  const char* output_name(index_t i) const;
  /// The index of the input with this name; -1: there is none.
  index_t find_input(const char* name) const;
  index_t find_output(const char* name) const;

  /// Input `i` as it was last set. It lies in the method's memory: write there instead of calling
  /// `set_input` to save a copy. A number has no shape and no memory; nor has an input that does
  /// not exist.
  TensorRef input(index_t i) const;

  /// Copies a tensor with any strides. A new shape takes effect in `execute`. Errors:
  /// invalid_argument if the dtype, the rank or a fixed extent differs, or if a symbolic extent is
  /// out of its range.
  Error set_input(index_t i, const TensorRef& tensor);
  /// Copies a dense tensor of these sizes.
  template <class T, size_t rank>
  Error set_input(index_t i, const T* elements, const index_t (&sizes)[rank]) {
    static_assert(rank <= max_rank, "a tensor has at most 8 dimensions");
    const Shape shape = Shape::dense(sizes);
    return set_input(i, TensorRef{const_cast<T*>(elements), &shape, dtypes_of<T>::dtype});
  }
  /// Copies a dense array with as many elements as the input has. The input's sizes must be fixed:
  /// invalid_argument if one is symbolic.
  template <class T>
  Error set_input(index_t i, const T* elements) {
    return set_fixed_input(i, elements, dtypes_of<T>::dtype);
  }
  /// Gives the input another shape. Its content is undefined until you write it.
  Error resize_input(index_t i, Span<const index_t> sizes);
  /// Sets an input that is a number.
  Error set_number(index_t i, int64_t value);
  Error set_number(index_t i, double value);
  /// Uses the caller's memory without a copy, until the next `set_input` or `bind_input`. The
  /// memory must be dense, aligned to its elements, and have 64 readable bytes behind its end,
  /// because kernels may load them.
  Error bind_input(index_t i, const TensorRef& tensor);

  /// Runs the method once. With unchanged shapes it allocates nothing, reads no table of the file,
  /// looks nothing up and verifies nothing. Errors: invalid_argument (shapes that the program does
  /// not accept, data out of range), limit_reached, device_failed; see `last_error`.
  Error execute(const Limits& limits = {});

  /// Output `i` of the last `execute`; valid until the next one. It may have any strides. A number
  /// has no shape: see `output_number`. Nor has an output that does not exist.
  TensorRef output(index_t i) const;
  Error output_number(index_t i, int64_t& value) const;
  Error output_number(index_t i, double& value) const;

  /// Where and why the last call failed.
  const ErrorInfo& last_error() const;

  index_t instruction_count() const;
  /// Instruction `i`, below `instruction_count()`; another `i` gives an empty one.
  InstructionInfo instruction(index_t i) const;
  /// Records the time of each instruction from now on; nullptr stops that. Without a profiler it
  /// costs nothing.
  void set_profiler(Profiler* profiler);

 private:
  explicit Method(internal::MethodData* data) : data_(data) {}
  Error set_fixed_input(index_t i, const void* elements, DType dtype);
  internal::MethodData* data_;
};

}  // namespace taper
