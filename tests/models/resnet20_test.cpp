// ResNet-20 with the weights that its author published, against PyTorch's logits of 1000 CIFAR-10
// pictures.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "taper/examples/train_resnet/resnet.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/torch_legacy.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper {
namespace {

std::unique_ptr<ResNet> published_resnet20(const std::filesystem::path& checkpoint) {
  auto model = std::make_unique<ResNet>(std::vector<int>{3, 3, 3});
  eager::NamedTensors state;
  for (const auto& [name, array] : io::read_torch_legacy(checkpoint, "module."))
    state[name] = eager::tensor_of(array);
  for (const auto& [path, tensor] : model->state_dict())  // counters that PyTorch added later
    if (path.ends_with("num_batches_tracked") && !state.contains(path)) state[path] = tensor;
  model->load_state_dict(state);
  model->eval();
  return model;
}

TEST(resnet20, gives_the_published_logits_in_eager_and_exported) {
  TAPER_GOLDEN_DATA_OR_SKIP(checkpoints, "checkpoints/cifar10_resnet");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  const auto model = published_resnet20(checkpoints / "resnet20-12fca82f.th");
  const Tensor golden = eager::load_npy(checkpoints / "resnet20_golden_logits.npy");
  const auto pictures =
      data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});

  Exporter exporter;
  exporter.method("forward", [&](Tensor images) { return (*model)(images); },
                  {input("images", {Dim::symbol("batch", 1, 128), 3, 32, 32})});
  const std::vector<std::byte> program = exporter.write(ExportOptions{});
  std::vector<std::byte> memory(program.size() + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  std::memcpy(aligned, program.data(), program.size());
  std::string message;
  ModuleOptions options;
  options.message = &message;
  Result<Module> device =
      Module::load(Span<const std::byte>(aligned, static_cast<index_t>(program.size())), options);
  ASSERT_TRUE(device.ok()) << message;

  eager::NoGrad guard;
  int64_t right = 0, done = 0;
  double worst = 0;
  for (auto [images, labels] : data::Loader(pictures, {.batch_size = 100})) {
    const Tensor logits = (*model)(images);
    right += sum_of_matches(logits, labels);
    const std::vector<float> got = logits.to_vector<float>(),
                             want = golden.slice(0, done, done + 100).to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
    const auto outputs = device.value().execute("forward", {taper::Input(images.ref())});
    ASSERT_TRUE(outputs.ok()) << device.value().message();
    EXPECT_EQ(std::memcmp(outputs.value()[0].bytes.data(), got.data(), got.size() * sizeof(float)),
              0)
        << "the runtime's bits differ from eager's";
    done += 100;
  }
  EXPECT_LT(worst, 1e-4);
  EXPECT_EQ(right, 999);
}

}  // namespace
}  // namespace taper
