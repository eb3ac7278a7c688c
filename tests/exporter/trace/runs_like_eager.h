// The same function in eager, as a graph and as a program.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/emit/loaded.h"

namespace taper {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

inline Tensor number(int64_t n) { return Tensor::from<int64_t>({n}, {}); }

inline std::string text(const Tensors& tensors) {
  std::string s;
  for (const Tensor& t : tensors) s += t.to_string() + "\n";
  return s;
}

/// Traces the function, and compares what the program gives, what the graph gives when it is
/// interpreted, read back from its text and traced again, with what eager gives.
inline void expect_runs_like_eager(const Function& function, const std::vector<InputSpec>& specs,
                                   const std::vector<Tensors>& calls) {
  Exporter exporter;
  exporter.method("forward", function, specs);
  ir::Graph& graph = exporter.graph("forward");
  ir::verify(graph);
  const std::string as_text = ir::to_string(graph);
  const auto read_back = ir::parse(as_text, ir::payloads_of(graph));
  ir::verify(*read_back);
  EXPECT_EQ(ir::to_string(*read_back), as_text);
  ir::Interpreter interpreter(*read_back);
  const auto traced_again = trace(
      "again", [&](const Tensors& in) { return interpreter.run(in).outputs; }, specs);
  ir::verify(*traced_again);
  emit::Loaded program(exporter.write(ExportOptions{}), "forward");
  ir::verify(graph);
  for (const Tensors& in : calls) {
    const std::string want = text(function(in));
    EXPECT_EQ(text(program.run(in)), want) << "for\n" << text(in) << as_text;
    EXPECT_EQ(text(interpreter.run(in).outputs), want);
    EXPECT_EQ(text(ir::Interpreter(*traced_again).run(in).outputs), want);
  }
}
inline void expect_runs_like_eager(const Function& function, const std::vector<Tensors>& calls) {
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < calls[0].size(); ++i)
    specs.push_back(input("in" + std::to_string(i), calls[0][i].sizes(), calls[0][i].dtype()));
  expect_runs_like_eager(function, specs, calls);
}

}  // namespace taper
