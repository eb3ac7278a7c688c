// Weights that a model stores in halves and widens: who reads them as they are.
#include <gmock/gmock.h>

#include <random>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/trace/trace.h"

namespace taper::passes {
namespace {

using namespace eager;
using testing::ElementsAre;

Tensor random_weight(const Ints& sizes, DType dtype) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<size_t>(sizes[0] * sizes[1]));
  for (float& v : values) v = distribution(engine);
  return Tensor::from(values, sizes).to(dtype);
}

struct Passed {
  std::unique_ptr<ir::Graph> graph;
  std::vector<std::string> operators;
  std::vector<Layout> layouts;
};

/// The graph of a function of f32 (3, 20) after folding and the pass.
Passed after_passes(const std::function<Tensor(const Tensor&)>& function, bool exact) {
  Passed p;
  p.graph = trace(
      "f", [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{function(in[0])}; },
      {input("x", {3, 20})});
  bake_read_only_states({p.graph.get()});
  PassContext context(Target(), exact);
  fold_constants(*p.graph, context);
  read_stored_halves(*p.graph, context);
  remove_dead_code(*p.graph, context);
  ir::verify(*p.graph);
  for (const ir::Node& n : p.graph->nodes()) p.operators.emplace_back(name_of(*n.op));
  for (const ir::Constant& c : p.graph->constants()) p.layouts.push_back(c.payload->layout);
  return p;
}

/// `tolerance`: where the processor multiplies bf16, the kernel that reads it rounds x, too.
void expect_results_of(const std::function<Tensor(const Tensor&)>& function, const Passed& passed,
                       float tolerance = 0) {
  const Tensor x = random_weight({3, 20}, DType::f32);
  const auto got = ir::Interpreter(*passed.graph).run({x}).outputs[0].to_vector<float>(),
             want = function(x).to_vector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(read_stored_halves, gives_a_product_the_weight_as_it_is_stored) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor w = random_weight({16, 20}, dtype);
    const auto f = [&](const Tensor& x) { return linear(x, w.to(DType::f32)); };
    const Passed passed = after_passes(f, /*exact=*/dtype == DType::f16);
    EXPECT_THAT(passed.operators, ElementsAre("linear"));
    EXPECT_THAT(passed.layouts,
                ElementsAre(dtype == DType::f16 ? Layout::dense_f16 : Layout::dense_bf16));
    EXPECT_EQ(passed.graph->constants().front().payload->size_bytes, size_t{16 * 20 * 2});
    expect_results_of(f, passed, dtype == DType::bf16 ? 0.02f : 0.0f);
  }
}

TEST(read_stored_halves, widens_bf16_in_an_exact_export) {
  const Tensor w = random_weight({16, 20}, DType::bf16);
  const auto f = [&](const Tensor& x) { return linear(x, w.to(DType::f32)); };
  const Passed passed = after_passes(f, /*exact=*/true);
  EXPECT_THAT(passed.layouts, ElementsAre(Layout::dense));
  EXPECT_EQ(passed.graph->constants().front().payload->dtype, DType::f32);
  expect_results_of(f, passed);
}

TEST(read_stored_halves, widens_only_the_rows_that_are_looked_up) {
  const Tensor w = random_weight({20, 16}, DType::bf16);
  const auto f = [&](const Tensor& x) {
    return embedding(w.to(DType::f32), (x * 3 + 4).to(DType::i64));
  };
  const Passed passed = after_passes(f, /*exact=*/false);
  EXPECT_THAT(passed.operators,
              ElementsAre("mul.Scalar", "add.Scalar", "_to_copy", "embedding", "_to_copy"));
  EXPECT_EQ(passed.graph->constants().back().payload->dtype, DType::bf16);
  expect_results_of(f, passed);
}

TEST(read_stored_halves, leaves_weights_that_other_operators_read) {
  const Tensor w = random_weight({20, 20}, DType::f16);
  const auto f = [&](const Tensor& x) { return x + narrow(w.to(DType::f32), 0, 0, 3); };
  const Passed passed = after_passes(f, /*exact=*/false);
  EXPECT_EQ(passed.graph->constants().back().payload->dtype, DType::f32);
  EXPECT_EQ(passed.graph->constants().back().payload->layout, Layout::dense);
  expect_results_of(f, passed);
}

}  // namespace
}  // namespace taper::passes
