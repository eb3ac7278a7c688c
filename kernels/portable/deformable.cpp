// The patches of an image at positions that are moved by offsets: Dai et al., Deformable
// Convolutional Networks, arXiv:1703.06211; with factors for each position: Zhu et al.,
// arXiv:1811.11168.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/shapes/detection.h"

namespace taper::portable {
namespace {

/// A direction of the image: its extent, and where the taps lie.
struct Direction {
  index_t in, out, kernel;
  int64_t stride, padding, dilation;

  int64_t tap(index_t position, index_t k) const {
    return position * stride - padding + k * dilation;
  }
};
struct Plan {
  Direction down, right;
  index_t batch, channels, groups;

  index_t plane() const { return down.in * right.in; }
  index_t positions() const { return down.out * right.out; }
  index_t taps() const { return down.kernel * right.kernel; }
};

/// Two neighbours along a direction. Those outside count as 0.
template <class T>
struct Neighbours {
  index_t at[2] = {0, 0};
  T weight[2] = {0, 0};
  bool inside[2] = {false, false};

  /// A position that has no neighbour in [0, size) reads nothing, nor does NaN.
  Neighbours(T x, index_t size) {
    if (!(x > -1 && x < static_cast<T>(size))) return;
    const auto low = static_cast<index_t>(std::floor(x));
    const T rest = x - static_cast<T>(low);
    for (int k = 0; k < 2; ++k) {
      at[k] = low + k, weight[k] = k == 0 ? 1 - rest : rest;
      inside[k] = at[k] >= 0 && at[k] < size;
    }
  }
};

/// The elements around a position, at most four.
template <class T>
struct Sample {
  int count = 0;
  index_t at[4];
  T weight[4];

  Sample(const Plan& p, T y, T x) {
    const Neighbours<T> rows(y, p.down.in), columns(x, p.right.in);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        if (!rows.inside[i] || !columns.inside[j]) continue;
        at[count] = rows.at[i] * p.right.in + columns.at[j];
        weight[count++] = rows.weight[i] * columns.weight[j];
      }
  }
  T of(const T* plane) const {
    T sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * plane[at[k]];
    return sum;
  }
};

template <class T>
Error prepare(Context&, Plan& p, View<const T> input, View<const T> offset, Maybe<View<const T>>,
              Span<const int64_t> kernel_size, Span<const int64_t> stride,
              Span<const int64_t> padding, Span<const int64_t> dilation, View<T>) {
  const auto direction = [&](int i) {
    return Direction{input.size(i + 2), offset.size(i + 2), static_cast<index_t>(kernel_size[i]),
                     stride[i],         padding[i],         dilation[i]};
  };
  p = {direction(0), direction(1), input.size(0), input.size(1), 0};
  p.groups = offset.size(1) / (2 * p.taps());
  return Error::ok;
}

/// A task is one tap of one group: its channels read the same positions.
template <class T>
Error run(Context& context, const Plan& p, View<const T> input, View<const T> offset,
          Maybe<View<const T>> mask, Span<const int64_t>, Span<const int64_t>, Span<const int64_t>,
          Span<const int64_t>, View<T> out) {
  const index_t taps = p.taps(), n = p.positions(), plane = p.plane();
  const index_t channels = p.channels / p.groups;
  parallel_for(context.threads, p.batch * p.groups * taps, [&](index_t task) {
    const index_t group = task / taps, k = task % taps;  // the group counts through the batch
    const T* moved = offset.data() + task * 2 * n;
    const T* factors = mask ? mask->data() + task * n : nullptr;
    for (index_t i = 0; i < n; ++i) {
      const T y = static_cast<T>(p.down.tap(i / p.right.out, k / p.right.kernel)) + moved[i];
      const T x = static_cast<T>(p.right.tap(i % p.right.out, k % p.right.kernel)) + moved[n + i];
      const Sample<T> sample(p, y, x);
      const T factor = factors != nullptr ? factors[i] : T(1);
      for (index_t c = group * channels; c < (group + 1) * channels; ++c)
        out.data()[(c * taps + k) * n + i] = factor * sample.of(input.data() + c * plane);
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_deformable_columns, f32, prepare<float>, run<float>)
TAPER_KERNEL(taper_deformable_columns, f64, prepare<double>, run<double>)

}  // namespace taper::portable
