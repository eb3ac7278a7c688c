#pragma once
#include <atomic>
#include <cstdint>

#include "taper/runtime/method/session.h"
#include "taper/runtime/profile/profiler.h"

namespace taper {

namespace internal {
struct MethodData;
}

/// The host memory of a method: one piece for everything, or a piece for each purpose (fast RAM for
/// activations, slow for tables). What is left empty is taken from `metadata`; without any,
/// everything from what the session's memory has left.
struct MethodMemory {
  Span<std::byte> metadata, activations, scratch, io;
  Span<const Span<std::byte>> device;  ///< element i: memory of space i + 1

  MethodMemory() = default;
  MethodMemory(Span<std::byte> everything) : metadata(everything) {}
};

/// When to stop early. A stopped method may be executed again; its states are as the last finished
/// instruction left them.
struct Limits {
  uint64_t steps = UINT64_MAX;                ///< instructions
  const std::atomic<bool>* cancel = nullptr;  ///< looked at before each instruction
};

/// What an instruction is, for profiles and reports.
struct InstructionInfo {
  const char* op = nullptr;        ///< "add.Tensor", or "copy", "bind", …
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
/// A handle on the memory given to `create`, which must outlive it, or `close`, as must the
/// session. Of a closed method as long as its memory is intact: there are no inputs, outputs and
/// instructions, and calls return invalid_argument.
class Method {
 public:
  /// Builds the tables and prepares every instruction at the maximum of every symbol: what cannot
  /// work fails here. `requirements` tells the memory. Of the memory for tensors and scratch
  /// nothing is touched: a page of it costs only when a call uses it. Inputs start with their
  /// largest shapes and without defined content.
  /// Errors: invalid_argument (no such method), out_of_memory, invalid_program, not_supported;
  /// `info` says where and why.
  static Result<Method> create(Session& session, const char* name, const MethodMemory& memory = {},
                               ErrorInfo* info = nullptr);

  /// Ends the method: afterwards its memory may go, and one less is open of the session. Kernels
  /// and devices that hold something for it are told. Only who frees or reuses memory, or has such
  /// kernels, needs to call it.
  ///
  /// Errors: invalid_argument if it is closed already; device_failed if work that waited failed (it
  /// is closed nonetheless).
  Error close();

  /// nullptr: the method is closed.
  const char* name() const;
  index_t input_count() const;
  index_t output_count() const;
  /// nullptr: there is no such input or output.
  const char* input_name(index_t i) const;
  const char* output_name(index_t i) const;
  /// -1: there is none of this name.
  index_t find_input(const char* name) const;
  index_t find_output(const char* name) const;

  /// Input `i` as it was last set. Its memory is the method's: writing there instead of calling
  /// `set_input` saves a copy. A number has no shape and no memory, nor has an input that is not
  /// there.
  TensorRef input(index_t i) const;

  /// Copies a tensor of any strides. A new shape takes effect in `execute`.
  /// Errors: invalid_argument if dtype, rank, a fixed extent, or the range of a symbolic one
  /// differs.
  Error set_input(index_t i, const TensorRef& tensor);
  /// Copies a dense tensor of these sizes.
  template <class T, size_t rank>
  Error set_input(index_t i, const T* elements, const index_t (&sizes)[rank]) {
    static_assert(rank <= max_rank, "a tensor has at most 8 dimensions");
    const Shape shape = Shape::dense(sizes);
    return set_input(i, TensorRef{const_cast<T*>(elements), &shape, dtypes_of<T>::dtype});
  }
  /// Copies as many elements as the input has, dense. Its sizes must be fixed: invalid_argument if
  /// one is symbolic.
  template <class T>
  Error set_input(index_t i, const T* elements) {
    return set_fixed_input(i, elements, dtypes_of<T>::dtype);
  }
  /// Gives the input another shape; its content is undefined until written.
  Error resize_input(index_t i, Span<const index_t> sizes);
  /// Gives a number.
  Error set_number(index_t i, int64_t value);
  Error set_number(index_t i, double value);
  /// Uses the caller's memory without a copy, until the next `set_input` or `bind_input`. Dense,
  /// aligned to its elements, and with 64 readable bytes behind its end: kernels may load them.
  Error bind_input(index_t i, const TensorRef& tensor);

  /// Runs the method once. With unchanged shapes it allocates nothing, reads no table of the file,
  /// looks nothing up and verifies nothing. Errors: invalid_argument (shapes that the program does
  /// not accept, data out of range), limit_reached, device_failed; see `last_error`.
  Error execute(const Limits& limits = {});

  /// Output `i` of the last `execute`; valid until the next one. May have any strides. A number has
  /// no shape: see `output_number`; nor has an output that is not there.
  TensorRef output(index_t i) const;
  Error output_number(index_t i, int64_t& value) const;
  Error output_number(index_t i, double& value) const;

  /// Where and why the last call failed.
  const ErrorInfo& last_error() const;

  index_t instruction_count() const;
  /// Of `instruction_count()`; another `i` gives an empty one.
  InstructionInfo instruction(index_t i) const;
  /// Records the time of each instruction from now on; nullptr: no more. Costs nothing while it is
  /// not set.
  void set_profiler(Profiler* profiler);

 private:
  explicit Method(internal::MethodData* data) : data_(data) {}
  Error set_fixed_input(index_t i, const void* elements, DType dtype);
  internal::MethodData* data_;
};

}  // namespace taper
