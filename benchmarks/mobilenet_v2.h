// MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381): depthwise convolutions between narrow
// layers.
#pragma once
#include <vector>

#include "taper/exporter/exporter.h"

namespace mobilenet {

using namespace taper;

/// Convolution without bias, batch norm and, if asked for, ReLU6.
struct ConvNorm : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  bool activated;
  TAPER_MODULE(conv, norm)

  ConvNorm(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups, bool activated)
      : conv(in, out,
             {.kernel_size = kernel,
              .stride = stride,
              .padding = kernel / 2,
              .groups = groups,
              .bias = false}),
        norm(out),
        activated(activated) {}
  Tensor forward(Tensor x) {
    x = norm(conv(x));
    return activated ? relu6(x) : x;
  }
};

/// Widened, filtered channel by channel, narrowed; with a shortcut where the shapes are equal.
struct InvertedResidual : nn::Module {
  std::vector<ConvNorm> layers;
  bool shortcut;
  TAPER_MODULE(layers)

  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t expansion)
      : shortcut(stride == 1 && in == out) {
    const int64_t wide = in * expansion;
    if (expansion != 1) layers.emplace_back(in, wide, 1, 1, 1, true);
    layers.emplace_back(wide, wide, 3, stride, wide, true);
    layers.emplace_back(wide, out, 1, 1, 1, false);
  }
  Tensor forward(Tensor x) {
    Tensor y = x;
    for (ConvNorm& layer : layers) y = layer(y);
    return shortcut ? x + y : y;
  }
};

/// (batch, 3, height, width) -> (batch, 1000)
struct MobileNetV2 : nn::Module {
  ConvNorm first{3, 32, 3, 2, 1, true}, last{320, 1280, 1, 1, 1, true};
  std::vector<InvertedResidual> blocks;
  nn::Linear classifier{1280, 1000};
  TAPER_MODULE(first, blocks, last, classifier)

  MobileNetV2() {
    struct Stage {
      int64_t expansion, channels, count, stride;
    };
    int64_t in = 32;
    for (const auto& [expansion, channels, count, stride] :
         {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
          Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
      for (int64_t i = 0; i < count; ++i) {
        blocks.emplace_back(in, channels, i == 0 ? stride : 1, expansion);
        in = channels;
      }
    set_names();
  }
  Tensor forward(Tensor x) {
    x = first(x);
    for (InvertedResidual& block : blocks) x = block(x);
    return classifier(mean(last(x), {2, 3}));
  }
};

}  // namespace mobilenet
