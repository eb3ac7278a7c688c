// Smoothed models compute the same, and their activations round better.
#include "taper/exporter/quantize/static/smooth.h"

#include <gmock/gmock.h>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/tests/exporter/passes/apply.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

/// A norm before two products, of which one is multiplied by the other's relu before a third. The
/// norm has a few large channels, as those of language models do. `norm` gives %n.
std::unique_ptr<ir::Graph> network(const std::string& norm) {
  std::vector<float> scale(16, 1), shift(16, 0.1f);
  scale[3] = 60, scale[11] = 25;
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[4, 16]\n";
  text += passes::constant("scale", ir::Payload::from(scale, {16}), payloads);
  text += passes::constant("shift", ir::Payload::from(shift, {16}), payloads);
  text += passes::constant("gate", passes::random_payload({24, 16}, 1), payloads);
  text += passes::constant("up", passes::random_payload({24, 16}, 2), payloads);
  text += passes::constant("bias", passes::random_payload({24}, 3), payloads);
  text += passes::constant("down", passes::random_payload({24, 8}, 4), payloads);
  text += norm +
          "%g: f32[4, 24] = linear(%n, %gate, none)\n"
          "%r: f32[4, 24] = relu(%g)\n"
          "%u: f32[4, 24] = linear(%n, %up, %bias)\n"
          "%m: f32[4, 24] = mul.Tensor(%r, %u)\n"
          "%y: f32[4, 8] = mm(%m, %down)\n"
          "output \"y\" = %y\n";
  return ir::parse(text, payloads);
}
const std::string multiplied = "%n: f32[4, 16] = mul.Tensor(%x, %scale)\n";
const std::string layer_norm =
    "%n: f32[4, 16] = layer_norm(%x, [16], %scale, %shift, 1e-05, true)\n";

Examples examples() {
  return {4, [](size_t i) {
            return std::vector{passes::random_tensor({4, 16}, static_cast<unsigned>(i) + 20)};
          }};
}

double sqnr(ir::Graph& graph, const ir::Graph& want) {
  SignalError error;
  for (size_t i = 0; i < 4; ++i)
    error.add(passes::run(graph, examples().at(i)), passes::run(want, examples().at(i)));
  return error.sqnr_db();
}

double quantized_sqnr(ir::Graph& graph, const ir::Graph& want) {
  quantize_static(graph, calibrate(graph, examples(), {}), {});
  return sqnr(graph, want);
}

TEST(smooth, keeps_the_function_and_rounds_better) {
  for (const std::string& norm : {multiplied, layer_norm}) {
    const auto before = network(norm), plain = network(norm), smoothed = network(norm);
    const size_t nodes = smoothed->nodes().size();
    // the input of both products, and that of the third
    EXPECT_EQ(smooth(*smoothed, examples(), 0.5), 2) << norm;
    ir::verify(*smoothed);
    EXPECT_EQ(smoothed->nodes().size(), nodes);
    EXPECT_GT(sqnr(*smoothed, *before), 110) << norm;
    EXPECT_GT(quantized_sqnr(*smoothed, *before), quantized_sqnr(*plain, *before) + 3) << norm;
  }
}

TEST(smooth, leaves_inputs_that_nothing_can_divide) {
  // the model's own input, and a value that is an output, too
  const auto direct = network("%n: f32[4, 16] = alias(%x)\n");
  EXPECT_EQ(smooth(*direct, examples(), 0.5), 1);  // that of the third product
  auto returned = network(multiplied);
  returned->add_output("n", returned->nodes().front().result());
  EXPECT_EQ(smooth(*returned, examples(), 0.5), 1);
}

TEST(smooth, refuses_a_strength_outside_its_range) {
  for (const double strength : {-0.1, 1.1, std::nan("")})
    EXPECT_EXPORT_ERROR(smooth(*network(multiplied), examples(), strength), "must lie in 0..1");
}

}  // namespace
}  // namespace taper::quantize
