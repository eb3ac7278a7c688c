// Resampling of images of bytes, as in PyTorch: first along rows, then along columns. Weights have
// 16 bits, and each step rounds to bytes.
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/antialiasing.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/upsample_taps.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

/// Two or four taps. If several taps read the same element, it gets the sum of their weights.
template <Method method>
class Interpolation {
 public:
  Interpolation(const Axis& axis, bool align_corners)
      : axis_(axis), step_(axis.step<double>(align_corners)), align_corners_(align_corners) {}

  static constexpr index_t most() { return taps_of(method); }
  static index_t most_of_all(const Axis& axis) { return axis.out * most(); }
  template <class Put>
  Window position(index_t i, const Put& put) const {
    const auto taps = taps_at<method>(axis_, step_, align_corners_, 1, i);
    double weight[most()] = {};
    for (int k = 0; k < most(); ++k) weight[taps.at[k] - taps.at[0]] += taps.weight[k];
    const index_t count = taps.at[most() - 1] - taps.at[0] + 1;
    for (index_t k = 0; k < count; ++k) put(k, weight[k]);
    return {taps.at[0], count};
  }

 private:
  Axis axis_;
  double step_;
  bool align_corners_;
};

/// The elements and weights of every position along a dimension. A position is the sum of weight
/// times element, divided by 2^precision. The precision is the highest for which the largest weight
/// fits into 16 bits. Behind the weights of a position, zeros fill up to the next multiple of
/// `group`.
class ByteTable {
 public:
  static constexpr index_t group = 16;

  template <class Filter>
  static size_t bytes(const Axis& axis) {
    const index_t weights = Filter::most_of_all(axis) + axis.out * (group - 1);
    return static_cast<size_t>(axis.out) * sizeof(Window) +
           static_cast<size_t>(pieces(weights, group)) * group * sizeof(int16_t);
  }
  template <class Filter>
  ByteTable(const Axis& axis, const Filter& filter, char* memory)
      : windows_(reinterpret_cast<Window*>(memory)),
        weights_(reinterpret_cast<int16_t*>(windows_ + axis.out)) {
    double largest = 0;
    for (index_t i = 0; i < axis.out; ++i)
      filter.position(i, [&](index_t, double w) { largest = w > largest ? w : largest; });
    while (precision_ < 22 && largest * (2 << precision_) + 0.5 < 1 << 15) ++precision_;
    most_ = pieces(filter.most(), group) * group;
    for (index_t i = 0; i < axis.out; ++i) {
      int16_t* const to = weights_ + i * most_;
      for (index_t k = 0; k < most_; ++k) to[k] = 0;
      windows_[i] = filter.position(i, [&](index_t k, double w) {
        to[k] = static_cast<int16_t>(w * (1 << precision_) + (w < 0 ? -0.5 : 0.5));
      });
    }
  }

  /// Position i of the line x. Reads up to `group` bytes beyond it.
  uint8_t along(const uint8_t* x, index_t i) const {
    const int16_t* weight = weights_ + i * most_;
    x += windows_[i].first;
    int32_t sum = 0;
    for (index_t k = 0; k < windows_[i].count; k += group) TAPER_LANES
    for (int l = 0; l < group; ++l) sum += weight[k + l] * static_cast<int16_t>(x[k + l]);
    return rounded(sum);
  }
  /// Position i of each of `width` lines, which are the columns of x.
  void across(const uint8_t* x, index_t width, index_t i, uint8_t* y) const {
    constexpr index_t block = 128;
    x += windows_[i].first * width;
    for (index_t at = 0; at < width; at += block) {
      const index_t n = width - at < block ? width - at : block;
      int32_t sum[block] = {};
      for (index_t k = 0; k < windows_[i].count; ++k) {
        const int16_t weight = weights_[i * most_ + k];
        const uint8_t* from = x + k * width + at;
        for (index_t j = 0; j < n; ++j) sum[j] += weight * static_cast<int16_t>(from[j]);
      }
      for (index_t j = 0; j < n; ++j) y[at + j] = rounded(sum[j]);
    }
  }

 private:
  uint8_t rounded(int32_t sum) const {
    sum = (sum + (1 << (precision_ - 1))) >> precision_;
    return static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }

  Window* windows_;
  int16_t* weights_;
  index_t most_;
  int precision_ = 0;
};

inline constexpr size_t readable_behind = 64;

template <class Filter>
Error prepare(Context& context, Resampling& p, View<const uint8_t> self, Span<const int64_t>,
              bool align_corners, Maybe<double> scale_h, Maybe<double> scale_w, View<uint8_t> out) {
  p = resampling_of(self.shape(), out.shape(), align_corners, scale_h, scale_w);
  if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
  context.need_scratch(ByteTable::bytes<Filter>(p.axis[1]) + ByteTable::bytes<Filter>(p.axis[2]) +
                       static_cast<size_t>(p.planes * p.axis[1].in * p.axis[2].out) +
                       readable_behind);
  return Error::ok;
}

/// Resamples along rows into `narrowed`, then along columns. A dimension that keeps its size is not
/// resampled.
void resample(const Threads* threads, const Resampling& p, const ByteTable& rows,
              const ByteTable& columns, const uint8_t* x, uint8_t* narrowed, uint8_t* out) {
  const Axis &down = p.axis[1], &right = p.axis[2];
  if (right.in != right.out) {
    parallel_for(threads, p.planes * down.in, [&](index_t row) {
      for (index_t w = 0; w < right.out; ++w)
        narrowed[row * right.out + w] = columns.along(x + row * right.in, w);
    });
    x = narrowed;
  }
  parallel_for(threads, p.planes * down.out, [&](index_t row) {
    const index_t plane = row / down.out, h = row % down.out;
    const uint8_t* from = x + plane * down.in * right.out;
    uint8_t* const y = out + row * right.out;
    if (down.in == down.out)
      std::memcpy(y, from + h * right.out, static_cast<size_t>(right.out));
    else
      rows.across(from, right.out, h, y);
  });
}
template <class Filter>
Error run(Context& context, const Resampling& p, View<const uint8_t> self, Span<const int64_t>,
          bool align_corners, Maybe<double>, Maybe<double>, View<uint8_t> out) {
  if (out.numel() == 0) return Error::ok;
  const Axis &down = p.axis[1], &right = p.axis[2];
  char* memory = static_cast<char*>(context.scratch);
  const ByteTable rows(down, Filter(down, align_corners), memory);
  memory += ByteTable::bytes<Filter>(down);
  const ByteTable columns(right, Filter(right, align_corners), memory);
  memory += ByteTable::bytes<Filter>(right);
  resample(context.threads, p, rows, columns, self.data(), reinterpret_cast<uint8_t*>(memory),
           out.data());
  return Error::ok;
}

}  // namespace

#define TAPER_UPSAMPLE_BYTES(op, ...) TAPER_KERNEL(op, u8, prepare<__VA_ARGS__>, run<__VA_ARGS__>)
TAPER_UPSAMPLE_BYTES(upsample_bilinear2d, Interpolation<Method::linear>)
TAPER_UPSAMPLE_BYTES(upsample_bicubic2d, Interpolation<Method::cubic>)
TAPER_UPSAMPLE_BYTES(_upsample_bilinear2d_aa, Antialiasing<Triangle>)
TAPER_UPSAMPLE_BYTES(_upsample_bicubic2d_aa, Antialiasing<Cubic>)

}  // namespace taper::portable
