// LeNet, whose linear layers are quantized, reads the test pictures of MNIST about as well as
// before.
#include <gtest/gtest.h>

#include <algorithm>

#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/tests/models/imported.h"

namespace taper::quantize {
namespace {

data::Images pictures(const std::filesystem::path& mnist, const char* part) {
  return data::mnist(mnist / part).normalize({.1307f}, {.3081f});
}

/// How many of the 10,000 digits the program of a recipe reads.
int64_t digits_read(const std::filesystem::path& file, const std::filesystem::path& mnist,
                    const std::string& recipe, bool calibrated) {
  pt2::Model model = pt2::Model::load(file);
  const eager::NoGrad guard;
  Exporter exporter;
  exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  ExportOptions options{.exact = false};
  options.before_passes = [&](const std::vector<ir::Graph*>& graphs) {
    std::vector<std::vector<eager::Tensor>> calls;
    if (calibrated)
      for (auto [images, labels] :
           data::Loader(pictures(mnist, "train").range(0, 128), {.batch_size = 32}))
        calls.push_back({images});
    const Report report = quantize(graphs, find_recipe(recipe), {.samples = std::move(calls)});
    // only 8-bit floats are for weights of convolutions, too
    EXPECT_EQ(std::ranges::count_if(report.weights, &WeightReport::is_quantized),
              recipe == "fp8" ? 5 : 3);
  };
  const std::vector<std::byte> program = exporter.write(options);
  Module module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())))
          .value();
  int64_t right = 0;
  for (auto [images, labels] : data::Loader(pictures(mnist, "t10k"), {.batch_size = 500})) {
    const OwnedTensor scores = module.execute("forward", {Input(images.ref())}).value()[0];
    const std::vector<int64_t> truth = labels.to_vector<int64_t>();
    for (size_t i = 0; i < truth.size(); ++i)
      right += tests::index_of_largest(scores.data<float>() + i * 10, 10) == truth[i];
  }
  return right;
}

// The float model reads 9813. Others read 9814 in 8 bits and 9784 by GPTQ in 4 bits, where
// convolutions are quantized as well. Another processor may read a few digits differently.
TEST(quantized_lenet, reads_digits_as_before) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  EXPECT_GE(digits_read(file, mnist, "int8-weights", false), 9800);
  EXPECT_GE(digits_read(file, mnist, "int8-dynamic", false), 9800);
  EXPECT_GE(digits_read(file, mnist, "fp8", false), 9800);  // others read 9811
  EXPECT_GE(digits_read(file, mnist, "int4-g32", false), 9800);
  EXPECT_GE(digits_read(file, mnist, "int4-g32", true), 9800);
}

}  // namespace
}  // namespace taper::quantize
