// A program in memory, run once as an application runs it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/error.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::tests {

/// The results of the method `forward`. Throws ExportError with the message of the runtime.
inline std::vector<eager::Tensor> execute(std::span<const std::byte> program,
                                          const std::vector<eager::Tensor>& inputs,
                                          const Threads* threads = nullptr) {
  std::string why;
  ModuleOptions options;
  options.message = &why, options.threads = threads;
  Result<Module> module = Module::load(
      Span<const std::byte>(program.data(), static_cast<index_t>(program.size())), options);
  if (!module) throw ExportError("load: " + why);
  std::vector<Input> refs;
  for (const eager::Tensor& t : inputs) refs.emplace_back(t.ref());
  Result<std::vector<OwnedTensor>> results = module->execute("forward", refs);
  if (!results) throw ExportError("execute: " + module->message());
  std::vector<eager::Tensor> tensors;
  for (const OwnedTensor& t : results.value())
    tensors.push_back(eager::Tensor::from_bytes(t.bytes.data(), t.bytes.size(), t.dtype,
                                                {t.sizes.begin(), t.sizes.end()}));
  return tensors;
}

}  // namespace taper::tests
