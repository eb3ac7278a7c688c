// Samples an image or a volume at positions that a grid gives, and the gradients. Each coordinate
// is handled on its own: along its dimension, a position is a sum of 1 (nearest), 2 (linear) or 4
// (cubic) taps.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/cubic.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

enum Interpolation : int64_t { linear = 0, nearest = 1, cubic = 2 };
enum Padding : int64_t { zeros = 0, border = 1, reflection = 2 };

/// Always three spatial dimensions: missing ones come first and have extent 1.
struct Plan {
  index_t batch, channels, in[3], positions;
  int n;
  int64_t interpolation, padding;
  bool align_corners;

  index_t in_plane() const { return in[0] * in[1] * in[2]; }
};
Plan plan_of(const Shape& input, const Shape& grid, int n, int64_t interpolation, int64_t padding,
             bool align_corners) {
  Plan p{input.sizes[0], input.sizes[1], {1, 1, 1}, 1, n, interpolation, padding, align_corners};
  for (int d = 0; d < n; ++d)
    p.in[3 - n + d] = input.sizes[2 + d], p.positions *= grid.sizes[1 + d];
  return p;
}

/// Where a coordinate lies in the image after padding. Multiplies `slope` by the derivative of this
/// step.
template <class T>
T padded(const Plan& p, T x, index_t size, T& slope) {
  if (p.padding == Padding::reflection) {
    // padding ends at the centres of the outermost elements, or at their outer edges
    const T low = p.align_corners ? T(0) : T(-0.5),
            span = static_cast<T>(p.align_corners ? size - 1 : size);
    if (span == 0) {
      slope = 0;
      return 0;
    }
    x -= low;
    if (x < 0) x = -x, slope = -slope;
    const T flips = std::floor(x / span), rest = std::fmod(x, span);
    const bool even = std::fmod(flips, T(2)) == 0;
    x = low + (even ? rest : span - rest);
    if (!even) slope = -slope;
  }
  if (p.padding != Padding::zeros) {
    const T last = static_cast<T>(size - 1);
    if (x <= 0) x = 0, slope = 0;
    if (x >= last) x = last, slope = 0;
  }
  return x;
}

/// The elements along one dimension that a coordinate reads. -1 stands for an element outside,
/// which is 0.
template <class T>
struct Taps {
  int count = 1;
  index_t at[4] = {};
  T weight[4] = {1}, slope[4] = {};
};

template <class T>
Taps<T> taps_at(const Plan& p, T coordinate, index_t size) {
  const T half = static_cast<T>(p.align_corners ? size - 1 : size) / 2;
  const T middle = static_cast<T>(size - 1) / 2;
  T x = coordinate * half + middle, slope = half;
  if (p.interpolation != Interpolation::cubic) x = padded(p, x, size, slope);
  constexpr T limit = T(1 << 30);
  if (!(x > -limit && x < limit)) x = -100, slope = 0;  // also for NaN: a place far outside
  const bool is_nearest = p.interpolation == Interpolation::nearest;
  index_t from = is_nearest ? std::lrint(x) : static_cast<index_t>(x);
  if (!is_nearest && static_cast<T>(from) > x) --from;  // rounds down
  const T rest = x - static_cast<T>(from);
  Taps<T> taps;
  if (p.interpolation == Interpolation::linear) {
    taps.count = 2;
    taps.weight[0] = 1 - rest, taps.weight[1] = rest;
    taps.slope[0] = -slope, taps.slope[1] = slope;
  } else if (p.interpolation == Interpolation::cubic) {
    taps.count = 4, --from;
    cubic_weights(rest, taps.weight);
    cubic_slopes(rest, taps.slope);
    for (T& s : taps.slope) s *= slope;
  }
  for (int k = 0; k < taps.count; ++k) {
    index_t at = from + k;
    T unused = 1;
    if (p.interpolation == Interpolation::cubic && p.padding != Padding::zeros)
      at = static_cast<index_t>(padded(p, static_cast<T>(at), size, unused));
    taps.at[k] = at >= 0 && at < size ? at : -1;
  }
  return taps;
}

/// The elements of a plane that one position reads.
template <class T>
struct Sample {
  int count = 0;
  index_t at[16];
  T weight[16];

  /// The weighted sum of `taps` elements of a plane.
  template <int taps>
  T sum(const T* x) const {
    T sum = 0;
    for (int k = 0; k < taps; ++k) sum += weight[k] * x[at[k]];
    return sum;
  }
  /// The number of taps is a compile-time constant, except at the edges.
  T of(const T* x) const {
    switch (count) {
      case 1:
        return sum<1>(x);
      case 4:
        return sum<4>(x);
      case 8:
        return sum<8>(x);
      case 16:
        return sum<16>(x);
      default:
        T sum = 0;
        for (int k = 0; k < count; ++k) sum += weight[k] * x[at[k]];
        return sum;
    }
  }

  /// `coordinates`: one for each dimension, the last dimension first. `slope`, if not nullptr, gets
  /// the derivatives of each weight with respect to the coordinates.
  void read(const Plan& p, const T* coordinates, T (*slope)[3] = nullptr) {
    count = 0;
    Taps<T> taps[3];
    for (int d = 3 - p.n; d < 3; ++d) taps[d] = taps_at(p, coordinates[2 - d], p.in[d]);
    const auto& [a, b, c] = taps;
    for (int i = 0; i < a.count; ++i)
      for (int j = 0; j < b.count; ++j)
        for (int k = 0; k < c.count; ++k) {
          if (a.at[i] < 0 || b.at[j] < 0 || c.at[k] < 0) continue;
          at[count] = (a.at[i] * p.in[1] + b.at[j]) * p.in[2] + c.at[k];
          weight[count] = a.weight[i] * b.weight[j] * c.weight[k];
          if (slope != nullptr) {
            slope[count][0] = a.weight[i] * b.weight[j] * c.slope[k];
            slope[count][1] = a.weight[i] * b.slope[j] * c.weight[k];
            slope[count][2] = a.slope[i] * b.weight[j] * c.weight[k];
          }
          ++count;
        }
  }
};

/// Positions that are computed together, so that a plane is read and written in runs.
constexpr index_t block = 16;

template <int n, class T>
Error prepare(Context&, Plan& p, View<const T> input, View<const T> grid, int64_t interpolation,
              int64_t padding, bool align_corners, View<T>) {
  p = plan_of(input.shape(), grid.shape(), n, interpolation, padding, align_corners);
  return Error::ok;
}
template <class T>
Error run(Context& context, const Plan& p, View<const T> input, View<const T> grid, int64_t,
          int64_t, bool, View<T> out) {
  const index_t tasks = pieces(p.positions, block), plane = p.in_plane();
  parallel_for(context.threads, p.batch * tasks, [&](index_t task) {
    const index_t b = task / tasks, begin = task % tasks * block,
                  count = p.positions - begin < block ? p.positions - begin : block;
    Sample<T> samples[block];
    for (index_t i = 0; i < count; ++i)
      samples[i].read(p, grid.data() + (b * p.positions + begin + i) * p.n);
    for (index_t c = 0; c < p.channels; ++c) {
      const T* x = input.data() + (b * p.channels + c) * plane;
      T* y = out.data() + (b * p.channels + c) * p.positions + begin;
      for (index_t i = 0; i < count; ++i) {
        y[i] = samples[i].of(x);
      }
    }
  });
  return Error::ok;
}

template <int n, class T>
Error prepare_backward(Context&, Plan& p, View<const T>, View<const T> input, View<const T> grid,
                       int64_t interpolation, int64_t padding, bool align_corners,
                       Span<const int64_t>, Maybe<View<T>>, Maybe<View<T>>) {
  p = plan_of(input.shape(), grid.shape(), n, interpolation, padding, align_corners);
  return Error::ok;
}
/// Several positions may read one element. Their gradients are added in the order of the positions.
template <class T>
Error run_backward(Context& context, const Plan& p, View<const T> grad_output, View<const T> input,
                   View<const T> grid, int64_t, int64_t, bool, Span<const int64_t>,
                   Maybe<View<T>> grad_input, Maybe<View<T>> grad_grid) {
  const index_t plane = p.in_plane(), image = p.channels * plane;
  parallel_for(context.threads, p.batch, [&](index_t b) {
    const T* x = input.data() + b * image;
    const T* dy = grad_output.data() + b * p.channels * p.positions;
    T* dx = grad_input ? grad_input->data() + b * image : nullptr;
    for (index_t i = 0; dx != nullptr && i < image; ++i) dx[i] = 0;
    for (index_t begin = 0; begin < p.positions; begin += block) {
      const index_t left = p.positions - begin, count = left < block ? left : block,
                    first = (b * p.positions + begin) * p.n;
      Sample<T> samples[block];
      T slopes[block][16][3], along[block][3] = {};
      for (index_t i = 0; i < count; ++i)
        samples[i].read(p, grid.data() + first + i * p.n, slopes[i]);
      for (index_t c = 0; c < p.channels; ++c)
        for (index_t i = 0; i < count; ++i) {
          const Sample<T>& sample = samples[i];
          const T d = dy[c * p.positions + begin + i];
          T sums[3] = {along[i][0], along[i][1], along[i][2]};
          for (int k = 0; k < sample.count; ++k) {
            const index_t from = c * plane + sample.at[k];
            if (dx != nullptr) dx[from] += sample.weight[k] * d;
            for (int j = 0; j < 3; ++j) sums[j] += slopes[i][k][j] * x[from] * d;
          }
          for (int j = 0; j < 3; ++j) along[i][j] = sums[j];
        }
      for (index_t i = 0; grad_grid && i < count; ++i)
        for (int j = 0; j < p.n; ++j) grad_grid->data()[first + i * p.n + j] = along[i][j];
    }
  });
  return Error::ok;
}

}  // namespace

#define TAPER_GRID_SAMPLER(n, variant, T)                           \
  TAPER_KERNEL(grid_sampler_##n##d, variant, prepare<n, T>, run<T>) \
  TAPER_KERNEL(grid_sampler_##n##d_backward, variant, prepare_backward<n, T>, run_backward<T>)
TAPER_GRID_SAMPLER(2, f32, float)
TAPER_GRID_SAMPLER(2, f64, double)
TAPER_GRID_SAMPLER(3, f32, float)
TAPER_GRID_SAMPLER(3, f64, double)

}  // namespace taper::portable
