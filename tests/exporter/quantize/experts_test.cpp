// What becomes of stacks of experts.
#include <cstddef>

#include "changed.h"

namespace taper::quantize {
namespace {

using passes::operators;
using passes::random_tensor;
using testing::ElementsAre;
using testing::HasSubstr;

/// A stack of three experts with 5 results each, of which six rows choose the first and the third.
Model experts(int64_t depth, bool is_transposed) {
  const std::string k = std::to_string(depth);
  Model m;
  m.add("w", random_payload(is_transposed ? std::vector<int64_t>{3, depth, 5}
                                          : std::vector<int64_t>{3, 5, depth},
                            1));
  m.nodes = "input \"x\" = %x: f32[6, " + k + "]\ninput \"ends\" = %ends: i32[3]\n" +
            (is_transposed ? "" : "%t: f32[3, " + k + ", 5] = transpose.int(%w, 1, 2)\n") +
            "%y: f32[6, 5] = _grouped_mm(%x, " + (is_transposed ? "%w" : "%t") +
            ", %ends, none, none)\noutput \"y\" = %y\n";
  return m;
}

TEST(quantize, puts_the_matrices_of_experts_into_blocks) {
  const eager::Tensor ends = eager::Tensor::from(std::vector<int32_t>{2, 2, 6}, {3});
  for (const bool is_transposed : {false, true})
    for (const int64_t depth : {64, 44}) {
      const eager::Tensor x = random_tensor({6, depth}, 3);
      const Changed c(experts(depth, is_transposed), int8(), {x, ends}, 0.01);
      const int64_t padded = 64;
      EXPECT_THAT(c.layouts(), ElementsAre(Layout::q8_0));
      EXPECT_EQ(c.graph->constants().back().payload->sizes, (std::vector<int64_t>{3, 5, padded}));
      EXPECT_EQ(c.graph->outputs()[0].value->name, "y");
      EXPECT_EQ(c.report.weights.at(0).bytes_after, 15 * 2 * 34);
      EXPECT_EQ(c.report.weights.at(0).padded_to, depth == padded ? 0 : padded);
      EXPECT_GT(c.report.weights.at(0).measure.sqnr_db(), 40);
      const auto product_of = [&](const char* activations) {
        const Recipe recipe =
            recipe_of(R"({"weights": "int8", "activations": ")" + std::string(activations) + "\"}");
        const Changed product(experts(depth, is_transposed), recipe, {x, ends}, 0.02);
        return operators(*product.graph).back();
      };
      EXPECT_EQ(product_of("as-exported"), "_grouped_mm") << "the pass read_blocks decides";
      EXPECT_EQ(product_of("float"), "taper::grouped_block_linear");
      EXPECT_EQ(product_of("int8-dynamic"), "taper::grouped_block_linear_q8");
    }
}

/// The blocks of one expert alone, as a linear layer. `rows`: what it learns from, if anything.
std::vector<std::byte> blocks_of_expert(const ir::Payload& stack, size_t expert,
                                        const eager::Tensor& rows) {
  const size_t bytes = stack.size_bytes / 3;
  Model m;
  m.add("w", ir::Payload::copy(DType::f32, {5, 64}, stack.bytes.get() + expert * bytes));
  const std::string count = std::to_string(rows.defined() ? rows.size(0).value() : 1);
  m.nodes = "input \"x\" = %x: f32[" + count + ", 64]\n%y: f32[" + count +
            ", 5] = linear(%x, %w, none)\noutput \"y\" = %y\n";
  Options options;
  if (rows.defined()) options.samples = {1, [&](size_t) { return std::vector{rows}; }};
  const std::unique_ptr<ir::Graph> graph = m.graph();
  const char* method = rows.defined() ? "gptq" : "mse";
  quantize({graph.get()},
           recipe_of(R"({"weights": "q4_1", "method": ")" + std::string(method) + "\"}"), options);
  const ir::Payload& payload = *graph->constants().back().payload;
  return {payload.bytes.get(), payload.bytes.get() + payload.size_bytes};
}

/// No row reaches the second one.
TEST(quantize, lets_each_expert_learn_from_its_rows) {
  const eager::Tensor x = random_tensor({6, 64}, 3),
                      ends = eager::Tensor::from(std::vector<int32_t>{2, 2, 6}, {3});
  Options options;
  options.samples = {1, [&](size_t) { return std::vector{x, ends}; }};
  for (const bool is_transposed : {false, true}) {
    const std::unique_ptr<ir::Graph> graph = experts(64, is_transposed).graph();
    const ir::Payload before = *graph->constants().front().payload;
    const auto of_method = [&](const char* method) {
      const std::unique_ptr<ir::Graph> other = experts(64, is_transposed).graph();
      return quantize({other.get()},
                      recipe_of(R"({"weights": "q4_1", "method": ")" + std::string(method) + "\"}"),
                      options);
    };
    const Report report =
        quantize({graph.get()}, recipe_of(R"({"weights": "q4_1", "method": "gptq"})"), options);
    EXPECT_EQ(report.weights.at(0).scheme, "q4_1 gptq");
    EXPECT_THAT(report.notes, testing::Contains("the data reach no row of 1 of 3 experts of w"));
    const Measure &learned = report.weights[0].measure,
                  nearest = of_method("mse").weights[0].measure;
    ASSERT_TRUE(learned.has_output() && nearest.has_output());
    EXPECT_LT(learned.output_noise, 0.8 * nearest.output_noise);
    if (is_transposed) continue;
    const ir::Payload& stack = *graph->constants().back().payload;
    EXPECT_EQ(stack.sizes, (std::vector<int64_t>{3, 5, 64}));
    const eager::Tensor rows[] = {x.slice(0, 0, 2).contiguous(), {}, x.slice(0, 2, 6).contiguous()};
    const size_t bytes = stack.size_bytes / 3;
    for (size_t e = 0; e < 3; ++e) {
      const std::byte* part = stack.bytes.get() + e * bytes;
      EXPECT_EQ(std::vector<std::byte>(part, part + bytes), blocks_of_expert(before, e, rows[e]))
          << "expert " << e;
    }
  }
}

TEST(quantize, gives_experts_that_no_row_reaches_the_least_error) {
  Options options;
  options.samples = {1, [](size_t) {
                       return std::vector{random_tensor({6, 64}, 3),
                                          eager::Tensor::from(std::vector<int32_t>{0, 0, 0}, {3})};
                     }};
  const std::unique_ptr<ir::Graph> graph = experts(64, false).graph();
  const Report report =
      quantize({graph.get()}, recipe_of(R"({"weights": "q4_1", "method": "gptq"})"), options);
  EXPECT_EQ(report.weights.at(0).scheme, "q4_1 mse");
  EXPECT_FALSE(report.weights.at(0).measure.has_output());
}

TEST(quantize, leaves_a_stack_of_experts_that_something_else_reads) {
  Model m = experts(64, false);
  m.nodes += "%s: f32[3, 5, 64] = relu(%w)\noutput \"s\" = %s\n";
  EXPECT_THAT(refusal(m, int8()), HasSubstr("relu reads it as f32"));
}

}  // namespace
}  // namespace taper::quantize
