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

/// A dense tensor in an io buffer of its own, above those that `m` has on the host: an input or an
/// output.
uint32_t io_tensor(MethodTables& m, std::vector<uint32_t> extents, DType dtype = DType::f32);

/// A loaded program with memory of exactly the size that `requirements` tells.
struct Loaded {
  explicit Loaded(const ProgramFile& file, const LoadOptions& options = {}, KernelSet set = kernels)
      : Loaded(file.bytes(), options, set) {}
  explicit Loaded(AlignedBytes bytes, const LoadOptions& options = {}, KernelSet set = kernels);

  Error error() const { return info.error; }
  /// A method of the session, in memory of its own.
  Result<Method> method(const char* name = "forward");

  AlignedBytes file, metadata, session_memory;
  ErrorInfo info;
  std::unique_ptr<Result<Program>> program;
  std::unique_ptr<Result<Session>> session;
  std::vector<std::unique_ptr<AlignedBytes>> method_memory;
};

/// Why the method `forward` of a program cannot be created.
Error create_error(const ProgramFile& file);

/// Declares the method `forward` of a `Loaded`, or ends the test.
#define ASSERT_LOADED(name, loaded)                                                        \
  Result<Method> name##_result = (loaded).method();                                        \
  ASSERT_TRUE(name##_result.ok()) << name_of(name##_result.error()) << ": "                \
                                  << ((loaded).info.message ? (loaded).info.message : ""); \
  [[maybe_unused]] Method name = name##_result.value()
/// `loaded` is a Loaded of the arguments behind its name, and `name` its method.
#define ASSERT_LOADS(name, loaded, ...) \
  Loaded loaded(__VA_ARGS__);           \
  ASSERT_LOADED(name, loaded)

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
