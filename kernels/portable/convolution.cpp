// Convolution over 1, 2 or 3 dimensions, transposed or not, and its gradients.
//
// Five results come from three loops over one geometry, that of the cross-correlation y = x * w:
//   from_input   y from x and w    convolution;            transposed: the gradient of its input
//   from_output  x from y and w    transposed convolution; else: the gradient of the input
//   weights      w from x and y    the gradient of the weight of both
// Nothing is packed or copied out: four channels by eight columns are summed in registers, taps in
// row-major order.
#include "taper/kernels/shapes/convolution.h"

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/correlation.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/widened.h"

namespace taper::portable {
namespace {

/// A 1x1 kernel that touches every element treats the image as one row.
Correlation joined(Correlation g) {
  if (g.taps() == 1 && g.in_plane() == g.out_plane() &&
      g.stride[0] * g.stride[1] * g.stride[2] == 1) {
    g.in[2] = g.out[2] = g.in_plane();
    g.in[0] = g.in[1] = g.out[0] = g.out[1] = 1;
    g.padding[0] = g.padding[1] = g.padding[2] = 0;
  }
  return g;
}

inline constexpr int channels = 4, columns = 8;  // of the tile that is summed in registers

/// One side of the cross-correlation read from the other. Along dimension d, position `to` of the
/// result and tap k meet the source at: to * stride - padding + k * dilation going forward, (to +
/// padding - k * dilation) / stride going back, if whole.
template <bool backward>
struct Reach {
  const Correlation& g;
  const index_t* extent;  ///< of the source

  bool source(int d, index_t to, index_t k, index_t& from) const {
    from = backward ? to + g.padding[d] - k * g.dilation[d]
                    : to * g.stride[d] - g.padding[d] + k * g.dilation[d];
    if (backward && g.stride[d] != 1) {
      if (from < 0 || from % g.stride[d] != 0) return false;
      from /= g.stride[d];
    }
    return from >= 0 && from < extent[d];
  }
};

/// What all tiles of one call share. Strides of weights and channels in elements.
template <class T>
struct Sides {
  const T *source, *weight, *bias;  ///< bias: nullptr if absent
  T* result;
  index_t source_channels, result_channels;  ///< of one group
  index_t weight_source, weight_result;      ///< from one channel's weights to the next one's
  index_t weight_tap = 1;                    ///< from one tap to the next
  index_t panel = 0;  ///< from one panel of filters to the next (Layout); 0: they are dense

  /// The weights of channel `channel` of the result, in all groups. Going forward.
  const T* filter(index_t channel) const {
    return panel == 0 ? weight + channel * weight_result
                      : weight + channel / panel_width * panel + channel % panel_width;
  }
};

/// `columns` neighbours of a source row, one step apart each; those outside the row count as
/// absent.
template <class T>
inline void read_columns(const T* row, index_t extent, index_t from, index_t step, T* values,
                         bool* inside) {
  for (int c = 0; c < columns; ++c) {
    const index_t at = from + c * step;
    inside[c] = at >= 0 && at < extent;
    values[c] = inside[c] ? row[at] : T(0);
  }
}

/// A tile: `rows` channels of the result at one (depth, height) and at columns first, first +
/// apart, ….
template <bool backward, class T>
void tile(const Correlation& g, const Sides<T>& s, index_t image, index_t group, index_t channel,
          int rows, index_t depth, index_t height, index_t first, index_t apart) {
  const index_t* from_extent = backward ? g.out : g.in;
  const index_t* to_extent = backward ? g.in : g.out;
  const index_t from_plane = backward ? g.out_plane() : g.in_plane(),
                to_plane = backward ? g.in_plane() : g.out_plane();
  const Reach<backward> reach{g, from_extent};
  const index_t step = backward ? 1 : g.stride[2];

  T sum[channels][columns];
  const T* weight[channels];
  for (int r = 0; r < channels; ++r) {
    const index_t c = group * s.result_channels + channel +
                      (r < rows ? r : 0);  // a missing row repeats the first one
    for (int k = 0; k < columns; ++k) sum[r][k] = s.bias != nullptr ? s.bias[c] : T(0);
    weight[r] = backward ? s.weight + group * g.outputs * s.weight_source +
                               (channel + (r < rows ? r : 0)) * s.weight_result
                         : s.filter(c);
  }
  const T* source = s.source + (image * g.groups + group) * s.source_channels * from_plane;

  for (index_t channel_from = 0; channel_from < s.source_channels;
       ++channel_from, source += from_plane) {
    index_t tap = channel_from * s.weight_source;
    for (index_t kd = 0; kd < g.kernel[0]; ++kd) {
      for (index_t kh = 0; kh < g.kernel[1]; ++kh) {
        index_t d, h;
        if (!reach.source(0, depth, kd, d) || !reach.source(1, height, kh, h)) {
          tap += g.kernel[2] * s.weight_tap;
          continue;
        }
        const T* row = source + (d * from_extent[1] + h) * from_extent[2];
        for (index_t kw = 0; kw < g.kernel[2]; ++kw, tap += s.weight_tap) {
          index_t from = backward ? first + g.padding[2] - kw * g.dilation[2]
                                  : first * g.stride[2] - g.padding[2] + kw * g.dilation[2];
          if (backward && g.stride[2] != 1) {
            if ((from % g.stride[2]) != 0)
              continue;  // true of the whole tile: its columns are one stride apart
            from /= g.stride[2];
          }
          T x[columns];
          if (from >= 0 && from + (columns - 1) * step < from_extent[2]) {
            if (step == 1) {
              for (int c = 0; c < columns; ++c) x[c] = row[from + c];
            } else {
              for (int c = 0; c < columns; ++c) x[c] = row[from + c * step];
            }
            for (int r = 0; r < channels; ++r)
              for (int c = 0; c < columns; ++c) sum[r][c] += weight[r][tap] * x[c];
          } else {
            bool inside[columns];
            read_columns(row, from_extent[2], from, step, x, inside);
            for (int r = 0; r < channels; ++r)
              for (int c = 0; c < columns; ++c)
                sum[r][c] += inside[c] ? weight[r][tap] * x[c] : T(0);
          }
        }
      }
    }
  }

  for (int r = 0; r < rows; ++r) {
    T* out = s.result + ((image * g.groups + group) * s.result_channels + channel + r) * to_plane +
             (depth * to_extent[1] + height) * to_extent[2];
    for (int c = 0; c < columns; ++c)
      if (const index_t at = first + c * apart; at < to_extent[2]) out[at] = sum[r][c];
  }
}

/// Going forward the columns of a tile are neighbours; going back they are one stride apart, so
/// that all of them meet the same taps.
template <bool backward, class T>
void correlate(const Context& context, const Correlation& g, const Sides<T>& s) {
  const index_t* extent = backward ? g.in : g.out;
  const index_t blocks = pieces(s.result_channels, channels), phases = backward ? g.stride[2] : 1;
  parallel_for(context.threads, g.batch * g.groups * blocks * extent[0], [&](index_t task) {
    const index_t depth = task % extent[0], block = task / extent[0] % blocks,
                  group = task / extent[0] / blocks % g.groups;
    const index_t image = task / extent[0] / blocks / g.groups, channel = block * channels;
    const int rows = static_cast<int>(
        s.result_channels - channel < channels ? s.result_channels - channel : channels);
    for (index_t height = 0; height < extent[1]; ++height)
      for (index_t phase = 0; phase < phases; ++phase)
        for (index_t first = phase; first < extent[2]; first += columns * phases)
          tile<backward>(g, s, image, group, channel, rows, depth, height, first, phases);
  });
}

template <class T>
void from_input(const Context& context, const Correlation& g, const T* x, const T* w, const T* bias,
                T* y, Layout layout = Layout::dense) {
  const index_t filter = g.inputs * g.taps();
  Sides<T> s{x, w, bias, y, g.inputs, g.outputs, g.taps(), filter};
  if (layout != Layout::dense) {
    s.weight_tap = panel_width, s.panel = panel_width * filter;
    s.weight_source *= panel_width;
  }
  correlate<false, T>(context, g, s);
}
template <class T>
void from_output(const Context& context, const Correlation& g, const T* y, const T* w,
                 const T* bias, T* x) {
  correlate<true, T>(context, g,
                     {y, w, bias, x, g.outputs, g.inputs, g.inputs * g.taps(), g.taps()});
}

/// The gradient of the weight: one dot product over (batch, out…) for each tap, in eight lanes
/// along the rows.
template <class T>
void weights(const Context& context, const Correlation& g, const T* x, const T* y, T* w) {
  const index_t blocks = pieces(g.outputs, channels);
  const Reach<false> reach{g, g.in};
  parallel_for(context.threads, g.groups * blocks * g.inputs, [&](index_t task) {
    const index_t input = task % g.inputs, channel = task / g.inputs % blocks * channels,
                  group = task / g.inputs / blocks;
    const int rows =
        static_cast<int>(g.outputs - channel < channels ? g.outputs - channel : channels);
    index_t tap = 0;
    for (index_t kd = 0; kd < g.kernel[0]; ++kd)
      for (index_t kh = 0; kh < g.kernel[1]; ++kh)
        for (index_t kw = 0; kw < g.kernel[2]; ++kw, ++tap) {
          T lane[channels][columns] = {};
          // Columns [begin, end) of y meet x inside its row.
          const index_t shift = kw * g.dilation[2] - g.padding[2], s = g.stride[2];
          const index_t begin = shift < 0 ? pieces(-shift, s) : 0;
          const index_t last = shift < g.in[2] ? pieces(g.in[2] - shift, s) : 0,
                        end = last < g.out[2] ? last : g.out[2];
          for (index_t image = 0; image < g.batch; ++image)
            for (index_t d = 0; d < g.out[0]; ++d)
              for (index_t h = 0; h < g.out[1]; ++h) {
                index_t from_d, from_h;
                if (!reach.source(0, d, kd, from_d) || !reach.source(1, h, kh, from_h)) continue;
                const T* from = x + ((image * g.groups + group) * g.inputs + input) * g.in_plane() +
                                (from_d * g.in[1] + from_h) * g.in[2] + shift;
                const T* to[channels];
                for (int r = 0; r < channels; ++r)
                  to[r] = y +
                          ((image * g.groups + group) * g.outputs + channel + (r < rows ? r : 0)) *
                              g.out_plane() +
                          (d * g.out[1] + h) * g.out[2];
                index_t c = begin;
                if (s == 1) {
                  for (; c + columns <= end; c += columns)
                    for (int r = 0; r < channels; ++r)
                      for (int l = 0; l < columns; ++l) lane[r][l] += to[r][c + l] * from[c + l];
                }
                for (int l = 0; c < end; ++c, l = (l + 1) % columns)
                  for (int r = 0; r < channels; ++r) lane[r][l] += to[r][c] * from[c * s];
              }
          for (int r = 0; r < rows; ++r)
            w[((group * g.outputs + channel + r) * g.inputs + input) * g.taps() + tap] =
                join_lanes(lane[r]);
        }
  });
}

/// The gradient of the bias: the sum of each channel of `grad` (batch, channels, plane).
template <class T>
void sum_channels(const Context& context, index_t batch, index_t count, index_t plane,
                  const T* grad, T* out) {
  parallel_for(context.threads, count, [&](index_t channel) {
    T sum = 0;
    for (index_t image = 0; image < batch; ++image) {
      const T* x = grad + (image * count + channel) * plane;
      sum += sum_of<T>(plane, [&](index_t i) { return x[i]; });
    }
    out[channel] = sum;
  });
}

template <class T>
Error prepare(Context&, Correlation& g, View<const T> input, View<const T> weight,
              Maybe<View<const T>>, Span<const int64_t> stride, Span<const int64_t> padding,
              Span<const int64_t> dilation, bool transposed, Span<const int64_t>, int64_t groups,
              View<T> out) {
  g = transposed ? joined(correlation_of(out.shape(), input.shape(), weight.shape(), stride,
                                         padding, dilation, groups))
                 : joined(correlation_of(input.shape(), out.shape(), weight.shape(), stride,
                                         padding, dilation, groups));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Correlation& g, View<const T> input, View<const T> weight,
          Maybe<View<const T>> bias, Span<const int64_t>, Span<const int64_t>, Span<const int64_t>,
          bool transposed, Span<const int64_t>, int64_t, View<T> out) {
  const T* b = bias ? bias->data() : nullptr;
  if (transposed)
    from_output(context, g, input.data(), weight.data(), b, out.data());
  else
    from_input(context, g, input.data(), weight.data(), b, out.data(), weight.layout());
  return Error::ok;
}

template <class T>
Error prepare_backward(Context&, Correlation& g, View<const T> grad_output, View<const T> input,
                       View<const T> weight, Maybe<Span<const int64_t>>, Span<const int64_t> stride,
                       Span<const int64_t> padding, Span<const int64_t> dilation, bool transposed,
                       Span<const int64_t>, int64_t groups, Span<const int64_t>, Maybe<View<T>>,
                       Maybe<View<T>>, Maybe<View<T>>) {
  g = transposed ? joined(correlation_of(grad_output.shape(), input.shape(), weight.shape(), stride,
                                         padding, dilation, groups))
                 : joined(correlation_of(input.shape(), grad_output.shape(), weight.shape(), stride,
                                         padding, dilation, groups));
  return Error::ok;
}

template <class T>
Error run_backward(Context& context, const Correlation& g, View<const T> grad_output,
                   View<const T> input, View<const T> weight, Maybe<Span<const int64_t>>,
                   Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool transposed,
                   Span<const int64_t>, int64_t, Span<const int64_t>, Maybe<View<T>> grad_input,
                   Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const T* none = nullptr;
  if (grad_input) {
    if (transposed)
      from_input(context, g, grad_output.data(), weight.data(), none, grad_input->data());
    else
      from_output(context, g, grad_output.data(), weight.data(), none, grad_input->data());
  }
  if (grad_weight) {
    if (transposed)
      weights(context, g, grad_output.data(), input.data(), grad_weight->data());
    else
      weights(context, g, input.data(), grad_output.data(), grad_weight->data());
  }
  if (grad_bias) {
    const index_t count = grad_output.size(1), plane = transposed ? g.in_plane() : g.out_plane();
    sum_channels(context, g.batch, count, plane, grad_output.data(), grad_bias->data());
  }
  return Error::ok;
}

// Filters that a file may hold in panels or in halves.
constexpr WidenedPackings<1> reads_filters{to_f32_layout<1, Layout::panels_of_first, 6>};

}  // namespace

TAPER_RECORD(convolution, convolution_f32, {}, reads_filters, prepare<float>, run<float>)
TAPER_KERNEL(convolution, f64, prepare<double>, run<double>)
TAPER_KERNEL(convolution, i64, prepare<int64_t>, run<int64_t>)
TAPER_KERNEL(convolution_backward, f32, prepare_backward<float>, run_backward<float>)
TAPER_KERNEL(convolution_backward, f64, prepare_backward<double>, run_backward<double>)

}  // namespace taper::portable
