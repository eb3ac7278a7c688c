// The first position of a largest or smallest element, and running sums and products: one line of
// elements after the other.
#include <cmath>
#include <limits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/reduction.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

/// Lines along one dimension, or one line of all elements.
struct Lines {
  Walk walk;  ///< over (lines, extent)
  index_t lines, extent;
  index_t
      inner;  ///< extents behind the dimension: the distance of a line's elements in a dense result
};
Lines lines_along(const Shape& shape, uint32_t dims) {
  Lines plan{};
  plan.walk = Walk();
  plan.lines = plan.extent = plan.inner = 1;
  bool passed = false;
  for (int d = 0; d < shape.rank; ++d) {
    const bool along = (dims >> d & 1) != 0;
    passed = passed || along;
    if (along) {
      plan.extent *= shape.sizes[d];
    } else {
      plan.lines *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
      if (passed) plan.inner *= shape.sizes[d];
    }
  }
  for (int d = 0; d < shape.rank; ++d)
    if ((dims >> d & 1) != 0) plan.walk.add(shape.sizes[d], shape.strides[d]);
  return plan;
}

constexpr index_t block = tile_width;

/// Calls `line(i)` for every line, in parallel in tasks of a fixed number of elements.
template <class Body>
void for_each_line(const Threads* threads, const Lines& plan, const Body& line) {
  const index_t per_task =
      plan.extent > 0 && plan.extent < pointwise_grain ? pointwise_grain / plan.extent : 1;
  parallel_for(threads, (plan.lines + per_task - 1) / per_task, [&](index_t task) {
    const index_t end = (task + 1) * per_task < plan.lines ? (task + 1) * per_task : plan.lines;
    for (index_t i = task * per_task; i < end; ++i) line(i);
  });
}

/// Largest: a is before b if it is greater, or the first NaN.
template <class T>
struct Greater {
  static bool before(T a, T b) { return a > b || (a != a && b == b); }
};
template <class T>
struct Less {
  static bool before(T a, T b) { return a < b || (a != a && b == b); }
};

template <class Order, class T>
T find_extreme(const Source& source, const Lines& plan, index_t line, int64_t& position) {
  T buffer[block], best{};
  position = 0;
  for (index_t at = 0; at < plan.extent; at += block) {
    const index_t n = plan.extent - at < block ? plan.extent - at : block;
    const T* x = static_cast<const T*>(read_block(source, line * plan.extent + at, n, buffer));
    for (index_t i = 0; i < n; ++i)
      if ((at == 0 && i == 0) || Order::before(x[i], best)) best = x[i], position = at + i;
  }
  return best;
}

template <template <class> class Order, class E>
struct ArgExtreme {
  using T = Compute<E>;
  static Error prepare(Context&, Lines& plan, AnyView<const E> self, Maybe<int64_t> dim, bool,
                       View<int64_t>) {
    plan = lines_along(self.shape(), dim ? one_dim(self.rank(), *dim) : all_dims(self.rank()));
    return Error::ok;
  }
  static Error run(Context& context, const Lines& plan, AnyView<const E> self, Maybe<int64_t>, bool,
                   View<int64_t> out) {
    const Source source(*self.ref, plan.walk, internal::computed_dtype<E>(*self.ref));
    for_each_line(context.threads, plan,
                  [&](index_t i) { find_extreme<Order<T>, T>(source, plan, i, out.data()[i]); });
    return Error::ok;
  }
};

template <template <class> class Order, class E>
struct Extreme {
  using T = Compute<E>;
  static Error prepare(Context&, Lines& plan, AnyView<const E> self, int64_t dim, bool, View<E>,
                       View<int64_t>) {
    plan = lines_along(self.shape(), one_dim(self.rank(), dim));
    return Error::ok;
  }
  static Error run(Context& context, const Lines& plan, AnyView<const E> self, int64_t, bool,
                   View<E> values, View<int64_t> indices) {
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source(*self.ref, plan.walk, computes);
    const Store store = storer(computes, values.dtype());
    const int bytes = size_bytes(values.dtype());
    for_each_line(context.threads, plan, [&](index_t i) {
      const T best = find_extreme<Order<T>, T>(source, plan, i, indices.data()[i]);
      store(&best, 1, static_cast<char*>(values.ref->data) + i * bytes);
    });
    return Error::ok;
  }
};

template <class T>
struct RunningSum {
  static constexpr T start = T(0);
  static T next(T a, T x) { return wrapping_add(a, x); }
};
template <class T>
struct RunningProduct {
  static constexpr T start = T(1);
  static T next(T a, T x) { return wrapping_mul(a, x); }
};

/// log(exp(a) + exp(x)), without overflow.
template <class T>
struct RunningLogSum {
  static constexpr T start = -std::numeric_limits<T>::infinity();
  static T next(T a, T x) {
    const T most = a > x || a != a ? a : x, least = a > x || a != a ? x : a;
    if (least != least) return least;
    return std::isinf(most) ? most : most + std::log1p(std::exp(least - most));
  }
};

/// Calls body(element, its offset in a dense result) along a line.
template <class T, class Body>
void walk_line(const Source& source, const Lines& plan, index_t line, const Body& body) {
  index_t to = line / plan.inner * plan.inner * plan.extent + line % plan.inner;
  T buffer[block];
  for (index_t at = 0; at < plan.extent; at += block) {
    const index_t n = plan.extent - at < block ? plan.extent - at : block;
    const T* x = static_cast<const T*>(read_block(source, line * plan.extent + at, n, buffer));
    for (index_t i = 0; i < n; ++i, to += plan.inner) body(x[i], to);
  }
}

/// y[k] = x[0] + … + x[k] along `dim`; floats accumulate in double.
template <template <class> class Running, class E, class... P>
struct Scan {
  using T = Compute<E>;
  using Accumulator = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static Error prepare(Context&, Lines& plan, AnyView<const E> self, int64_t dim, P..., View<E>) {
    plan = lines_along(self.shape(), one_dim(self.rank(), dim));
    return Error::ok;
  }
  /// Lines that lie densely, one behind the other or some side by side.
  static void scan_dense(Context& context, const Lines& plan, const T* self, T* out) {
    constexpr index_t width = 64;
    const index_t inner = plan.inner, strips = (inner + width - 1) / width,
                  outer = inner > 0 ? plan.lines / inner : 0;
    parallel_for(context.threads, outer * strips, [&](index_t task) {
      const index_t at = task / strips * plan.extent * inner + task % strips * width,
                    left = inner - task % strips * width, n = left < width ? left : width;
      const T* x = self + at;
      T* y = out + at;
      Accumulator sums[width];
      for (Accumulator& sum : sums) sum = Running<Accumulator>::start;
      if (n == 1) {
        Accumulator sum = sums[0];
        for (index_t i = 0; i < plan.extent; ++i) {
          sum = Running<Accumulator>::next(sum, static_cast<Accumulator>(x[i * inner]));
          y[i * inner] = static_cast<T>(sum);
        }
        return;
      }
      for (index_t i = 0; i < plan.extent; ++i)
        for (index_t k = 0; k < n; ++k) {
          sums[k] = Running<Accumulator>::next(sums[k], static_cast<Accumulator>(x[i * inner + k]));
          y[i * inner + k] = static_cast<T>(sums[k]);
        }
    });
  }
  static Error run(Context& context, const Lines& plan, AnyView<const E> self, int64_t, P...,
                   View<E> out) {
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source(*self.ref, plan.walk, computes);
    const Store store = storer(computes, out.dtype());
    const int bytes = size_bytes(out.dtype());
    char* const y = static_cast<char*>(out.ref->data);
    if (std::is_same_v<E, T> && self.shape().is_dense()) {
      scan_dense(context, plan, static_cast<const T*>(self.ref->data),
                 static_cast<T*>(out.ref->data));
      return Error::ok;
    }
    for_each_line(context.threads, plan, [&](index_t line) {
      Accumulator sum = Running<Accumulator>::start;
      walk_line<T>(source, plan, line, [&](T x, index_t to) {
        sum = Running<Accumulator>::next(sum, static_cast<Accumulator>(x));
        const T rounded = static_cast<T>(sum);
        store(&rounded, 1, y + to * bytes);
      });
    });
    return Error::ok;
  }
};

/// With a dtype, which the host has settled.
template <template <class> class Running, class E>
using ScanTo = Scan<Running, E, Maybe<DType>>;

/// The extreme of x[0] … x[k], and the last position where it stands; NaN stays.
template <template <class> class Order, class E>
struct RunningExtreme {
  using T = Compute<E>;
  static Error prepare(Context&, Lines& plan, AnyView<const E> self, int64_t dim, View<E>,
                       View<int64_t>) {
    plan = lines_along(self.shape(), one_dim(self.rank(), dim));
    return Error::ok;
  }
  static Error run(Context& context, const Lines& plan, AnyView<const E> self, int64_t,
                   View<E> values, View<int64_t> indices) {
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source(*self.ref, plan.walk, computes);
    const Store store = storer(computes, values.dtype());
    const int bytes = size_bytes(values.dtype());
    char* const y = static_cast<char*>(values.ref->data);
    for_each_line(context.threads, plan, [&](index_t line) {
      T best{};
      int64_t position = -1, at = 0;
      walk_line<T>(source, plan, line, [&](T x, index_t to) {
        if (position < 0 || !Order<T>::before(best, x)) best = x, position = at;
        ++at;
        store(&best, 1, y + to * bytes);
        indices.data()[to] = position;
      });
    });
    return Error::ok;
  }
};

}  // namespace

#define TAPER_LINES(op, variant, ...) \
  TAPER_KERNEL(op, variant, __VA_ARGS__::prepare, __VA_ARGS__::run)
#define TAPER_LINES_NUMERIC(op, Kernel, F)            \
  TAPER_LINES(op, f32, Kernel<F, float>)              \
  TAPER_LINES(op, f64, Kernel<F, double>)             \
  TAPER_LINES(op, small_float, Kernel<F, SmallFloat>) \
  TAPER_LINES(op, i64, Kernel<F, int64_t>)            \
  TAPER_LINES(op, small_integer, Kernel<F, SmallInteger>)

TAPER_LINES_NUMERIC(argmax, ArgExtreme, Greater)
TAPER_LINES_NUMERIC(argmin, ArgExtreme, Less)
TAPER_LINES_NUMERIC(max_dim, Extreme, Greater)
TAPER_LINES_NUMERIC(min_dim, Extreme, Less)
TAPER_LINES_NUMERIC(cummax, RunningExtreme, Greater)
TAPER_LINES_NUMERIC(cummin, RunningExtreme, Less)
TAPER_LINES_NUMERIC(cumsum, ScanTo, RunningSum)
TAPER_LINES_NUMERIC(cumprod, ScanTo, RunningProduct)
TAPER_LINES(logcumsumexp, f32, Scan<RunningLogSum, float>)
TAPER_LINES(logcumsumexp, f64, Scan<RunningLogSum, double>)
TAPER_LINES(logcumsumexp, small_float, Scan<RunningLogSum, SmallFloat>)

}  // namespace taper::portable
