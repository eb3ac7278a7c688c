#include "taper/exporter/nn/resampling.h"

#include "taper/exporter/eager/eager.h"

namespace taper::nn {

Tensor PixelShuffle::forward(const Tensor& input, Location here) {
  return eager::pixel_shuffle(input, factor_, here);
}
Tensor PixelUnshuffle::forward(const Tensor& input, Location here) {
  return eager::pixel_unshuffle(input, factor_, here);
}
Tensor ChannelShuffle::forward(const Tensor& input, Location here) {
  return eager::channel_shuffle(input, Dim(groups_), here);
}

Upsample::Upsample(UpsampleOptions options, Location here) : options_(std::move(options)) {
  if (options_.size.empty() == options_.scale_factor.empty())
    throw EagerError(here, "Upsample: takes either a size or a scale_factor");
}

Tensor Upsample::forward(const Tensor& input, Location here) {
  const UpsampleOptions& o = options_;
  if (!o.size.empty())
    return eager::interpolate(input, Dims(o.size.begin(), o.size.end()), o.mode, o.align_corners,
                              false, here);
  std::vector<double> factors = o.scale_factor;
  if (factors.size() == 1 && input.rank() > 3)
    factors.resize(static_cast<size_t>(input.rank()) - 2, factors[0]);
  return eager::interpolate_by(input, factors, o.mode, o.align_corners, false, here);
}

Tensor Unfold::forward(const Tensor& input, Location here) {
  const WindowOptions& o = options_;
  return eager::im2col(input, kernel_size_.ints(), o.dilation.ints(), o.padding.ints(),
                       o.stride.ints(), here);
}
Tensor Fold::forward(const Tensor& input, Location here) {
  const WindowOptions& o = options_;
  return eager::col2im(input, output_size_.dims(), kernel_size_.ints(), o.dilation.ints(),
                       o.padding.ints(), o.stride.ints(), here);
}

}  // namespace taper::nn
