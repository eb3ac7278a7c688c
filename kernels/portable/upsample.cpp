// Resampling by nearest, linear and cubic interpolation, and its gradients. Dimensions separate:
// along each, a position of the result is a sum of 1, 2 or 4 taps, tabulated once a run.
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/portable/upsample_taps.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

/// The taps of every position of every dimension; a dimension that is missing has one tap of
/// weight 1.
template <Method method, class W>
struct Table {
  using Tap = Taps<W, taps_of(method)>;
  const Tap* taps[3];
  int count[3];
  Tap one{};

  static size_t bytes(const Resampling& p) {
    return static_cast<size_t>(p.axis[0].out + p.axis[1].out + p.axis[2].out) * sizeof(Tap);
  }
  /// `strides`: of the input's n dimensions.
  Table(const Resampling& p, const index_t* strides, int n, void* scratch) {
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

  static Error prepare(Context& context, Resampling& p, AnyView<const T> self, Span<const int64_t>,
                       Tail... tail, View<T> out) {
    p = resampling_of(self.shape(), out.shape(), tail...);
    context.need_scratch(Table<method, W>::bytes(p));
    return Error::ok;
  }
  static Error run(Context& context, const Resampling& p, AnyView<const T> self,
                   Span<const int64_t>, Tail..., View<T> out) {
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

  static Error prepare_backward(Context& context, Resampling& p, View<const T> grad_output,
                                Span<const int64_t>, Span<const int64_t>, Tail... tail,
                                View<T> out) {
    p = resampling_of(out.shape(), grad_output.shape(), tail...);
    context.need_scratch(Table<method, W>::bytes(p));
    return Error::ok;
  }
  /// Each gradient goes to the taps of its position, in row-major order, plane by plane.
  static Error run_backward(Context& context, const Resampling& p, View<const T> grad_output,
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
