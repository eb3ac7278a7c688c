#pragma once
#include "taper/exporter/exporter.h"

/// LeNet-5 with ReLUs (LeCun, Bottou, Bengio, Haffner: "Gradient-based learning applied to document
/// recognition", 1998).
struct LeNet : taper::nn::Module {
  taper::nn::Conv2d conv1{1, 6, {.kernel_size = 5, .padding = 2}};
  taper::nn::Conv2d conv2{6, 16, {.kernel_size = 5}};
  taper::nn::Linear fc1{16 * 5 * 5, 120}, fc2{120, 84}, fc3{84, 10};
  TAPER_MODULE(conv1, conv2, fc1, fc2, fc3)  // gives parameters their names: "conv1.weight", …

  taper::Tensor forward(taper::Tensor x) {  // (batch, 1, 28, 28) -> (batch, 10)
    x = max_pool2d(relu(conv1(x)), 2);
    x = max_pool2d(relu(conv2(x)), 2);
    return fc3(relu(fc2(relu(fc1(flatten(x, 1))))));
  }
};
