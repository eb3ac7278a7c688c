// A published network with published weights: ResNet-20 on CIFAR-10, built from modules, read from
// PyTorch's old checkpoint format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "taper/exporter/data/images.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/torch_legacy.h"
#include "taper/exporter/nn/nn.h"
#include "taper/tests/support/data.h"

namespace taper::nn {
namespace {

/// He et al., "Deep residual learning for image recognition", 2016, with parameter-free shortcuts
/// (option A): where a block halves the picture, its shortcut takes every second pixel and adds
/// channels of zeros.
struct Block : Module {
  Conv2d conv1, conv2;
  BatchNorm2d bn1, bn2;
  TAPER_MODULE(conv1, bn1, conv2, bn2)
  int64_t stride, added_channels;

  Block(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, {.kernel_size = 3, .stride = stride, .padding = 1, .bias = false}),
        conv2(out, out, {.kernel_size = 3, .padding = 1, .bias = false}),
        bn1(out),
        bn2(out),
        stride(stride),
        added_channels(out - in) {}

  Tensor forward(Tensor x) {
    const Tensor y = bn2(conv2(eager::relu(bn1(conv1(x)))));
    if (stride > 1) x = x.slice(2, 0, INT64_MAX, stride).slice(3, 0, INT64_MAX, stride);
    if (added_channels > 0)
      x = eager::call<ops::constant_pad_nd>(
          {}, x, Dims{0, 0, 0, 0, added_channels / 2, added_channels / 2}, Scalar(0));
    return eager::relu(x + y);
  }
};

struct ResNet20 : Module {
  Conv2d conv1{3, 16, {.kernel_size = 3, .padding = 1, .bias = false}};
  BatchNorm2d bn1{16};
  std::vector<Block> layer1{Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1)};
  std::vector<Block> layer2{Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1)};
  std::vector<Block> layer3{Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1)};
  Linear linear{64, 10};
  TAPER_MODULE(conv1, bn1, layer1, layer2, layer3, linear)

  Tensor forward(Tensor x) {
    x = eager::relu(bn1(conv1(x)));
    for (auto* layer : {&layer1, &layer2, &layer3})
      for (Block& block : *layer) x = block(x);
    return linear(eager::mean(x, eager::Ints{2, 3}));
  }
};

TEST(resnet20, gives_the_logits_that_pytorch_gives_with_the_published_weights) {
  TAPER_GOLDEN_DATA_OR_SKIP(checkpoint, "checkpoints/cifar10_resnet/resnet20-12fca82f.th");
  TAPER_GOLDEN_DATA_OR_SKIP(pictures, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "checkpoints/cifar10_resnet/resnet20_golden_logits.npy");
  ResNet20 model;
  NamedTensors state;
  for (const auto& [name, array] : io::read_torch_legacy(checkpoint, "module."))
    state[name] = eager::tensor_of(array);
  for (const auto& [name, buffer] :
       model.named_buffers())  // counted only since PyTorch 0.4.1, and unused here
    if (name.ends_with("num_batches_tracked")) state[name] = buffer;
  model.load_state_dict(state);
  model.eval();

  const data::Images images =
      data::cifar10(pictures).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  const io::Array logits_of_pytorch = io::read_npy(golden);
  const std::span<const float> expected = logits_of_pytorch.values<float>();
  eager::NoGrad guard;
  constexpr int64_t batch = 100, classes = 10;
  int right = 0;
  double worst = 0;
  for (int64_t first = 0; first < images.size(); first += batch) {
    std::vector<int64_t> examples(batch);
    for (int64_t i = 0; i < batch; ++i) examples[static_cast<size_t>(i)] = first + i;
    const auto [x, labels] = images.batch(examples, 0);
    const std::vector<float> logits = model(x).to_vector<float>();
    for (int64_t i = 0; i < batch; ++i) {
      const auto row = logits.begin() + i * classes;
      right += std::max_element(row, row + classes) - row == labels.data<int64_t>()[i];
      for (int64_t c = 0; c < classes; ++c)
        worst = std::max(worst, std::abs(static_cast<double>(row[c]) -
                                         expected[static_cast<size_t>((first + i) * classes + c)]));
    }
  }
  EXPECT_LT(worst, 1e-4);
  EXPECT_EQ(right, 999);
}

}  // namespace
}  // namespace taper::nn
