// A program in memory, run once as an application runs it.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/runtime/core/dense_copy.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::tests {

/// Memory at a multiple of 64 as a firmware may have it: floats in it are NaN, integers -1.
class UsedMemory {
 public:
  explicit UsedMemory(size_t size)
      : size_((size + 63) / 64 * 64),
        bytes_(static_cast<std::byte*>(std::aligned_alloc(64, size_ + 64)), &std::free) {
    std::memset(bytes_.get(), 0xff, size_);
  }
  operator Span<std::byte>() const { return {bytes_.get(), static_cast<index_t>(size_)}; }

 private:
  size_t size_;
  std::unique_ptr<std::byte, decltype(&std::free)> bytes_;
};

inline eager::Tensor output_of(const Method& method, index_t i) {
  const TensorRef t = method.output(i);
  if (t.shape != nullptr) {
    std::vector<std::byte> bytes(static_cast<size_t>(t.size_bytes()));
    copy_dense(t, bytes.data());
    return eager::Tensor::from_bytes(bytes.data(), bytes.size(), t.dtype,
                                     {t.shape->sizes, t.shape->sizes + t.shape->rank});
  }
  int64_t integer = 0;
  double real = 0;
  if (method.output_number(i, integer) == Error::ok)
    return eager::Tensor::from_bytes(&integer, sizeof integer, DType::i64, {});
  if (method.output_number(i, real) != Error::ok) throw ExportError("output_number");
  return eager::Tensor::from_bytes(&real, sizeof real, DType::f64, {});
}

/// The results of the method `forward`, which runs in memory that nobody cleared. Throws
/// ExportError with the message of the runtime.
inline std::vector<eager::Tensor> execute(std::span<const std::byte> program,
                                          const std::vector<eager::Tensor>& inputs,
                                          const Threads* threads = nullptr) {
  std::string why;
  ModuleOptions options;
  options.message = &why, options.threads = threads;
  options.pack_weights = PackWeights::always;  // the same bits, in each test that compares them
  Result<Module> module = Module::load(
      Span<const std::byte>(program.data(), static_cast<index_t>(program.size())), options);
  if (!module) throw ExportError("load: " + why);

  ErrorInfo info;
  const Result<size_t> tables = module->program().method_metadata_bytes("forward", &info);
  if (!tables.ok()) throw ExportError("execute: " + describe(info));
  const UsedMemory workspace(tables.value());
  const Result<MethodRequirements> needed =
      module->program().requirements("forward", workspace, &info, threads);
  if (!needed.ok()) throw ExportError("execute: " + describe(info));
  const UsedMemory memory(needed.value().total());
  Result<Method> method = Method::create(module->session(), "forward", MethodMemory(memory), &info);
  if (!method.ok()) throw ExportError("execute: " + describe(info));

  for (size_t i = 0; i < inputs.size(); ++i)
    if (method->set_input(static_cast<index_t>(i), inputs[i].ref()) != Error::ok)
      throw ExportError("execute: " + describe(method->last_error()));
  if (method->execute() != Error::ok)
    throw ExportError("execute: " + describe(method->last_error()));
  std::vector<eager::Tensor> tensors;
  for (index_t i = 0; i < method->output_count(); ++i) tensors.push_back(output_of(*method, i));
  return tensors;
}

}  // namespace taper::tests
