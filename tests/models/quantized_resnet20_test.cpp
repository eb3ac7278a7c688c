// ResNet-20 as PyTorch quantized it (PT2E, static int8), with integer operators: 1000 CIFAR-10
// pictures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "taper/exporter/data/data.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper {
namespace {

using eager::Tensor;

/// The program of a model, with approximate passes, too.
class Program {
 public:
  explicit Program(const std::filesystem::path& path) {
    pt2::Model model = pt2::Model::load(path);
    Exporter exporter;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
    ExportOptions options;
    options.exact = false;
    const std::vector<std::byte> bytes = exporter.write(options);
    memory_.resize(bytes.size() + 64);
    std::byte* aligned =
        memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
    std::memcpy(aligned, bytes.data(), bytes.size());
    ModuleOptions module_options;
    module_options.message = &message_;
    module_ = std::make_unique<Result<Module>>(Module::load(
        Span<const std::byte>(aligned, static_cast<index_t>(bytes.size())), module_options));
  }
  bool ok() const { return module_->ok(); }
  const std::string& message() const { return message_; }
  std::vector<float> run(const Tensor& images) {
    const auto outputs = module_->value().execute("forward", {taper::Input(images.ref())});
    EXPECT_TRUE(outputs.ok()) << module_->value().message();
    const auto& bytes = outputs.value()[0].bytes;
    std::vector<float> values(static_cast<size_t>(bytes.size()) / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }

 private:
  std::vector<std::byte> memory_;
  std::string message_;
  std::unique_ptr<Result<Module>> module_;
};

size_t best(const std::vector<float>& logits, size_t picture) {
  const auto row = logits.begin() + static_cast<ptrdiff_t>(picture * 10);
  return static_cast<size_t>(std::max_element(row, row + 10) - row);
}

TEST(quantized_resnet20, computes_with_integers_and_is_right_as_often_as_pytorch) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/q_resnet20_pt2e_int8.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "pt2/q_resnet20_pt2e_int8.all1000.safetensors");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  Program program(path);
  ASSERT_TRUE(program.ok()) << program.message();
  const io::SafeTensors file = io::read_safetensors(golden);
  const std::vector<float> want = eager::tensor_of(file.at("logits")).to_vector<float>();
  const std::vector<int64_t> labels =
      eager::tensor_of(file.at("labels")).to(DType::i64).to_vector<int64_t>();

  std::vector<float> got;
  const auto pictures =
      data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  for (auto [images, unused] : data::Loader(pictures, {.batch_size = 100})) {
    const std::vector<float> logits = program.run(images);
    got.insert(got.end(), logits.begin(), logits.end());
  }
  ASSERT_EQ(got.size(), want.size());
  constexpr double step = 0.24062825739383698;  // the output's scale
  int right = 0, agree = 0, equal = 0, far = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    right += best(got, i) == static_cast<size_t>(labels[i]);
    agree += best(got, i) == best(want, i);
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const double steps = std::fabs(static_cast<double>(got[i]) - want[i]) / step;
    equal += steps<0.5, far += steps> 3.5;
  }
  EXPECT_GE(right, 999);
  EXPECT_GE(agree, 1000);
  EXPECT_EQ(far, 0) << "a step goes on through the network, but not far";
  EXPECT_GE(equal, 5000);
  RecordProperty("equal", equal);
}

// Processors with AVX-512 VNNI, with AVX2 and without either run this (CMakeLists.txt).
TEST(quantized_resnet20, gives_the_same_integers_on_every_processor) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/q_resnet20_pt2e_int8.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  Program program(path);
  ASSERT_TRUE(program.ok()) << program.message();
  const auto pictures =
      data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  for (auto [images, unused] : data::Loader(pictures, {.batch_size = 8})) {
    uint32_t digest = 1;
    for (const float logit : program.run(images))
      digest = digest * 31 + static_cast<uint32_t>(std::lround(logit / 0.24062825739383698));
    EXPECT_EQ(digest, 4183375952u);
    break;
  }
}

}  // namespace
}  // namespace taper
