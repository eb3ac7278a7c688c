// Graphs that look like what a pass transforms, and that it must leave as they are.
#include <gtest/gtest.h>

#include <limits>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using eager::Tensor;

/// The text of a graph and the constants that it names.
struct Source {
  std::string text = "graph f\n";
  ir::Payloads payloads;

  Source& constant(const std::string& name, const std::shared_ptr<const ir::Payload>& p) {
    const std::string key = ir::digest(*p);
    payloads[key] = p;
    const ir::Type type = ir::dense_type(p->dtype, {p->sizes.begin(), p->sizes.end()});
    text += "constant \"" + name + "\" = %" + name + ": " + ir::to_string(type) + " " + key + "\n";
    return *this;
  }
  Source& operator<<(const std::string& line) {
    text += line + "\n";
    return *this;
  }
  std::unique_ptr<ir::Graph> graph() const {
    auto g = ir::parse(text, payloads);
    ir::verify(*g);
    return g;
  }
};

void expect_untouched(Run pass, const Source& source) {
  const auto graph = source.graph();
  const std::string before = ir::to_string(*graph);
  EXPECT_EQ(apply(pass, *graph), 0);
  EXPECT_EQ(ir::to_string(*graph), before);
}

// ---- dead code

// Nobody reads what an assertion gives: it gives nothing.
TEST(remove_dead_code, keeps_assertions_and_what_they_read) {
  const Source source = Source() << "input \"x\" = %x: f32[2]"
                                 << "%p: bool[2] = gt.Scalar(%x, 0)"
                                 << "%all: bool[] = all(%p)"
                                 << "_assert_async.msg(%all, \"x must be positive\")"
                                 << "_assert_async(%all)"
                                 << "%y: f32[2] = log(%x)"
                                 << "output \"y\" = %y";
  expect_untouched(remove_dead_code, source);
  const auto graph = source.graph();
  PassContext context(Target(), /*exact=*/false);
  run_passes(*graph, context);
  int assertions = 0;
  for (const ir::Node& n : graph->nodes()) assertions += n.op->category == Category::check;
  EXPECT_EQ(assertions, 2) << ir::to_string(*graph);
}

TEST(remove_dead_code, keeps_a_node_of_whose_results_one_is_used) {
  expect_untouched(remove_dead_code, Source() << "input \"x\" = %x: f32[2, 3]"
                                              << "%v: f32[2], %i: i64[2] = max.dim(%x, 1, false)"
                                              << "output \"i\" = %i");
}

TEST(remove_dead_code, keeps_what_a_body_takes_from_outside) {
  expect_untouched(remove_dead_code, Source() << "input \"p\" = %p: bool[]"
                                              << "input \"x\" = %x: f32[2]"
                                              << "%e: f32[2] = exp(%x)"
                                              << "%y: f32[2] = higher_order::cond(%p, [%e]) {"
                                              << "graph a"
                                              << "input \"u\" = %u: f32[2]"
                                              << "%r: f32[2] = relu(%u)"
                                              << "output \"r\" = %r"
                                              << "} {"
                                              << "graph b"
                                              << "input \"u\" = %v: f32[2]"
                                              << "%s: f32[2] = neg(%v)"
                                              << "output \"r\" = %s"
                                              << "}"
                                              << "output \"y\" = %y");
}

// ---- constants

TEST(fold_constants, leaves_what_inputs_and_states_decide) {
  const auto w = ir::Payload::from<float>({1, 2}, {2});
  expect_untouched(fold_constants, Source().constant("w", w)
                                       << "input \"x\" = %x: f32[2]"
                                       << "state \"s\" = %s: f32[2] buffer zeros"
                                       << "%a: f32[2] = add.Tensor(%w, %x, 1)"
                                       << "%b: f32[2] = mul.Tensor(%w, %s)"
                                       << "output \"a\" = %a"
                                       << "output \"b\" = %b"
                                       << "write \"s\" = %a");
}

TEST(fold_constants, leaves_views_and_sizes_that_a_call_decides) {
  const auto w = ir::Payload::from<float>({1, 2, 3, 4}, {4});
  expect_untouched(fold_constants, Source().constant("w", w)
                                       << "symbol n in [1, 4]"
                                       << "input \"x\" = %x: f32[n]"
                                       << "%s: f32[n] = slice.Tensor(%w, 0, 0, n, 1)"
                                       << "%e: f32[n] = exp(%s)"
                                       << "%y: f32[n] = add.Tensor(%x, %e, 1)"
                                       << "%m: f32[4] = mul.Scalar(%w, n)"
                                       << "output \"m\" = %m"
                                       << "output \"y\" = %y"
                                       << "bind n = extent 0 of input 0");
}

// An assertion about constants that does not hold is the program's to tell.
TEST(fold_constants, leaves_assertions_about_constants) {
  const auto w = ir::Payload::from<float>({0}, {});
  expect_untouched(fold_constants, Source().constant("w", w) << "input \"x\" = %x: f32[2]"
                                                             << "_assert_async(%w)"
                                                             << "output \"y\" = %x");
}

// ---- common subexpressions

/// The number of calls that are merged among two of one tensor: `first` and `second` with %x of
/// `type` for their tensor.
int merged(const std::string& first, const std::string& second,
           const std::string& result = "f32[2]", const std::string& type = "f32[2]") {
  const auto graph = (Source() << "input \"x\" = %x: " + type << "%a: " + result + " = " + first
                               << "%b: " + result + " = " + second << "output \"a\" = %a"
                               << "output \"b\" = %b")
                         .graph();
  return apply(merge_common_subexpressions, *graph);
}

TEST(merge_common_subexpressions, tells_numbers_apart_that_differ_in_the_last_place) {
  EXPECT_EQ(merged("mul.Scalar(%x, 0.12345671)", "mul.Scalar(%x, 0.12345671)"), 1);
  EXPECT_EQ(merged("mul.Scalar(%x, 0.12345671)", "mul.Scalar(%x, 0.12345679)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 0.1)", "mul.Scalar(%x, 0.10000000000000002)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 1e-300)", "mul.Scalar(%x, 1.0000000000000003e-300)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 5e-324)", "mul.Scalar(%x, 1e-323)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 9007199254740993)", "mul.Scalar(%x, 9007199254740992)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, inf)", "mul.Scalar(%x, -inf)"), 0);
}

TEST(merge_common_subexpressions, tells_zero_from_minus_zero_and_a_real_from_an_integer) {
  EXPECT_EQ(merged("div.Scalar(%x, 0.0)", "div.Scalar(%x, -0.0)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 2)", "mul.Scalar(%x, 2.0)"), 0);
  EXPECT_EQ(merged("mul.Scalar(%x, 1)", "mul.Scalar(%x, true)"), 0);
}

TEST(merge_common_subexpressions, reads_every_argument) {
  const std::string matrix = "f32[2, 2]";
  EXPECT_EQ(merged("sub.Scalar(%x, 3, 1)", "sub.Scalar(%x, 3, 2)"), 0);
  EXPECT_EQ(merged("gelu(%x, \"none\")", "gelu(%x, \"tanh\")"), 0);
  EXPECT_EQ(merged("flip(%x, [0])", "flip(%x, [1])", matrix, matrix), 0);
  EXPECT_EQ(merged("_softmax(%x, 0, false)", "_softmax(%x, 1, false)", matrix, matrix), 0);
  EXPECT_EQ(merged("sum.dim_IntList(%x, [0], false, none)", "sum.dim_IntList(%x, [1], false, none)",
                   "f32[2]", matrix),
            0);
}

TEST(merge_common_subexpressions, leaves_calls_on_other_values_and_in_another_order) {
  expect_untouched(merge_common_subexpressions, Source() << "input \"x\" = %x: f32[2]"
                                                         << "input \"y\" = %y: f32[2]"
                                                         << "%a: f32[2] = sub.Tensor(%x, %y, 1)"
                                                         << "%b: f32[2] = sub.Tensor(%y, %x, 1)"
                                                         << "%c: f32[2] = exp(%x)"
                                                         << "%d: f32[2] = exp(%y)"
                                                         << "output \"a\" = %a"
                                                         << "output \"b\" = %b"
                                                         << "output \"c\" = %c"
                                                         << "output \"d\" = %d");
}

TEST(merge_common_subexpressions, leaves_each_assertion) {
  expect_untouched(merge_common_subexpressions, Source() << "input \"p\" = %p: bool[]"
                                                         << "_assert_async.msg(%p, \"once\")"
                                                         << "_assert_async.msg(%p, \"once\")"
                                                         << "output \"p\" = %p");
}

// ---- batch norm

/// conv -> batch norm over 2 channels as the pass folds it, with one line of it replaced.
class ConvThenNorm {
 public:
  std::string convolution =
      "%c: f32[1, 2, 3, 3] = convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)";
  std::string norm = "_native_batch_norm_legit_no_training(%c, %g, %b, %m, %v, 0.1, 1e-05)";
  std::string users = "output \"y\" = %n";
  std::string inputs;               // beside the picture
  std::string constants = "wgbmv";  // the others are inputs

  Source source() const {
    Source s;
    s << "input \"x\" = %x: f32[1, 2, 3, 3]";
    add(s, 'w', {2, 2, 3, 3});
    for (const char name : {'g', 'b', 'm', 'v'}) add(s, name, {2});
    if (!inputs.empty()) s << inputs;
    s << convolution << "%n: f32[1, 2, 3, 3], %n1: f32[0], %n2: f32[0] = " + norm << users;
    return s;
  }

 private:
  void add(Source& s, char name, const std::vector<int64_t>& sizes) const {
    size_t n = 1;
    for (const int64_t size : sizes) n *= static_cast<size_t>(size);
    std::vector<float> elements(n);
    for (size_t i = 0; i < n; ++i) elements[i] = 0.5f + 0.25f * static_cast<float>(i % 7);
    const auto payload = ir::Payload::from(elements, sizes);
    const std::string text(1, name);
    if (constants.find(name) != std::string::npos)
      s.constant(text, payload);
    else
      s << "input \"" + text + "\" = %" + text + ": " +
               ir::to_string(ir::dense_type(DType::f32, {sizes.begin(), sizes.end()}));
  }
};

TEST(fold_batch_norm, folds_the_graph_that_the_next_tests_change) {
  const auto graph = ConvThenNorm().source().graph();
  EXPECT_EQ(apply(fold_batch_norm, *graph), 1);
  EXPECT_EQ(graph->nodes().size(), 1u);
}

TEST(fold_batch_norm, leaves_a_convolution_that_somebody_else_reads) {
  ConvThenNorm read;
  read.users = "%r: f32[1, 2, 3, 3] = relu(%c)\noutput \"y\" = %n\noutput \"r\" = %r";
  expect_untouched(fold_batch_norm, read.source());
  ConvThenNorm returned;
  returned.users = "output \"y\" = %n\noutput \"c\" = %c";
  expect_untouched(fold_batch_norm, returned.source());
  ConvThenNorm kept;
  kept.inputs = "state \"s\" = %s: f32[1, 2, 3, 3] buffer zeros";
  kept.users = "output \"y\" = %n\nwrite \"s\" = %c";
  expect_untouched(fold_batch_norm, kept.source());
}

// Its output channels are the second dimension of the weight.
TEST(fold_batch_norm, leaves_a_transposed_convolution) {
  ConvThenNorm transposed;
  transposed.convolution =
      "%c: f32[1, 2, 3, 3] = convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], true, [0, 0], 1)";
  expect_untouched(fold_batch_norm, transposed.source());
}

TEST(fold_batch_norm, leaves_weights_and_statistics_that_are_no_constants) {
  for (const char* constants : {"gbmv", "wbmv", "wgmv", "wgbv", "wgbm"}) {
    SCOPED_TRACE(constants);
    ConvThenNorm other;
    other.constants = constants;
    expect_untouched(fold_batch_norm, other.source());
  }
  ConvThenNorm bias;
  bias.inputs = "input \"q\" = %q: f32[2]";
  bias.convolution =
      "%c: f32[1, 2, 3, 3] = convolution(%x, %w, %q, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)";
  expect_untouched(fold_batch_norm, bias.source());
}

TEST(fold_batch_norm, leaves_weights_of_another_dtype) {
  const std::vector<double> one_half(36, 0.5);
  const auto payload = [&](std::vector<int64_t> sizes, size_t n) {
    return ir::Payload::from(std::vector<double>(one_half.begin(), one_half.begin() + n), sizes);
  };
  Source s;
  s << "input \"x\" = %x: f64[1, 2, 3, 3]";
  s.constant("w", payload({2, 2, 3, 3}, 36));
  for (const char* name : {"g", "b", "m", "v"}) s.constant(name, payload({2}, 2));
  s << "%c: f64[1, 2, 3, 3] = convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)"
    << "%n: f64[1, 2, 3, 3], %n1: f64[0], %n2: f64[0] = "
       "_native_batch_norm_legit_no_training(%c, %g, %b, %m, %v, 0.1, 1e-05)"
    << "output \"y\" = %n";
  expect_untouched(fold_batch_norm, s);
}

TEST(fold_batch_norm, leaves_statistics_that_are_returned) {
  ConvThenNorm other;
  other.users = "output \"y\" = %n\noutput \"mean\" = %n1";
  expect_untouched(fold_batch_norm, other.source());
}

TEST(fold_batch_norm, leaves_what_stands_between_the_two) {
  ConvThenNorm other;
  other.convolution += "\n%r: f32[1, 2, 3, 3] = relu(%c)";
  other.norm = "_native_batch_norm_legit_no_training(%r, %g, %b, %m, %v, 0.1, 1e-05)";
  expect_untouched(fold_batch_norm, other.source());
}

// ---- pointwise

TEST(fuse_pointwise, leaves_one_operator_alone_and_a_tree_with_other_readers) {
  expect_untouched(fuse_pointwise, Source() << "input \"x\" = %x: f32[4]"
                                            << "%a: f32[4] = exp(%x)"
                                            << "%b: f32[4] = neg(%a)"
                                            << "%c: f32[4] = flip(%a, [0])"
                                            << "output \"b\" = %b"
                                            << "output \"c\" = %c");
}

TEST(fuse_pointwise, leaves_halves_integers_and_what_is_not_dense) {
  for (const char* dtype : {"f16", "bf16", "i64", "f64"}) {
    const std::string type = std::string(dtype) + "[4]";
    expect_untouched(fuse_pointwise, Source() << "input \"x\" = %x: " + type
                                              << "%a: " + type + " = neg(%x)"
                                              << "%b: " + type + " = abs(%a)"
                                              << "output \"b\" = %b");
  }
  expect_untouched(fuse_pointwise, Source() << "input \"x\" = %x: f32[2, 3]"
                                            << "%t: f32[3, 2] strides [1, 3] = permute(%x, [1, 0])"
                                            << "%a: f32[3, 2] = neg(%t)"
                                            << "output \"a\" = %a");
}

// A state's old value is read where the tree computes, and its new one is a result.
TEST(fuse_pointwise, leaves_values_that_states_keep) {
  expect_untouched(fuse_pointwise, Source() << "input \"x\" = %x: f32[4]"
                                            << "state \"s\" = %s: f32[4] buffer zeros"
                                            << "%a: f32[4] = add.Tensor(%x, %s, 1)"
                                            << "%b: f32[4] = exp(%a)"
                                            << "output \"b\" = %b"
                                            << "write \"s\" = %a");
}

TEST(fuse_pointwise, tells_zero_from_minus_zero) {
  const auto graph = (Source() << "input \"x\" = %x: f32[4]"
                               << "%a: f32[4] = mul.Scalar(%x, 0.0)"
                               << "%b: f32[4] = add.Scalar(%a, -0.0, 1)"
                               << "%c: f32[4] = reciprocal(%b)"
                               << "output \"c\" = %c")
                         .graph();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({-1, 1, -0.0f, 0}, {4});
  const std::vector<float> want{-infinity, infinity, -infinity, infinity};
  const auto run = [&] { return ir::Interpreter(*graph).run({x}).outputs[0].to_vector<float>(); };
  EXPECT_EQ(run(), want);
  EXPECT_EQ(apply(fuse_pointwise, *graph), 1);
  EXPECT_EQ(run(), want);
}

// ---- halves

TEST(halve_weights, leaves_a_graph_without_f32_as_it_is) {
  const auto w = ir::Payload::from<double>({1, 2}, {2});
  const auto graph = (Source().constant("w", w) << "input \"x\" = %x: f64[2]"
                                                << "input \"i\" = %i: i64[2]"
                                                << "%a: f64[2] = mul.Tensor(%x, %w)"
                                                << "%b: i64[2] = add.Tensor(%i, %i, 1)"
                                                << "output \"a\" = %a"
                                                << "output \"b\" = %b")
                         .graph();
  const std::string before = ir::to_string(*graph);
  PassContext context(Target(), /*exact=*/true, DType::f16);
  EXPECT_EQ(halve_weights(*graph, context), 0);
  EXPECT_EQ(ir::to_string(*graph), before);
}

}  // namespace
}  // namespace taper::passes
