// Resampling of images of bytes, as PyTorch has it: first along rows, then along columns, with
// weights of 16 bits, each step rounded to bytes.
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/portable/upsample_taps.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

/// One position of the result: the sum of weight times element over 2^precision.
struct ByteTaps {
  int32_t at[4];
  int16_t weight[4];
};

/// The taps of every position of a dimension. Gives the bits behind the point of the weights: as
/// many as let the largest one fit.
template <Method method>
int fill_taps(const Axis& axis, bool align_corners, ByteTaps* taps) {
  constexpr int count = taps_of(method);
  const double step = axis.step<double>(align_corners);
  const auto exact_taps = [&](index_t i) {
    Taps<double, count> t = taps_at<method>(axis, step, align_corners, 1, i);
    // one weight for an element that several taps read, so that it is rounded once
    for (int k = 1; k < count; ++k)
      if (t.at[k] == t.at[k - 1]) t.weight[k] += t.weight[k - 1], t.weight[k - 1] = 0;
    return t;
  };
  double largest = 0;
  for (index_t i = 0; i < axis.out; ++i)
    for (const double w : exact_taps(i).weight) largest = w > largest ? w : largest;
  int precision = 0;
  while (precision < 22 && largest * (2 << precision) + 0.5 < 1 << 15) ++precision;
  for (index_t i = 0; i < axis.out; ++i) {
    const Taps<double, count> t = exact_taps(i);
    for (int k = 0; k < count; ++k) {
      taps[i].at[k] = static_cast<int32_t>(t.at[k]);
      taps[i].weight[k] =
          static_cast<int16_t>(t.weight[k] * (1 << precision) + (t.weight[k] < 0 ? -0.5 : 0.5));
    }
  }
  return precision;
}

template <int count>
uint8_t resampled(const uint8_t* x, index_t stride, const ByteTaps& taps, int precision) {
  int32_t sum = 1 << (precision - 1);
  for (int k = 0; k < count; ++k) sum += taps.weight[k] * x[taps.at[k] * stride];
  sum >>= precision;
  return static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

Error prepare(Context& context, Resampling& p, View<const uint8_t> self, Span<const int64_t>,
              bool align_corners, Maybe<double> scale_h, Maybe<double> scale_w, View<uint8_t> out) {
  p = resampling_of(self.shape(), out.shape(), align_corners, scale_h, scale_w);
  context.need_scratch(static_cast<size_t>(p.axis[1].out + p.axis[2].out) * sizeof(ByteTaps) +
                       static_cast<size_t>(p.planes * p.axis[1].in * p.axis[2].out));
  return Error::ok;
}
template <Method method>
Error run(Context& context, const Resampling& p, View<const uint8_t> self, Span<const int64_t>,
          bool align_corners, Maybe<double>, Maybe<double>, View<uint8_t> out) {
  constexpr int count = taps_of(method);
  const Axis &down = p.axis[1], &right = p.axis[2];
  constexpr index_t limit = index_t{1} << 31;
  if (down.in >= limit || right.in >= limit)
    return context.fail(Error::invalid_argument, TAPER_TEXT("an image of 2^31 rows or columns"));
  ByteTaps* rows = static_cast<ByteTaps*>(context.scratch);
  ByteTaps* columns = rows + down.out;
  uint8_t* narrowed = reinterpret_cast<uint8_t*>(columns + right.out);
  const int row_bits = fill_taps<method>(down, align_corners, rows),
            column_bits = fill_taps<method>(right, align_corners, columns);
  parallel_for(context.threads, p.planes, [&](index_t plane) {
    const uint8_t* x = self.data() + plane * down.in * right.in;
    uint8_t* y = out.data() + plane * down.out * right.out;
    if (right.in != right.out) {
      uint8_t* to = narrowed + plane * down.in * right.out;
      for (index_t h = 0; h < down.in; ++h)
        for (index_t w = 0; w < right.out; ++w)
          to[h * right.out + w] = resampled<count>(x + h * right.in, 1, columns[w], column_bits);
      x = to;
    }
    for (index_t h = 0; h < down.out; ++h)
      for (index_t w = 0; w < right.out; ++w)
        y[h * right.out + w] = down.in == down.out
                                   ? x[h * right.out + w]
                                   : resampled<count>(x + w, right.out, rows[h], row_bits);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(upsample_bilinear2d, u8, prepare, run<Method::linear>)
TAPER_KERNEL(upsample_bicubic2d, u8, prepare, run<Method::cubic>)

}  // namespace taper::portable
