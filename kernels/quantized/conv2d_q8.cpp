// taper::conv2d_q8 and taper::linear_q8: the plain kernels.
#include "taper/kernels/quantized/byte_convolution.h"

namespace taper::quantized {
namespace {

using Bytes = View<const int8_t>;
using Ints = Span<const int64_t>;

constexpr index_t rows = BytePanels::rows;

// What a run needs.
struct Run {
  const ByteConvolution& v;
  BytePanels weight;
  ByteChannels channels;
  Rounding rounding;

  int32_t value(const int8_t* at) const { return at == nullptr ? channels.zero_point : *at; }

  /// The sums of one panel at one place of the result. `first`: its first channel.
  void sum(const int8_t* image, index_t y, index_t x, index_t panel, index_t first, index_t count,
           int32_t* sums) const {
    const portable::Correlation& c = v.c;
    const int8_t* w = weight.panel(panel);
    const index_t inputs0 = first / c.outputs * c.inputs;
    index_t k = 0;
    for (index_t ky = 0; ky < c.kernel[1]; ++ky)
      for (index_t kx = 0; kx < c.kernel[2]; ++kx) {
        const index_t place = v.place(y, x, ky, kx);
        const int8_t* from = place < 0 ? nullptr : image + place + inputs0;
        if (v.is_depthwise()) {
          const int8_t* tap = w + k / 4 * BytePanels::vector_bytes + k % 4;
          for (index_t r = 0; r < count; ++r)
            sums[r] = add_product(sums[r], value(from == nullptr ? nullptr : from + r), tap[4 * r]);
          ++k;
          continue;
        }
        for (index_t i = 0; i < c.inputs; ++i, ++k)
          add_place(w, k, value(from == nullptr ? nullptr : from + i), sums);
      }
  }

  void pixel(const int8_t* image, index_t y, index_t x, int8_t* to) const {
    const index_t all = v.part_channels(), panels = v.part_panels();
    for (index_t p = 0; p < v.parts() * panels; ++p) {
      const index_t begin = p % panels * rows, first = p / panels * all + begin,
                    count = all - begin < rows ? all - begin : rows;
      int32_t sums[rows] = {};
      for (index_t r = 0; r < count; ++r) sums[r] = channels.first(first + r);
      sum(image, y, x, p, first, count, sums);
      for (index_t r = 0; r < count; ++r)
        to[first + r] = rounding(static_cast<float>(sums[r]) * channels.scale(first + r));
    }
  }
};

Error linear(Context& context, Bytes input, Bytes weight, View<const float> weight_scales,
             View<const int32_t> offsets, double input_scale, int64_t input_zero_point,
             double output_scale, int64_t output_zero_point, Ints range, View<int8_t> out) {
  const BytePanels w(weight);
  const ByteChannels channels(weight_scales, offsets, input_scale, input_zero_point, output_scale);
  const Rounding rounding(output_zero_point, range[0], range[1]);
  const index_t depth = input.size(input.rank() - 1), columns = weight_scales.size(0);
  if (out.numel() == 0) return Error::ok;
  const index_t count = out.numel() / columns, panels = BytePanels::panels_of(columns);
  parallel_for(context.threads, panels, [&](index_t p) {
    const index_t first = p * rows, here = columns - first < rows ? columns - first : rows;
    for (index_t i = 0; i < count; ++i) {
      int32_t sums[rows] = {};
      for (index_t r = 0; r < here; ++r) sums[r] = channels.first(first + r);
      for (index_t k = 0; k < depth; ++k)
        add_place(w.panel(p), k, input.data()[i * depth + k], sums);
      for (index_t r = 0; r < here; ++r)
        out.data()[i * columns + first + r] =
            rounding(static_cast<float>(sums[r]) * channels.scale(first + r));
    }
  });
  return Error::ok;
}

}  // namespace

Error plain_convolution(Context& context, Bytes input, Bytes weight,
                        View<const float> weight_scales, View<const int32_t> offsets,
                        Ints kernel_size, Ints stride, Ints padding, Ints dilation, int64_t groups,
                        double input_scale, int64_t input_zero_point, double output_scale,
                        int64_t output_zero_point, Ints range, View<int8_t> out) {
  if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
  const ByteConvolution v =
      byte_convolution(input.shape(), out.shape(), kernel_size, stride, padding, dilation, groups);
  const Run run{v,
                BytePanels(weight),
                {weight_scales, offsets, input_scale, input_zero_point, output_scale},
                {output_zero_point, range[0], range[1]}};
  const index_t row = v.c.out[2] * v.out_channels();
  parallel_for(context.threads, v.c.batch * v.c.out[1], [&](index_t task) {
    const int8_t* image = input.data() + task / v.c.out[1] * v.c.in_plane() * v.in_channels();
    for (index_t x = 0; x < v.c.out[2]; ++x)
      run.pixel(image, task % v.c.out[1], x, out.data() + task * row + x * v.out_channels());
  });
  return Error::ok;
}

TAPER_KERNEL(taper_conv2d_q8, i8, plain_convolution)
TAPER_KERNEL(taper_linear_q8, i8, linear)

}  // namespace taper::quantized
