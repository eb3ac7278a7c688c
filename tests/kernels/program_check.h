// A function as eager runs it and as the program that is made of it.
#pragma once
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {

/// The method `forward` of a program, in memory.
class InProgram {
 public:
  InProgram(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
            const std::vector<InputSpec>& inputs) {
    Exporter exporter;
    exporter.method("forward", function, inputs);
    bytes_ = exporter.write(ExportOptions{.exact = true});
  }
  /// Throws ExportError with the message of the runtime.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    std::string why;
    ModuleOptions options;
    options.message = &why;
    Result<Module> module = Module::load(
        Span<const std::byte>(bytes_.data(), static_cast<index_t>(bytes_.size())), options);
    if (!module) throw ExportError("load: " + why);
    std::vector<Input> refs;
    for (const Tensor& t : inputs) refs.emplace_back(t.ref());
    Result<std::vector<OwnedTensor>> results = module->execute("forward", refs);
    if (!results) throw ExportError("execute: " + module->message());
    std::vector<Tensor> tensors;
    for (const OwnedTensor& t : results.value())
      tensors.push_back(Tensor::from_bytes(t.bytes.data(), t.bytes.size(), t.dtype,
                                           Ints(t.sizes.begin(), t.sizes.end())));
    return tensors;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Expects eager's bits of the program, for each of the calls.
inline void expect_same_bits_in_program(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<InputSpec>& inputs, const std::vector<std::vector<Tensor>>& calls) {
  const InProgram program(function, inputs);
  for (const std::vector<Tensor>& call : calls) {
    const std::vector<Tensor> got = program.run(call), want = function(call);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], want[i]);
  }
}

}  // namespace taper::eager
