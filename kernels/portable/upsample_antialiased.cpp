// Resampling of images with a filter, and the gradient. A result row is first computed as a sum of
// input rows, then resampled along the row.
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/antialiasing.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper::portable {
namespace {

/// The window and weights of every position along a dimension. A run makes this table first.
template <class T>
class Table {
 public:
  template <class Filter>
  static size_t bytes(const Axis& axis) {
    return static_cast<size_t>(axis.out) * sizeof(Window) +
           static_cast<size_t>(Antialiasing<Filter>::most_of_all(axis)) * sizeof(double);
  }
  template <class Filter>
  Table(const Axis& axis, const Antialiasing<Filter>& filter, char* memory)
      : windows_(reinterpret_cast<Window*>(memory)),
        weights_(reinterpret_cast<T*>(windows_ + axis.out)),
        most_(filter.most()) {
    for (index_t i = 0; i < axis.out; ++i) {
      T* const to = weights_ + i * most_;
      windows_[i] =
          filter.position(i, [=](index_t k, double weight) { to[k] = static_cast<T>(weight); });
    }
  }
  const Window& window(index_t i) const { return windows_[i]; }
  const T* weights(index_t i) const { return weights_ + i * most_; }

 private:
  Window* windows_;
  T* weights_;
  index_t most_;
};

/// The tables of an image's rows and columns, and the scratch behind them.
template <class T>
struct Tables {
  Table<T> rows, columns;
  T* lines;

  template <class Filter>
  static size_t bytes(const Resampling& p) {
    return Table<T>::template bytes<Filter>(p.axis[1]) +
           Table<T>::template bytes<Filter>(p.axis[2]);
  }
  template <class Filter>
  static Tables of(const Resampling& p, char* memory) {
    const Axis &down = p.axis[1], &right = p.axis[2];
    return {{down, Antialiasing<Filter>(down, p.align_corners), memory},
            {right, Antialiasing<Filter>(right, p.align_corners),
             memory + Table<T>::template bytes<Filter>(down)},
            reinterpret_cast<T*>(memory + bytes<Filter>(p))};
  }
};

/// y = the sum of `count` input rows, each multiplied by its weight.
template <class T>
void sum_rows(const T* x, const T* weight, index_t count, index_t width, T* y) {
  for (index_t i = 0; i < width; ++i) y[i] = 0;
  index_t k = 0;
  for (; k + 4 <= count; k += 4, x += 4 * width, weight += 4) {
    const T a = weight[0], b = weight[1], c = weight[2], d = weight[3];
    for_each_element(width, [=](index_t i) {
      y[i] = y[i] + a * x[i] + b * x[i + width] + c * x[i + 2 * width] + d * x[i + 3 * width];
    });
  }
  for (; k < count; ++k, x += width, ++weight) {
    const T a = *weight;
    for_each_element(width, [=](index_t i) { y[i] += a * x[i]; });
  }
}

constexpr index_t rows_per_task = 8;

/// As in PyTorch, a dimension that keeps its size is copied, whatever the scale factor is.
bool is_kept(const Axis& axis) { return axis.in == axis.out; }

template <class T>
void resample(const Threads* threads, const Resampling& p, const Tables<T>& tables, const T* x,
              T* out) {
  const Table<T>&rows = tables.rows, &columns = tables.columns;
  const index_t in = p.axis[2].in, width = p.axis[2].out, height = p.axis[1].out;
  const index_t all = p.planes * height;
  parallel_for(threads, pieces(all, rows_per_task), [&](index_t task) {
    T* const line = tables.lines + task * in;
    const index_t begin = task * rows_per_task,
                  end = all - begin < rows_per_task ? all : begin + rows_per_task;
    for (index_t row = begin; row < end; ++row) {
      const index_t plane = row / height, h = row % height;
      const Window window = rows.window(h);
      const T* across = x + (plane * p.axis[1].in + (is_kept(p.axis[1]) ? h : window.first)) * in;
      if (!is_kept(p.axis[1])) {
        sum_rows(across, rows.weights(h), window.count, in, line);
        across = line;
      }
      if (is_kept(p.axis[2])) {
        std::memcpy(out + row * width, across, static_cast<size_t>(width) * sizeof(T));
        continue;
      }
      for (index_t w = 0; w < width; ++w) {
        const T *from = across + columns.window(w).first, *weight = columns.weights(w);
        T sum = 0;
        for (index_t k = 0; k < columns.window(w).count; ++k) sum += weight[k] * from[k];
        out[row * width + w] = sum;
      }
    }
  });
}

/// Adds each row of gradients to a line of the input's length first, and this line to the input
/// rows of its window.
template <class T>
void spread(const Threads* threads, const Resampling& p, const Tables<T>& tables, const T* grad,
            T* out) {
  const index_t in = p.axis[2].in, width = p.axis[2].out, height = p.axis[1].out;
  parallel_for(threads, p.planes, [&](index_t plane) {
    T *const line = tables.lines + plane * in, *const dx = out + plane * p.in_plane();
    for (index_t i = 0; i < p.in_plane(); ++i) dx[i] = 0;
    for (index_t h = 0; h < height; ++h) {
      const T* dy = grad + (plane * height + h) * width;
      for (index_t i = 0; i < in; ++i) line[i] = 0;
      for (index_t w = 0; w < width; ++w) {
        const Window window = tables.columns.window(w);
        const T* weight = tables.columns.weights(w);
        for (index_t k = 0; k < window.count; ++k) line[window.first + k] += weight[k] * dy[w];
      }
      const Window window = tables.rows.window(h);
      for (index_t k = 0; k < window.count; ++k) {
        T* const to = dx + (window.first + k) * in;
        const T weight = tables.rows.weights(h)[k];
        for_each_element(in, [=](index_t i) { to[i] += weight * line[i]; });
      }
    }
  });
}

template <class Filter, class T>
struct Antialiased {
  using Scale = Maybe<double>;

  /// Each of the `tasks` needs a row of the input's length.
  static void need(Context& context, const Resampling& p, index_t tasks) {
    context.need_scratch(Tables<T>::template bytes<Filter>(p) +
                         static_cast<size_t>(tasks * p.axis[2].in) * sizeof(T));
  }
  static Error prepare(Context& context, Resampling& p, View<const T> self, Span<const int64_t>,
                       bool align_corners, Scale scale_h, Scale scale_w, View<T> out) {
    p = resampling_of(self.shape(), out.shape(), align_corners, scale_h, scale_w);
    if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
    need(context, p, pieces(p.planes * p.axis[1].out, rows_per_task));
    return Error::ok;
  }
  static Error run(Context& context, const Resampling& p, View<const T> self, Span<const int64_t>,
                   bool, Scale, Scale, View<T> out) {
    if (out.numel() == 0) return Error::ok;
    resample(context.threads, p,
             Tables<T>::template of<Filter>(p, static_cast<char*>(context.scratch)), self.data(),
             out.data());
    return Error::ok;
  }
  static Error prepare_backward(Context& context, Resampling& p, View<const T> grad_output,
                                Span<const int64_t>, Span<const int64_t>, bool align_corners,
                                Scale scale_h, Scale scale_w, View<T> out) {
    p = resampling_of(out.shape(), grad_output.shape(), align_corners, scale_h, scale_w);
    if (out.numel() == 0) return Error::ok;
    need(context, p, p.planes);
    return Error::ok;
  }
  static Error run_backward(Context& context, const Resampling& p, View<const T> grad_output,
                            Span<const int64_t>, Span<const int64_t>, bool, Scale, Scale,
                            View<T> out) {
    if (out.numel() == 0) return Error::ok;
    spread(context.threads, p,
           Tables<T>::template of<Filter>(p, static_cast<char*>(context.scratch)),
           grad_output.data(), out.data());
    return Error::ok;
  }
};

}  // namespace

#define TAPER_ANTIALIASED(op, variant, ...)                                                   \
  TAPER_KERNEL(op, variant, Antialiased<__VA_ARGS__>::prepare, Antialiased<__VA_ARGS__>::run) \
  TAPER_KERNEL(op##_backward, variant, Antialiased<__VA_ARGS__>::prepare_backward,            \
               Antialiased<__VA_ARGS__>::run_backward)
TAPER_ANTIALIASED(_upsample_bilinear2d_aa, f32, Triangle, float)
TAPER_ANTIALIASED(_upsample_bilinear2d_aa, f64, Triangle, double)
TAPER_ANTIALIASED(_upsample_bicubic2d_aa, f32, Cubic, float)
TAPER_ANTIALIASED(_upsample_bicubic2d_aa, f64, Cubic, double)

}  // namespace taper::portable
