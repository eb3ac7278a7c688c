// Equalized models compute the same, and their weights round better.
#include "taper/exporter/quantize/static/equalize.h"

#include <gmock/gmock.h>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::quantize {
namespace {

/// Random elements in which the magnitudes of output channels differ by powers of `base`.
std::shared_ptr<const ir::Payload> uneven(const std::vector<int64_t>& sizes, unsigned seed,
                                          float base = 10) {
  std::vector<float> values = ir::tensor_of(passes::random_payload(sizes, seed)).to_vector<float>();
  const size_t row = values.size() / static_cast<size_t>(sizes[0]);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= std::pow(base, static_cast<float>(i / row % 4) - 2);
  return ir::Payload::from(values, sizes);
}

/// A depthwise-separable network: convolutions of 1 x 1, by channels and of 3 x 3, a pool, and a
/// matrix product whose weight is transposed.
std::unique_ptr<ir::Graph> network(const std::string& middle = "relu(%a)") {
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[1, 3, 8, 8]\n";
  text += passes::constant("w1", uneven({8, 3, 1, 1}, 1), payloads);
  text += passes::constant("b1", uneven({8}, 2), payloads);
  // What is small before the second convolution is large behind it, so each channel matters.
  text += passes::constant("w2", uneven({8, 1, 3, 3}, 3, 0.1f), payloads);
  text += passes::constant("b2", passes::random_payload({8}, 4), payloads);
  text += passes::constant("w3", passes::random_payload({6, 8, 1, 1}, 5), payloads);
  text +=
      "%a: f32[1, 8, 8, 8] = convolution(%x, %w1, %b1, [1, 1], [0, 0], [1, 1], false, [0], 1)\n"
      "%m: f32[1, 8, 8, 8] = " +
      middle +
      "\n%d: f32[1, 8, 8, 8] = convolution(%m, %w2, %b2, [1, 1], [1, 1], [1, 1], false, [0], 8)\n"
      "%r: f32[1, 8, 8, 8] = relu(%d)\n"
      "%p: f32[1, 8, 4, 4] = max_pool2d(%r, [2, 2], [], [0, 0], [1, 1], false)\n"
      "%y: f32[1, 6, 4, 4] = convolution(%p, %w3, none, [1, 1], [0, 0], [1, 1], false, [0], 1)\n"
      "output \"y\" = %y\n";
  return ir::parse(text, payloads);
}

Examples examples() {
  return Examples(4, [](size_t i) {
    return std::vector{passes::random_tensor({1, 3, 8, 8}, static_cast<unsigned>(i) + 20)};
  });
}

double sqnr(ir::Graph& graph, const ir::Graph& want) {
  const StaticOptions options{.per_channel = false};
  quantize_static(graph, calibrate(graph, examples(), options), options);
  SignalError error;
  for (size_t i = 0; i < 4; ++i)
    error.add(passes::run(graph, examples().at(i)), passes::run(want, examples().at(i)));
  return error.sqnr_db();
}

TEST(equalize, keeps_the_function_and_rounds_better) {
  const auto before = network(), plain = network(), scaled = network();
  EXPECT_EQ(equalize(*scaled), 2);
  ir::verify(*scaled);
  SignalError error;
  for (size_t i = 0; i < 4; ++i)
    error.add(passes::run(*scaled, examples().at(i)), passes::run(*before, examples().at(i)));
  EXPECT_GT(error.sqnr_db(), 110);
  EXPECT_GT(sqnr(*scaled, *before), sqnr(*plain, *before) + 6);
}

/// The largest magnitude of each output channel of a weight.
std::vector<float> output_ranges(const ir::Graph& graph, const std::string& path) {
  std::vector<float> ranges;
  for (const ir::Constant& c : graph.constants()) {
    if (c.path != path) continue;
    const std::vector<float> w = ir::tensor_of(c.payload).to_vector<float>();
    ranges.resize(static_cast<size_t>(c.payload->sizes[0]));
    for (size_t i = 0; i < w.size(); ++i) {
      float& range = ranges[i / (w.size() / ranges.size())];
      range = std::max(range, std::abs(w[i]));
    }
  }
  return ranges;
}

TEST(equalize, makes_the_ranges_on_both_sides_of_a_channel_equal) {
  const auto graph = network();
  equalize(*graph);
  const std::vector<float> a = output_ranges(*graph, "w1"), b = output_ranges(*graph, "w2");
  ASSERT_EQ(a.size(), 8u);
  for (size_t c = 0; c < 8; ++c) EXPECT_NEAR(a[c] / b[c], 1, 0.01) << c;
}

TEST(equalize, leaves_alone_what_does_not_keep_factors) {
  for (const char* middle : {"hardtanh(%a, 0, 6)", "add.Tensor(%a, %a, 1)", "sigmoid(%a)"}) {
    const auto graph = network(middle);
    EXPECT_EQ(equalize(*graph), 1) << middle;  // the pair behind it
  }
}

TEST(equalize, leaves_alone_weights_that_others_read) {
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[2, 4]\n";
  text += passes::constant("w", uneven({4, 4}, 1), payloads);
  text += passes::constant("v", uneven({4, 4}, 2), payloads);
  const std::string lines =
      "%a: f32[2, 4] = linear(%x, %w, none)\n%t: f32[4, 4] strides [1, 4] = permute(%v, [1, 0])\n"
      "%b: f32[2, 4] = mm(%a, %t)\n";
  const auto shared = ir::parse(
      text + lines + "%c: f32[2, 4] = linear(%b, %w, none)\noutput \"c\" = %c\n", payloads);
  EXPECT_EQ(equalize(*shared), 0);
  const auto own = ir::parse(text + lines + "output \"b\" = %b\n", payloads);
  const std::vector<float> want = passes::run(*own, {passes::random_tensor({2, 4}, 3)});
  EXPECT_EQ(equalize(*own), 1);
  const std::vector<float> got = passes::run(*own, {passes::random_tensor({2, 4}, 3)});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
}

}  // namespace
}  // namespace taper::quantize
