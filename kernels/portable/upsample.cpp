// Resampling by nearest, linear and cubic interpolation, and the gradients. Each dimension is
// handled on its own: along it, a position of the result is a sum of 1, 2 or 4 taps. A run first
// makes a table of them.
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/portable/upsample_taps.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

/// The taps of every position of every dimension. A missing dimension has one tap of weight 1. W is
/// the type of weights, P the type of positions of nearest methods.
template <Method method, class W, class P>
struct Table {
  using Tap = Taps<W, taps_of(method)>;
  const Tap* taps[3];
  int count[3];
  Tap one{};

  static size_t bytes(const Resampling& p) {
    return static_cast<size_t>(p.axis[0].out + p.axis[1].out + p.axis[2].out) * sizeof(Tap);
  }
  /// `strides`: those of the input's n dimensions.
  Table(const Resampling& p, const index_t* strides, int n, void* scratch) {
    Tap* to = static_cast<Tap*>(scratch);
    one.weight[0] = 1;
    for (int d = 0; d < 3; ++d) {
      if (d < 3 - n) {
        taps[d] = &one, count[d] = 1;
        continue;
      }
      const Axis& axis = p.axis[d];
      const index_t stride = strides[d - (3 - n)];
      taps[d] = to, count[d] = taps_of(method);
      if constexpr (is_nearest(method)) {
        for (index_t i = 0; i < axis.out; ++i)
          *to++ = {{stride * (p.is_small_image ? nearest_in_small_image<method>(axis, i)
                                               : nearest_at<method, P>(axis, i))},
                   {1}};
      } else {
        const W step = axis.step<W>(p.align_corners);
        for (index_t i = 0; i < axis.out; ++i)
          *to++ = taps_at<method>(axis, step, p.align_corners, stride, i);
      }
    }
  }
  /// Calls f(offset of an input row, its weight) for the rows that result row (depth, height) is
  /// computed from.
  template <class F>
  void for_each_row_of(index_t depth, index_t height, const F& f) const {
    const Tap &d = taps[0][depth], &h = taps[1][height];
    for (int a = 0; a < count[0]; ++a)
      for (int b = 0; b < count[1]; ++b) f(d.at[a] + h.at[b], d.weight[a] * h.weight[b]);
  }
};

/// Computes a stretch of a result row from input rows that are first resampled along the row. The
/// resampled rows are kept, because the next result row mostly needs them, too.
template <class T, int taps, int max_rows>
class RowStretch {
 public:
  static constexpr index_t most = 256;

  RowStretch(const Taps<T, taps>* columns, index_t count) : columns_(columns), count_(count) {}
  void clear() { rows_ = 0; }
  void add(const T* row, T weight) { row_[rows_] = row, weight_[rows_++] = weight; }
  void write(T* y) {
    int line[max_rows];
    bool used[max_rows] = {};
    for (int r = 0; r < rows_; ++r) {
      line[r] = find(row_[r]);
      if (line[r] < max_rows) used[line[r]] = true;
    }
    for (int r = 0, free = 0; r < rows_; ++r) {
      if (line[r] < max_rows) continue;
      while (used[free]) ++free;
      used[free] = true, line[r] = free;
      resample(row_[r], free);
    }
    for (int r = 0; r < rows_; ++r) {
      const T *x = line_[line[r]], weight = weight_[r];
      if (r == 0)
        for_each_element(count_, [=](index_t i) { y[i] = 0 + weight * x[i]; });
      else
        for_each_element(count_, [=](index_t i) { y[i] += weight * x[i]; });
    }
  }

 private:
  int find(const T* row) const {
    int i = 0;
    while (i < max_rows && held_[i] != row) ++i;
    return i;
  }
  void resample(const T* row, int line) {
    held_[line] = row;
    for (index_t i = 0; i < count_; ++i) {
      T sum = 0;
      for (int k = 0; k < taps; ++k) sum += columns_[i].weight[k] * row[columns_[i].at[k]];
      line_[line][i] = sum;
    }
  }

  const Taps<T, taps>* columns_;
  index_t count_;
  int rows_ = 0;
  const T *row_[max_rows], *held_[max_rows] = {};
  T weight_[max_rows], line_[max_rows][most];
};

/// What the operators of one method share. They differ in the number of image dimensions.
template <Method method, class T>
struct Resample {
  using W = std::conditional_t<is_nearest(method), float, T>;
  using Positions = Table<method, W, std::conditional_t<sizeof(T) == 8, double, float>>;
  static constexpr int taps = taps_of(method);
  using Stretch = RowStretch<W, taps, taps * taps>;

  static void forward(Context& context, const Resampling& p, AnyView<const T> self, View<T> out) {
    const int n = self.rank() - 2;
    const Positions table(p, self.shape().strides + 2, n, context.scratch);
    if constexpr (is_nearest(method)) {
      const auto* columns = table.taps[2];
      const index_t width = p.axis[2].out;
      for_each_row(context.threads, out.shape(), [&](const index_t* at, index_t row) {
        const T* x = self.data() + at[0] * self.stride(0) + at[1] * self.stride(1);
        table.for_each_row_of(n == 3 ? at[2] : 0, n >= 2 ? at[n] : 0,
                              [&](index_t from, W) { x += from; });
        T* y = out.data() + row * width;
        for (index_t i = 0; i < width; ++i) y[i] = x[columns[i].at[0]];
      });
    } else {
      const index_t height = p.axis[1].out, rows = p.axis[0].out * height, width = p.axis[2].out;
      // so many rows that most find their resampled input rows kept
      const index_t per_task = width < pointwise_grain ? pointwise_grain / (width + 1) + 1 : 1;
      parallel_for(context.threads, pieces(p.planes * rows, per_task), [&](index_t task) {
        const index_t begin = task * per_task, left = p.planes * rows - begin,
                      end = left < per_task ? begin + left : begin + per_task;
        for (index_t column = 0; column < width; column += Stretch::most) {
          Stretch stretch(table.taps[2] + column,
                          width - column < Stretch::most ? width - column : Stretch::most);
          for (index_t row = begin; row < end; ++row) {
            const index_t plane = row / rows, channels = self.size(1);
            const T* x =
                self.data() + plane / channels * self.stride(0) + plane % channels * self.stride(1);
            stretch.clear();
            table.for_each_row_of(row % rows / height, row % height,
                                  [&](index_t from, W weight) { stretch.add(x + from, weight); });
            stretch.write(out.data() + row * width + column);
          }
        }
      });
    }
  }
  /// Adds each gradient to the taps of its position, in row-major order, plane by plane.
  static void backward(Context& context, const Resampling& p, View<const T> grad_output,
                       View<T> out) {
    const Positions table(p, out.shape().strides + 2, out.rank() - 2, context.scratch);
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
  }
};

/// `Tail` are the row's parameters after the sizes: [bool align_corners,] the scales.
template <Method method, class T, class... Tail>
struct Upsample : Resample<method, T> {
  using Resample<method, T>::forward, Resample<method, T>::backward;
  static Error prepare(Context& context, Resampling& p, AnyView<const T> self, Span<const int64_t>,
                       Tail... tail, View<T> out) {
    p = resampling_of(self.shape(), out.shape(), tail...);
    if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
    context.need_scratch(Upsample::Positions::bytes(p));
    return Error::ok;
  }
  static Error run(Context& context, const Resampling& p, AnyView<const T> self,
                   Span<const int64_t>, Tail..., View<T> out) {
    if (out.numel() > 0) forward(context, p, self, out);
    return Error::ok;
  }
  static Error prepare_backward(Context& context, Resampling& p, View<const T> grad_output,
                                Span<const int64_t>, Span<const int64_t>, Tail... tail,
                                View<T> out) {
    p = resampling_of(out.shape(), grad_output.shape(), tail...);
    if (out.numel() == 0) return Error::ok;
    context.need_scratch(Upsample::Positions::bytes(p));
    return Error::ok;
  }
  static Error run_backward(Context& context, const Resampling& p, View<const T> grad_output,
                            Span<const int64_t>, Span<const int64_t>, Tail..., View<T> out) {
    if (out.numel() > 0) backward(context, p, grad_output, out);
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
