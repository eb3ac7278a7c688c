// A function as eager runs it and as the program that is made of it.
#pragma once
#include "taper/exporter/exporter.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/execute.h"

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
    return tests::execute(bytes_, inputs);
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
