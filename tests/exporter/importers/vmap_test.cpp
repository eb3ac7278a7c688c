// Functions under torch.vmap, beyond what pt2_goldens compares with PyTorch's results.
#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/trace/trace.h"
#include "taper/tests/exporter/importers/models.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using testing::HasSubstr;

// A mask is a few broadcast operators. A loop over batches, queries and keys would be slow.
TEST(pt2_vmap, computes_a_mask_without_loops) {
  Model model = Model::load(tests::test_data("pt2/vmap_mask.pt2"));
  const auto graph = trace("forward", model.function(), model.input_specs(), model.output_names());
  EXPECT_GT(graph->nodes().size(), 5u);
  for (const ir::Node& node : graph->nodes()) EXPECT_TRUE(node.bodies.empty());
}

// Along a direction, against central differences.
TEST(pt2_vmap, has_the_derivatives_of_its_operators) {
  Model model = Model::load(tests::test_data("pt2/vmap_operators.pt2"));
  eager::Generator generator(7);
  const auto random = [&](const eager::Dims& sizes) {
    return eager::randn(sizes, DType::f32, generator);
  };
  const Tensor x = random({3, 3, 6}), along = random({3, 3, 6}), y = random({3, 3});
  const auto loss = [&](const Tensor& at) {
    const auto results = model.forward({at, y, eager::arange(3)});
    return eager::sum(results.at(2) * 0.5) + eager::sum(results.at(3));
  };
  const float step = 1e-2F;
  const float difference = (loss(x + along * step) - loss(x - along * step)).item<float>();
  Tensor at = x.clone();
  at.set_requires_grad(true);
  loss(at).backward();
  const float slope = eager::sum(at.grad() * along).item<float>();
  EXPECT_GT(std::abs(slope), 0.1F);
  EXPECT_NEAR(slope, difference / (2 * step), 0.02F * std::abs(slope));
}

TEST(pt2_vmap, refuses_other_writes_in_place) {
  Model model = Model::load(tests::test_data("pt2_refused/written_in_vmap.pt2"));
  const std::string why = refusal([&] { model.forward({eager::ones({2, 4})}); });
  EXPECT_THAT(why, HasSubstr("cumsum_"));
  EXPECT_THAT(why, HasSubstr("inside of torch.vmap; call run_decompositions()"));
}

}  // namespace
}  // namespace taper::pt2
