// Resampling by nearest, linear and cubic interpolation, and its gradients. Dimensions separate:
// along each, a position of the result is a sum of 1, 2 or 4 taps, tabulated once a run.
#include <cmath>

#include "taper/kernels/portable/cubic.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

enum class Method { nearest, nearest_exact, linear, cubic };
constexpr bool is_nearest(Method m) { return m == Method::nearest || m == Method::nearest_exact; }
constexpr int taps_of(Method m) { return is_nearest(m) ? 1 : m == Method::linear ? 2 : 4; }

struct Axis {
  index_t in, out;
  Maybe<double> scale;

  /// The distance of two positions of the result, in elements of the input.
  template <class T>
  T step(bool align_corners) const {
    if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
    return scale ? static_cast<T>(1 / *scale) : static_cast<T>(in) / static_cast<T>(out);
  }
};

/// Always three dimensions: missing ones come first and have extent 1.
struct Plan {
  index_t planes;
  Axis axis[3];
  bool align_corners;

  index_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
};

Plan plan_of(const Shape& in, const Shape& out, bool align_corners, const Maybe<double>* scales) {
  const int missing = 5 - in.rank;
  Plan p{in.sizes[0] * in.sizes[1], {}, align_corners};
  for (int d = 0; d < 3; ++d) {
    const int i = d - missing;
    p.axis[d] = i < 0 ? Axis{1, 1, {}} : Axis{in.sizes[2 + i], out.sizes[2 + i], scales[i]};
  }
  return p;
}
template <class... Scales>
Plan plan_of(const Shape& in, const Shape& out, bool align_corners, Scales... scales) {
  const Maybe<double> list[] = {scales...};
  return plan_of(in, out, align_corners, list);
}
template <class... Scales>
Plan plan_of(const Shape& in, const Shape& out, Maybe<double> first, Scales... scales) {
  return plan_of(in, out, false, first, scales...);
}

template <class W, int count>
struct Taps {
  index_t at[count];  ///< in elements from the first of the line
  W weight[count];
};

/// The taps of result `i`. `stride`: of the input.
template <Method method, class W>
Taps<W, taps_of(method)> taps_at(const Axis& axis, W step, bool align_corners, index_t stride,
                                 index_t i) {
  const index_t last = axis.in - 1;
  const auto inside = [&](index_t at) { return (at < 0 ? 0 : at > last ? last : at) * stride; };
  Taps<W, taps_of(method)> taps;
  const W position = static_cast<W>(i);
  if constexpr (is_nearest(method)) {
    const W at = std::floor(step * (method == Method::nearest ? position : position + W(0.5)));
    taps.at[0] = at < static_cast<W>(last) ? inside(static_cast<index_t>(at)) : last * stride;
    taps.weight[0] = 1;
    return taps;
  }
  W at = align_corners ? step * position : step * (position + W(0.5)) - W(0.5);
  if (method == Method::linear && at < 0) at = 0;
  if (method == Method::linear && axis.in == axis.out) at = position;  // whatever the scale
  const index_t first =
      at < static_cast<W>(last) ? static_cast<index_t>(std::floor(at)) : last;  // at least -1
  W rest = at - static_cast<W>(first);
  rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
  if constexpr (method == Method::linear) {
    taps.weight[0] = 1 - rest, taps.weight[1] = rest;
    for (int k = 0; k < 2; ++k) taps.at[k] = inside(first + k);
  } else if constexpr (method == Method::cubic) {
    cubic_weights(rest, taps.weight);
    for (int k = 0; k < 4; ++k) taps.at[k] = inside(first - 1 + k);
  }
  return taps;
}

/// The taps of every position of every dimension; a dimension that is missing has one tap of
/// weight 1.
template <Method method, class W>
struct Table {
  using Tap = Taps<W, taps_of(method)>;
  const Tap* taps[3];
  int count[3];
  Tap one{};

  static size_t bytes(const Plan& p) {
    return static_cast<size_t>(p.axis[0].out + p.axis[1].out + p.axis[2].out) * sizeof(Tap);
  }
  /// `strides`: of the input's n dimensions.
  Table(const Plan& p, const index_t* strides, int n, void* scratch) {
    Tap* to = static_cast<Tap*>(scratch);
    one.weight[0] = 1;
    for (int d = 0; d < 3; ++d) {
      if (d < 3 - n) {
        taps[d] = &one, count[d] = 1;
        continue;
      }
      const Axis& axis = p.axis[d];
      taps[d] = to, count[d] = taps_of(method);
      const W step = axis.step<W>(p.align_corners);
      for (index_t i = 0; i < axis.out; ++i)
        *to++ = taps_at<method>(axis, step, p.align_corners, strides[d - (3 - n)], i);
    }
  }
  /// Calls f(offset of a row of the input, its weight) for the rows that result row (depth, height)
  /// is made of.
  template <class F>
  void for_each_row_of(index_t depth, index_t height, const F& f) const {
    const Tap &d = taps[0][depth], &h = taps[1][height];
    for (int a = 0; a < count[0]; ++a)
      for (int b = 0; b < count[1]; ++b) f(d.at[a] + h.at[b], d.weight[a] * h.weight[b]);
  }
};

/// `Tail`: what follows the sizes in the row: [bool align_corners,] the scales.
template <Method method, class T, class... Tail>
struct Upsample {
  using W = std::conditional_t<is_nearest(method), float, T>;
  static constexpr int taps = taps_of(method), max_rows = taps * taps;

  static Error prepare(Context& context, Plan& p, AnyView<const T> self, Span<const int64_t>,
                       Tail... tail, View<T> out) {
    p = plan_of(self.shape(), out.shape(), tail...);
    context.need_scratch(Table<method, W>::bytes(p));
    return Error::ok;
  }
  static Error run(Context& context, const Plan& p, AnyView<const T> self, Span<const int64_t>,
                   Tail..., View<T> out) {
    const int n = self.rank() - 2;
    const Table<method, W> table(p, self.shape().strides + 2, n, context.scratch);
    const auto* columns = table.taps[2];
    const index_t width = p.axis[2].out;
    for_each_row(context.threads, out.shape(), [&](const index_t* at, index_t row) {
      const T* x = self.data() + at[0] * self.stride(0) + at[1] * self.stride(1);
      const T* rows[max_rows] = {x};
      W weights[max_rows] = {};
      int count = 0;
      table.for_each_row_of(n == 3 ? at[2] : 0, n >= 2 ? at[n] : 0, [&](index_t from, W weight) {
        rows[count] = x + from, weights[count++] = weight;
      });
      T* y = out.data() + row * width;
      if constexpr (is_nearest(method)) {
        for (index_t i = 0; i < width; ++i) y[i] = rows[0][columns[i].at[0]];
      } else {
        for (index_t i = 0; i < width; ++i) {
          T sum = 0;
          for (int r = 0; r < count; ++r) {
            T line = 0;
            for (int k = 0; k < taps; ++k) line += columns[i].weight[k] * rows[r][columns[i].at[k]];
            sum += weights[r] * line;
          }
          y[i] = sum;
        }
      }
    });
    return Error::ok;
  }

  static Error prepare_backward(Context& context, Plan& p, View<const T> grad_output,
                                Span<const int64_t>, Span<const int64_t>, Tail... tail,
                                View<T> out) {
    p = plan_of(out.shape(), grad_output.shape(), tail...);
    context.need_scratch(Table<method, W>::bytes(p));
    return Error::ok;
  }
  /// Each gradient goes to the taps of its position, in row-major order, plane by plane.
  static Error run_backward(Context& context, const Plan& p, View<const T> grad_output,
                            Span<const int64_t>, Span<const int64_t>, Tail..., View<T> out) {
    const Table<method, W> table(p, out.shape().strides + 2, out.rank() - 2, context.scratch);
    const auto* columns = table.taps[2];
    const index_t depth = p.axis[0].out, height = p.axis[1].out, width = p.axis[2].out;
    parallel_for(context.threads, p.planes, [&](index_t plane) {
      const T* dy = grad_output.data() + plane * depth * height * width;
      T* dx = out.data() + plane * p.in_plane();
      for (index_t i = 0; i < p.in_plane(); ++i) dx[i] = 0;
      for (index_t d = 0; d < depth; ++d)
        for (index_t h = 0; h < height; ++h, dy += width)
          table.for_each_row_of(d, h, [&](index_t from, W weight) {
            for (index_t i = 0; i < width; ++i)
              for (int k = 0; k < taps; ++k)
                dx[from + columns[i].at[k]] +=
                    static_cast<T>(weight * columns[i].weight[k]) * dy[i];
          });
    });
    return Error::ok;
  }
};

}  // namespace

#define TAPER_UPSAMPLE_FORWARD(op, variant, ...) \
  TAPER_KERNEL(op, variant, Upsample<__VA_ARGS__>::prepare, Upsample<__VA_ARGS__>::run)
#define TAPER_UPSAMPLE_BACKWARD(op, variant, ...)                               \
  TAPER_KERNEL(op##_backward, variant, Upsample<__VA_ARGS__>::prepare_backward, \
               Upsample<__VA_ARGS__>::run_backward)
#define TAPER_UPSAMPLE_NEAREST(op, method, ...)                 \
  TAPER_UPSAMPLE_FORWARD(op, b1, method, Bytes<1>, __VA_ARGS__) \
  TAPER_UPSAMPLE_FORWARD(op, b2, method, Bytes<2>, __VA_ARGS__) \
  TAPER_UPSAMPLE_FORWARD(op, b4, method, Bytes<4>, __VA_ARGS__) \
  TAPER_UPSAMPLE_FORWARD(op, b8, method, Bytes<8>, __VA_ARGS__) \
  TAPER_UPSAMPLE_BACKWARD(op, f32, method, float, __VA_ARGS__)  \
  TAPER_UPSAMPLE_BACKWARD(op, f64, method, double, __VA_ARGS__)
#define TAPER_UPSAMPLE_SMOOTH(op, method, ...)                 \
  TAPER_UPSAMPLE_FORWARD(op, f32, method, float, __VA_ARGS__)  \
  TAPER_UPSAMPLE_FORWARD(op, f64, method, double, __VA_ARGS__) \
  TAPER_UPSAMPLE_BACKWARD(op, f32, method, float, __VA_ARGS__) \
  TAPER_UPSAMPLE_BACKWARD(op, f64, method, double, __VA_ARGS__)

using Scale = Maybe<double>;
TAPER_UPSAMPLE_NEAREST(upsample_nearest1d, Method::nearest, Scale)
TAPER_UPSAMPLE_NEAREST(upsample_nearest2d, Method::nearest, Scale, Scale)
TAPER_UPSAMPLE_NEAREST(upsample_nearest3d, Method::nearest, Scale, Scale, Scale)
TAPER_UPSAMPLE_NEAREST(_upsample_nearest_exact1d, Method::nearest_exact, Scale)
TAPER_UPSAMPLE_NEAREST(_upsample_nearest_exact2d, Method::nearest_exact, Scale, Scale)
TAPER_UPSAMPLE_NEAREST(_upsample_nearest_exact3d, Method::nearest_exact, Scale, Scale, Scale)
TAPER_UPSAMPLE_SMOOTH(upsample_linear1d, Method::linear, bool, Scale)
TAPER_UPSAMPLE_SMOOTH(upsample_bilinear2d, Method::linear, bool, Scale, Scale)
TAPER_UPSAMPLE_SMOOTH(upsample_trilinear3d, Method::linear, bool, Scale, Scale, Scale)
TAPER_UPSAMPLE_SMOOTH(upsample_bicubic2d, Method::cubic, bool, Scale, Scale)

}  // namespace taper::portable
