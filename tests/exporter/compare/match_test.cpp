// Which results belong together, and what a comparison says of them.
#include <gmock/gmock.h>

#include <sstream>

#include "taper/exporter/compare/compare.h"

namespace taper::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

io::Array number(float x) { return io::Array::of<float>({1}, std::span<const float>(&x, 1)); }

struct Place {
  std::string module, source;
};
Result result(const std::string& name, const std::string& op, const Place& place, float x = 1) {
  return {name, 0, op, "", place.module, place.source, number(x), false, false};
}

/// The names of the counterparts in `got`, "" for none.
std::vector<std::string> counterparts(const compare::Run& want, const compare::Run& got) {
  std::vector<std::string> names;
  for (const Result* r : match(want, got)) names.push_back(r == nullptr ? "" : r->name);
  return names;
}

compare::Run run_of(std::vector<Result> nodes) { return {"a file", std::move(nodes), {}, false}; }

TEST(match, pairs_names_whatever_the_order_and_operator) {
  const compare::Run want = run_of(
      {result("conv2d", "conv2d", {"a", "net.py:1"}), result("relu", "relu", {"a", "net.py:1"})});
  const compare::Run got = run_of({result("relu", "relu", {"a", "net.py:1"}),
                                   result("conv2d", "convolution", {"a", "net.py:1"})});
  EXPECT_THAT(counterparts(want, got), ElementsAre("conv2d", "relu"));
}

TEST(match, tells_equal_names_of_other_lines_and_modules_apart) {
  const compare::Run want = run_of({result("relu", "relu", {"a", "net.py:1"})});
  EXPECT_THAT(counterparts(want, run_of({result("relu", "relu", {"b", "net.py:1"})})),
              ElementsAre(""));
  EXPECT_THAT(counterparts(want, run_of({result("x", "add", {"a", "net.py:1"}),
                                         result("relu", "relu", {"a", "net.py:2"})})),
              ElementsAre(""));
}

TEST(match, keeps_names_where_lines_have_moved) {
  const compare::Run want = run_of({result("relu", "relu", {"a", "net.py:1"})});
  EXPECT_THAT(counterparts(want, run_of({result("relu", "relu", {"a", "net.py:7"})})),
              ElementsAre("relu"));
}

TEST(match, counts_results_of_a_loop) {
  const compare::Run want =
      run_of({result("x", "add", {"", "net.py:1"}), result("x", "add", {"", "net.py:1"})});
  const compare::Run got =
      run_of({result("x", "add", {"", "net.py:1"}), result("x", "add", {"", "net.py:1"})});
  const auto pairs = match(want, got);
  EXPECT_EQ(pairs[0], &got.nodes[0]);
  EXPECT_EQ(pairs[1], &got.nodes[1]);
}

TEST(match, pairs_operators_of_a_line_in_order) {
  const Place line{"a", "net.py:3"};
  const compare::Run want =
      run_of({result("mul", "mul.Tensor", line), result("mul_1", "mul.Tensor", line),
              result("add", "add.Tensor", line)});
  const compare::Run got = run_of({result("p", "mul.Scalar", line), result("q", "mul.Tensor", line),
                                   result("r", "add.Tensor", line)});
  EXPECT_THAT(counterparts(want, got), ElementsAre("p", "q", "r"));
}

TEST(match, pairs_the_last_result_of_a_line_with_what_became_of_it) {
  const Place line{"a", "net.py:3"};
  const compare::Run want =
      run_of({result("mul", "mul.Tensor", line), result("relu", "relu_", line)});
  EXPECT_THAT(counterparts(want, run_of({result("p", "taper::pointwise", line)})),
              ElementsAre("", "p"));
  EXPECT_THAT(counterparts(want, run_of({result("p", "convolution", line)})), ElementsAre("", ""));
}

TEST(match, leaves_results_of_other_sizes_alone) {
  const compare::Run want = run_of({result("x", "add", {"", "net.py:1"})});
  compare::Run got = want;
  got.nodes[0].value = io::Array::zeros(DType::f32, {2});
  EXPECT_THAT(counterparts(want, got), ElementsAre(""));
  got.by_name = true;  // of a recording it is worth saying
  EXPECT_THAT(counterparts(want, got), ElementsAre("x"));
}

TEST(match, pairs_a_folded_convolution_with_the_normalization_behind_it) {
  compare::Run want = run_of({result("conv2d", "conv2d", {"conv", "conv.py:1"}, 1),
                              result("batch_norm", "batch_norm", {"bn", "batchnorm.py:1"}, 2)});
  want.nodes[1].input = "conv2d";
  compare::Run got = run_of({result("conv2d", "convolution", {"conv", "conv.py:1"}, 2)});
  got.nodes[0].is_folded = true;
  const auto pairs = match(want, got);
  EXPECT_EQ(pairs[0], nullptr);
  EXPECT_EQ(pairs[1], &got.nodes[0]);
  EXPECT_EQ(match(got, want)[0], &want.nodes[1]);
}

TEST(match, finds_what_a_recording_names_beside_nodes_without_a_line) {
  const compare::Run want = run_of({result("relu", "", {"", ""})});
  const compare::Run got = run_of(
      {result("state", "copy", {"", ""}), result("relu", "relu", {"features.3", "net.py:1"})});
  EXPECT_THAT(counterparts(want, got), ElementsAre("relu"));
  EXPECT_THAT(counterparts(got, want), ElementsAre("", "relu"));
}

TEST(match, does_not_compare_nodes_without_names_and_lines) {
  const compare::Run run = run_of({result("", "add", {"", ""})});
  EXPECT_THAT(counterparts(run, run), ElementsAre(""));
}

// ---- comparisons

compare::Run with_output(compare::Run run, const std::string& name, float x) {
  run.outputs.push_back({name, "", number(x)});
  return run;
}

TEST(comparison, finds_the_first_node_beyond_the_tolerance) {
  const auto nodes = [](float second, float third) {
    return run_of({result("a", "add", {"m", "net.py:1"}, 1),
                   result("b", "mul", {"m", "net.py:2"}, second),
                   result("c", "sub", {"n", "net.py:3"}, third)});
  };
  const compare::Run want = with_output(nodes(1, 1), "y", 1),
                     got = with_output(nodes(1.01f, 1.5f), "y", 1);
  const Comparison c = compare(want, got, 1e-4);
  ASSERT_NE(c.first_beyond(), nullptr);
  EXPECT_EQ(c.first_beyond()->name, "b");
  EXPECT_EQ(c.first_beyond()->want->source, "net.py:2");
  EXPECT_EQ(c.worst(1).at(0)->name, "c");
  EXPECT_EQ(c.worst(9).size(), 3u);
  EXPECT_TRUE(c.fits());  // outputs decide
  EXPECT_EQ(compare(want, got, 0.1).first_beyond()->name, "c");
  EXPECT_EQ(compare(want, got, 1).first_beyond(), nullptr);
  EXPECT_FALSE(compare(want, with_output(nodes(1, 1), "y", 2)).fits());
}

TEST(comparison, counts_results_without_a_counterpart) {
  const compare::Run want = with_output(
      run_of({result("a", "view", {"", "net.py:1"}), result("b", "add", {"", "net.py:2"})}), "y",
      1);
  const compare::Run got = with_output(
      run_of({result("b", "add", {"", "net.py:2"}), result("c", "copy", {"", ""})}), "y", 1);
  const Comparison c = compare(want, got);
  EXPECT_EQ(c.nodes.size(), 1u);
  EXPECT_EQ(c.only_in_want, 1);
  EXPECT_EQ(c.only_in_got, 1);
}

TEST(comparison, refuses_outputs_that_do_not_belong_together) {
  const auto refusal = [](const compare::Run& want, const compare::Run& got) -> std::string {
    try {
      compare(want, got);
    } catch (const ExportError& e) {
      return e.what();
    }
    return "nothing was refused";
  };
  compare::Run one = with_output({}, "y", 1), two = with_output(with_output({}, "y", 1), "z", 1);
  EXPECT_THAT(refusal(one, two), HasSubstr("has y: f32 (1,), z: f32 (1,)"));
  compare::Run recorded = with_output({}, "x", 1);
  recorded.by_name = true;
  EXPECT_THAT(refusal(recorded, two), HasSubstr("cannot be matched"));
  recorded.outputs[0].name = "z";
  EXPECT_EQ(compare(recorded, two).outputs.at(0).name, "z");
  EXPECT_TRUE(compare(compare::Run{}, compare::Run{}).fits());
}

TEST(comparison, is_printed_with_places_and_without_control_characters) {
  const compare::Run want =
      with_output(run_of({result("relu\x1b[2J", "relu", {"features.3", "net.py:12"}, 1)}), "y", 1);
  const compare::Run got =
      with_output(run_of({result("relu\x1b[2J", "relu", {"features.3", "net.py:12"}, 2)}), "y", 3);
  std::ostringstream out;
  print(out, compare(want, got));
  EXPECT_THAT(out.str(),
              HasSubstr("worst: features.3 (relu, net.py:12)   max |difference| 1.0e+00, "
                        "cosine 1.000000\n"));
  EXPECT_THAT(out.str(), HasSubstr("first node beyond 0.0001"));
  EXPECT_THAT(out.str(), HasSubstr("relu\\x1b[2J"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace taper::compare
