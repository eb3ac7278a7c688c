#include "taper/exporter/ir/interpreter.h"

#include <gmock/gmock.h>

#include "taper/exporter/ir/parser.h"
#include "taper/tests/support/throw_message.h"

namespace taper::ir {
namespace {

using eager::Tensor;

TEST(interpreter, runs_a_graph_with_symbols_and_states) {
  const auto graph = parse(
      "graph step\nsymbol n in [1, 8]\ninput \"x\" = %x: f32[n, 2]\nstate \"count\" = %count: "
      "f32[2] buffer zeros\n"
      "%total: f32[2] = sum.dim_IntList(%x, [0], false, none)\n%next: f32[2] = add.Tensor(%count, "
      "%total, 1)\n"
      "%y: f32[n, 2] = add.Tensor(%x, %next, 1)\n"
      "output \"y\" = %y\noutput \"elements\" = n*2\nwrite \"count\" = %next\nbind n = extent 0 of "
      "input 0\n");
  Interpreter interpreter(*graph);
  const auto result = interpreter.run({Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2})});
  EXPECT_EQ(result.outputs[0].to_vector<float>(), (std::vector<float>{10, 14, 12, 16, 14, 18}));
  EXPECT_EQ(result.numbers[1].value(), 6);
  EXPECT_EQ(result.written_states.at("count").to_vector<float>(), (std::vector<float>{9, 12}));

  interpreter.set_state("count", result.written_states.at("count"));
  EXPECT_EQ(interpreter.run({Tensor::from<float>({1, 1}, {1, 2})})
                .written_states.at("count")
                .to_vector<float>(),
            (std::vector<float>{10, 13}));
}

TEST(interpreter, lets_an_observer_see_every_value) {
  const auto graph = parse(
      "graph f\ninput \"x\" = %x: f32[2]\n%a: f32[2] = neg(%x)\n%b: f32[2] = relu(%a)\noutput "
      "\"y\" = %b\n");
  Interpreter interpreter(*graph);
  std::vector<std::string> seen;
  interpreter.observe([&](const Value& v, const Tensor&) { seen.push_back(v.name); });
  interpreter.run({Tensor::from<float>({1, -1}, {2})});
  EXPECT_EQ(seen, (std::vector<std::string>{"x", "a", "b"}));
}

TEST(interpreter, refuses_sizes_that_the_graph_does_not_accept) {
  const auto graph = parse(
      "graph f\nsymbol n in [2, 8]\ninput \"x\" = %x: f32[n, 2]\n%y: f32[n, 2] = relu(%x)\noutput "
      "\"y\" = %y\n"
      "bind n = extent 0 of input 0\ncheck n <= 4 \"more than four do not fit\"\n");
  Interpreter interpreter(*graph);
  EXPECT_EXPORT_ERROR(interpreter.run({Tensor::empty({1, 2})}), "n is 1, outside [2, 8]");
  EXPECT_EXPORT_ERROR(interpreter.run({Tensor::empty({5, 2})}), "more than four do not fit");
  EXPECT_THROW(interpreter.run({Tensor::empty({3, 3})}), ExportError);
  EXPECT_THROW(interpreter.run({}), ExportError);
}

TEST(interpreter, refuses_inputs_of_another_dtype_or_rank) {
  const auto graph = parse("graph f\ninput \"x\" = %x: f32[2]\noutput \"y\" = %x\n");
  Interpreter interpreter(*graph);
  for (const Tensor& x : {Tensor::empty({2}, DType::i64), Tensor::empty({2, 1})})
    EXPECT_EXPORT_ERROR(interpreter.run({x}), "input x must be f32[2]");
}

}  // namespace
}  // namespace taper::ir
