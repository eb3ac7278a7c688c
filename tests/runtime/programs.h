// Programs that several tests use.
#pragma once
#include <memory>

#include "program_file.h"
#include "taper/runtime/runtime.h"
#include "test_kernels.h"

namespace taper::test {

/// forward(x: f32[batch, 4]) -> f32[batch]: sum_rows(x + x + x), batch in 1..8. The second sum
/// writes in place.
ProgramFile sums_program();

/// A loaded program with memory of exactly the size that `requirements` tells.
struct Loaded {
  explicit Loaded(const ProgramFile& file, const LoadOptions& options = {})
      : Loaded(file.bytes(), options) {}
  explicit Loaded(AlignedBytes bytes, const LoadOptions& options = {});

  Error error() const { return info.error; }
  /// A method of the session, in memory of its own.
  Result<Method> method(const char* name = "forward");

  AlignedBytes file, metadata, session_memory;
  ErrorInfo info;
  std::unique_ptr<Result<Program>> program;
  std::unique_ptr<Result<Session>> session;
  std::vector<std::unique_ptr<AlignedBytes>> method_memory;
};

/// A dense tensor of host memory.
template <class T>
struct Dense {
  Dense(std::vector<index_t> sizes, std::vector<T> elements)
      : elements(std::move(elements)), shape(Shape::dense(Span<const index_t>(sizes))) {}
  operator TensorRef() { return {elements.data(), &shape, dtypes_of<T>::dtype}; }
  std::vector<T> elements;
  Shape shape;
};

/// The elements of a dense tensor.
template <class T = float>
std::vector<T> elements(const TensorRef& t) {
  const T* p = static_cast<const T*>(t.data);
  return std::vector<T>(p, p + t.shape->numel());
}

}  // namespace taper::test
