// The errors of nodes, and which of them the outputs' error comes from.
#include "taper/exporter/quantize/static/sensitivity.h"

#include <gmock/gmock.h>

#include <sstream>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/quantize/static/quantize.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using testing::HasSubstr;

TEST(signal_error, follows_the_formulas) {
  SignalError e;
  EXPECT_EQ(e.noise(), 0);
  EXPECT_EQ(e.cosine(), 1);
  e.add(std::vector{3.0f, 0.0f}, std::vector{3.0f, 0.0f});
  EXPECT_EQ(e.sqnr_db(), std::numeric_limits<double>::infinity());
  e.add(std::vector{1.0f}, std::vector{4.0f});
  EXPECT_DOUBLE_EQ(e.noise(), 9.0 / 25);
  EXPECT_NEAR(e.sqnr_db(), 4.43697, 1e-4);
  EXPECT_NEAR(e.cosine(), 13 / (std::sqrt(10.0) * 5), 1e-12);
  SignalError silent;
  silent.add(std::vector{1.0f}, std::vector{0.0f});
  EXPECT_EQ(silent.sqnr_db(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(silent.cosine(), 0);
}

/// Three linear layers. One weight of the second is so large that the others round to little.
std::unique_ptr<ir::Graph> layers() {
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[4, 16]\n";
  for (const char* name : {"first", "second", "third"}) {
    std::vector<float> w =
        ir::tensor_of(passes::random_payload({16, 16}, name[0])).to_vector<float>();
    if (name[0] == 's') w[5] = 60;
    text += passes::constant(name, ir::Payload::from(w, {16, 16}), payloads);
  }
  text +=
      "%a: f32[4, 16] = linear(%x, %first, none)\n%r: f32[4, 16] = relu(%a)\n"
      "%b: f32[4, 16] = linear(%r, %second, none)\n%c: f32[4, 16] = linear(%b, %third, none)\n"
      "output \"c\" = %c\n";
  return ir::parse(text, payloads);
}

TEST(sensitivity, finds_the_node_that_does_the_harm) {
  const auto graph = layers();
  const Examples examples(5, [](size_t i) {
    return std::vector{passes::random_tensor({4, 16}, static_cast<unsigned>(i) + 9)};
  });
  const StaticOptions options{.per_channel = false, .correct_bias = false};
  const Ranges ranges = calibrate(*graph, examples, options);
  size_t runs = 0;
  const Sensitivity found =
      measure_sensitivity(*graph, ranges, examples, options, [&](size_t done, size_t all) {
        EXPECT_EQ(done, ++runs);
        EXPECT_EQ(all, 25u);
      });
  EXPECT_EQ(runs, 25u);
  ASSERT_EQ(found.nodes.size(), 3u);
  EXPECT_EQ(found.nodes[0].name, "b");
  EXPECT_GT(found.nodes[0].share, 0.5);
  EXPECT_NEAR(found.nodes[0].share + found.nodes[1].share + found.nodes[2].share, 1, 1e-12);
  EXPECT_GE(found.nodes[1].share, found.nodes[2].share);

  // The same figures from runs of this test's own.
  const auto quantized = layers();
  quantize_static(*quantized, ranges, options);
  SignalError all;
  for (size_t i = 0; i < examples.count; ++i)
    all.add(passes::run(*quantized, examples.at(i)), passes::run(*graph, examples.at(i)));
  EXPECT_DOUBLE_EQ(found.outputs_db, all.sqnr_db());
  EXPECT_DOUBLE_EQ(found.outputs_cosine, all.cosine());
  for (const NodeError& n : found.nodes) {
    EXPECT_GT(n.alone_db, found.outputs_db - 1) << n.name;
    if (n.name == "c") {
      EXPECT_DOUBLE_EQ(n.sqnr_db, all.sqnr_db());
    }
    if (n.name == "r") {
      EXPECT_GT(n.sqnr_db, 30);
      EXPECT_GT(n.cosine, 0.999);
    }
  }

  std::ostringstream text;
  print(text, found, 2);
  EXPECT_THAT(text.str(), HasSubstr("%b, linear\n"));
  EXPECT_THAT(text.str(), HasSubstr("and 1 node of less harm\n"));
}

}  // namespace
}  // namespace taper::quantize
