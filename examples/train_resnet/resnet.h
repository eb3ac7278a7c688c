// ResNets for 32 x 32 pictures with parameter-free shortcuts (option A): they take every second
// pixel and pad channels with zeros.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/exporter.h"

/// Two 3 x 3 convolutions and a shortcut. (batch, in, h, w) -> (batch, out, h / stride, w / stride)
struct BasicBlock : taper::nn::Module {
  taper::nn::Conv2d conv1, conv2;
  taper::nn::BatchNorm2d bn1, bn2;
  int64_t in, out, stride;
  TAPER_MODULE(conv1, bn1, conv2, bn2)

  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, {.kernel_size = 3, .stride = stride, .padding = 1, .bias = false}),
        conv2(out, out, {.kernel_size = 3, .padding = 1, .bias = false}),
        bn1(out),
        bn2(out),
        in(in),
        out(out),
        stride(stride) {}

  taper::Tensor forward(taper::Tensor x) {
    taper::Tensor shortcut = x;
    if (in != out) {
      shortcut = x.slice(2, 0, INT64_MAX, stride).slice(3, 0, INT64_MAX, stride);
      shortcut = constant_pad_nd(shortcut, {0, 0, 0, 0, (out - in) / 2, (out - in) / 2});
    }
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut);
  }
};

/// (batch, 3, 32, 32) -> (batch, 10). ResNet-20 has {3, 3, 3} blocks, ResNet-56 {9, 9, 9}.
struct ResNet : taper::nn::Module {
  taper::nn::Conv2d conv1{3, 16, {.kernel_size = 3, .padding = 1, .bias = false}};
  taper::nn::BatchNorm2d bn1{16};
  std::vector<BasicBlock> layer1, layer2, layer3;
  taper::nn::Linear linear{64, 10};

  explicit ResNet(const std::vector<int>& blocks) {
    layer1 = stage(16, 16, blocks[0], 1);
    layer2 = stage(16, 32, blocks[1], 2);
    layer3 = stage(32, 64, blocks[2], 2);
    set_names();
  }
  void visit_members(taper::nn::Members& members) override {
    members.all("conv1, bn1, layer1, layer2, layer3, linear", conv1, bn1, layer1, layer2, layer3,
                linear);
  }

  taper::Tensor operator()(taper::Tensor x) {
    x = relu(bn1(conv1(x)));
    for (auto* stage : {&layer1, &layer2, &layer3})
      for (BasicBlock& block : *stage) x = block(x);
    return linear(mean(x, {2, 3}));
  }

 private:
  static std::vector<BasicBlock> stage(int64_t in, int64_t out, int count, int64_t stride) {
    std::vector<BasicBlock> list;
    for (int i = 0; i < count; ++i) list.emplace_back(i == 0 ? in : out, out, i == 0 ? stride : 1);
    return list;
  }
};

/// How many rows of `logits` (batch, classes) are largest at their label.
inline int64_t sum_of_matches(const taper::Tensor& logits, const taper::Tensor& labels) {
  return sum(eq(argmax(logits, 1), labels)).item<int64_t>();
}
