#include <gmock/gmock.h>

#include <cstring>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/trace/trace.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using eager::Tensor;
using testing::Contains, testing::HasSubstr, testing::Not;

std::vector<std::string> operators(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& n : graph.nodes()) names.emplace_back(name_of(*n.op));
  return names;
}
Tensor numbers(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  std::vector<float> elements;
  for (int64_t i = 0; i < n; ++i) elements.push_back(static_cast<float>((i * 37) % 101 - 50) / 32);
  return ir::tensor_of(ir::Payload::from(elements, sizes)).clone();
}

/// Every output has the same dtype, sizes and bits before and after.
void expect_same_results(const ir::Graph& before, const ir::Graph& after,
                         const std::vector<Tensor>& inputs) {
  const auto a = ir::Interpreter(before).run(inputs).outputs,
             b = ir::Interpreter(after).run(inputs).outputs;
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor x = a[i].contiguous(), y = b[i].contiguous();
    ASSERT_EQ(x.dtype(), y.dtype());
    ASSERT_EQ(eager::to_string(x.sizes()), eager::to_string(y.sizes()));
    EXPECT_EQ(std::memcmp(x.ref().data, y.ref().data, static_cast<size_t>(x.ref().size_bytes())),
              0);
  }
}

const std::string quantizes =
    "graph f\ninput \"x\" = %x: f32[2, 3]\n"
    "%q: i8[2, 3] = quantized_decomposed::quantize_per_tensor(%x, 0.03, 5, -128, 127, i8)  @ "
    "\"net.py\" 14 \"forward\" in \"head\"\n"
    "%d: f32[2, 3] = quantized_decomposed::dequantize_per_tensor(%q, 0.03, 5, -128, 127, i8, "
    "none)\noutput \"q\" = %q\noutput \"d\" = %d\n";

TEST(decompose, makes_parts_of_what_has_no_kernel_and_keeps_the_bits) {
  const auto whole = ir::parse(quantizes), graph = ir::parse(quantizes);
  ir::verify(*whole);
  EXPECT_EQ(apply(decompose, *graph), 0) << "there are kernels";
  Target without;
  without.kernel_sets.clear();
  PassContext context(without);
  EXPECT_EQ(decompose(*graph, context), 2);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), Contains("round"));
  for (const std::string& name : operators(*graph)) EXPECT_THAT(name, Not(HasSubstr("quantize")));
  EXPECT_EQ(graph->outputs()[0].value->name, "q") << "the result keeps its name";
  EXPECT_EQ(graph->nodes().front().module, "head");
  EXPECT_EQ(graph->nodes().front().location.to_string(), "net.py:14");
  expect_same_results(*whole, *graph, {numbers({2, 3})});
  const std::vector<Note> notes = context.take_notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[0].node, HasSubstr("quantize_per_tensor at net.py:14 (head)"));
}

TEST(decompose, sees_quantization_by_blocks_whole_and_makes_parts_of_it) {
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[4, 8]\n"
      "%scale: f32[4, 2], %zero: i32[4, 2] = torchao::choose_qparams_affine(%x, \"ASYMMETRIC\", "
      "[1, 4], i8, none, none, none, none, none, true)\n"
      "%q: i8[4, 8] = torchao::quantize_affine(%x, [1, 4], %scale, %zero, i8, none, none)\n"
      "%d: f32[4, 8] = torchao::dequantize_affine(%q, [1, 4], %scale, %zero, i8, none, none, "
      "f32)\noutput \"d\" = %d\n";
  const auto whole = ir::parse(text), graph = ir::parse(text);
  ir::verify(*whole);
  EXPECT_EQ(apply(decompose, *graph), 3);
  ir::verify(*graph);
  for (const std::string& name : operators(*graph)) EXPECT_THAT(name, Not(HasSubstr("torchao")));
  expect_same_results(*whole, *graph, {numbers({4, 8})});
}

TEST(decompose, leaves_what_the_target_runs) {
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[2, 3]\ninput \"w\" = %w: f32[4, 3]\n"
      "%a: f32[2, 4] = linear(%x, %w, none)\n%b: f32[2, 4] = relu(%a)\noutput \"y\" = %b\n";
  const auto graph = ir::parse(text);
  EXPECT_EQ(apply(decompose, *graph), 0);
  EXPECT_EQ(ir::to_string(*graph), text);

  // another target, without a kernel for the one that has parts
  Target bare;
  bare.kernel_sets.clear();
  PassContext context(bare);
  EXPECT_EQ(decompose(*graph, context), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), Not(Contains("linear")));
  EXPECT_THAT(operators(*graph), Contains("relu"));
}

TEST(decompose, takes_layers_apart_whose_results_are_seen_through_views) {
  const eager::NoGrad guard;
  const std::vector<Tensor> weights = {numbers({16, 3}), numbers({16, 4}), numbers({16}),
                                       numbers({16})};
  for (const bool batch_first : {false, true}) {
    const Dim time = Dim::symbol("time", 1, 9);
    const auto function = [&](const std::vector<Tensor>& in) {
      const auto [y, h, c] =
          eager::lstm(in[0], {in[1], in[2]}, weights, true, 1, 0.0, false, false, batch_first);
      return std::vector<Tensor>{eager::select(y, batch_first ? 0 : 1, 0), eager::reshape(y, {-1}),
                                 c};
    };
    const auto trace_it = [&] {
      auto graph =
          trace("f", function,
                {input("x", batch_first ? eager::Dims{2, time, 3} : eager::Dims{time, 2, 3}),
                 input("h", {1, 2, 4}), input("c", {1, 2, 4})});
      bake_read_only_states({graph.get()});
      return graph;
    };
    const auto whole = trace_it(), graph = trace_it();
    EXPECT_THAT(operators(*whole), Contains("lstm.input")) << "a trace keeps it whole";
    EXPECT_EQ(apply(decompose, *graph), 1);
    ir::verify(*graph);
    EXPECT_THAT(operators(*graph), Not(Contains("lstm.input")));
    EXPECT_THAT(operators(*graph), Contains("taper::lstm_scan"));
    const Tensor x = batch_first ? numbers({2, 5, 3}) : numbers({5, 2, 3});
    expect_same_results(*whole, *graph, {x, numbers({1, 2, 4}), numbers({1, 2, 4})});
  }
}

}  // namespace
}  // namespace taper::passes
