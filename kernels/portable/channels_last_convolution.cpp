// taper::convolution: two spatial dimensions, channels last, and a program of pointwise operators
// behind it. The bits are those of convolution's portable kernel.
#include "taper/kernels/portable/image_program.h"
#include "taper/kernels/portable/widened.h"
#include "taper/kernels/shapes/channels_last.h"

namespace taper::portable {
namespace {

using In = View<const float>;
using Ints = Span<const int64_t>;

/// Results that are computed together: neighbouring channels of a pixel.
constexpr int channels = panel_width;

/// Where weights lie: channel o, place k along (input channel, tap).
struct Weights {
  const float* data;
  index_t depth;
  bool panels;
  const float* at(index_t o) const {
    return panels ? data + o / panel_width * panel_width * depth + o % panel_width
                  : data + o * depth;
  }
  index_t channel_step() const { return panels ? 1 : depth; }
  index_t place_step() const { return panels ? panel_width : 1; }
};

/// `count` results of one pixel from channel `first` on: bias, then the products over the input
/// channels and their taps. Rows outside of the image are left out, and columns outside add zeros,
/// as in convolution's kernel. `shared`: all belong to one group, and see the same inputs.
template <bool shared>
void pixel(const Correlation& c, const Weights& w, const float* image, const float* bias, index_t y,
           index_t x, index_t first, int count, float* to) {
  float sum[channels];
  index_t group_inputs[channels];  // where the inputs of each result begin
  for (int o = 0; o < channels; ++o) {
    const index_t channel = first + (o < count ? o : 0);
    sum[o] = bias != nullptr ? bias[channel] : 0.0f;
    group_inputs[o] = channel / c.outputs * c.inputs;
  }
  const index_t pixel_step = c.groups * c.inputs;
  const float* weight = w.at(first);
  const index_t channel_step = w.channel_step();
  for (index_t i = 0; i < c.inputs; ++i)
    for (index_t ky = 0; ky < c.kernel[1]; ++ky) {
      const index_t row = y * c.stride[1] - c.padding[1] + ky * c.dilation[1];
      if (row < 0 || row >= c.in[1]) {
        weight += c.kernel[2] * w.place_step();
        continue;
      }
      for (index_t kx = 0; kx < c.kernel[2]; ++kx, weight += w.place_step()) {
        const index_t column = x * c.stride[2] - c.padding[2] + kx * c.dilation[2];
        if (column < 0 || column >= c.in[2]) {
          for (int o = 0; o < count; ++o) sum[o] += 0.0f;
          continue;
        }
        const float* from = image + (row * c.in[2] + column) * pixel_step + i;
        if constexpr (shared) {
          const float value = from[group_inputs[0]];
          for (int o = 0; o < count; ++o) sum[o] += weight[o * channel_step] * value;
        } else {
          for (int o = 0; o < count; ++o)
            sum[o] += weight[o * channel_step] * from[group_inputs[o]];
        }
      }
    }
  for (int o = 0; o < count; ++o) to[o] = sum[o];
}

struct Plan {
  Correlation c;
  index_t to_pixel;  // from one pixel of the result to the next one
};

Error prepare(Context& context, Plan& plan, In input, In weight, Maybe<In>, Ints stride,
              Ints padding, Ints dilation, int64_t groups, ViewList<const float>, Ints,
              Span<const double>, Pixels out) {
  plan.c = image_correlation(input.shape(), out.shape(), weight.shape(), stride, padding, dilation,
                             groups);
  return take_pixel_step(context, out, plan.to_pixel);
}

Error run(Context& context, const Plan& plan, In input, In weight, Maybe<In> bias, Ints, Ints, Ints,
          int64_t, ViewList<const float> others, Ints program, Span<const double> constants,
          Pixels out) {
  const Correlation& c = plan.c;
  const index_t all = c.groups * c.outputs;
  const Weights w{weight.data(), c.inputs * c.taps(), weight.layout() != Layout::dense};
  const auto finish = program_over(program, constants, others, out, plan.to_pixel);
  parallel_for(context.threads, c.batch * c.out[1], [&](index_t task) {
    const float* image = input.data() + task / c.out[1] * c.in_plane() * c.groups * c.inputs;
    for (index_t x = 0; x < c.out[2]; ++x)
      for (index_t first = 0; first < all; first += channels) {
        const int count = static_cast<int>(all - first < channels ? all - first : channels);
        const bool shared = first / c.outputs == (first + count - 1) / c.outputs;
        (shared ? pixel<true>
                : pixel<false>)(c, w, image, bias ? bias->data() : nullptr, task % c.out[1], x,
                                first, count,
                                out.data() + (task * c.out[2] + x) * plan.to_pixel + first);
      }
    if (!program.empty())
      finish.run(fused::run_portable_program, task * c.out[2], c.out[2], 0, all);
  });
  return Error::ok;
}

// Filters that a file may hold in panels or in halves.
constexpr WidenedPackings<1> reads_filters{to_f32_layout<1, Layout::panels_of_first>};

}  // namespace

TAPER_RECORD(taper_convolution, taper_convolution_f32, {}, reads_filters, prepare, run)

}  // namespace taper::portable
