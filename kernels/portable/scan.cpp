// Running sums, products and extremes along a dimension.
#include <cmath>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/screening.h"
#include "taper/kernels/portable/walked_lines.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

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

/// Where the lines of a strip stand: after y[k] = x[0] + … + x[k]. Floats accumulate in double.
template <template <class> class Running, class T>
class Sums {
  using Accumulator = std::conditional_t<std::is_same_v<T, float>, double, T>;
  using Step = Running<Accumulator>;

 public:
  Sums() {
    for (Accumulator& sum : sums_) sum = Step::start;
  }
  /// The next n elements of the only line.
  void line(const T* x, index_t n, index_t, T* y, index_t) {
    Accumulator sum = sums_[0];
    for (index_t i = 0; i < n; ++i)
      sum = Step::next(sum, static_cast<Accumulator>(x[i])), y[i] = static_cast<T>(sum);
    sums_[0] = sum;
  }
  /// The next element of n lines.
  void row(const T* x, index_t n, index_t, T* y, index_t) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < n; ++k) {
      sums_[k] = Step::next(sums_[k], static_cast<Accumulator>(x[k]));
      y[k] = static_cast<T>(sums_[k]);
    }
  }

 private:
  Accumulator sums_[strip_width];
};

/// The extreme of x[0] … x[k], and the last position where it stands; NaN stays.
template <class Order, class T>
class Extremes {
 public:
  explicit Extremes(int64_t* indices) : indices_(indices) {
    for (index_t k = 0; k < strip_width; ++k) best_[k] = Order::last, at_[k] = 0;
  }
  /// Element `first` of the line goes to element `to` of the result.
  void line(const T* x, index_t n, index_t first, T* y, index_t to) {
    int64_t* const indices = indices_ + to;
    const auto see = [=](index_t i) {
      if (!Order::before(*best_, x[i])) *best_ = x[i], *at_ = first + i;
      y[i] = *best_, indices[i] = *at_;
    };
    index_t i = 0;
    if constexpr (std::is_floating_point_v<T>)
      for (; i + screened <= n; i += screened) {
        const T best = *best_;
        const int64_t at = *at_;
        if (any_of([=](int l) { return !Order::before(best, x[i + l]); })) {
          for (int l = 0; l < screened; ++l) see(i + l);
        } else {
          TAPER_LANES
          for (int l = 0; l < screened; ++l) y[i + l] = best;
          TAPER_LANES
          for (int l = 0; l < screened; ++l) indices[i + l] = at;
        }
      }
    for (; i < n; ++i) see(i);
  }
  void row(const T* x, index_t n, index_t position, T* y, index_t to) {
    int64_t* const indices = indices_ + to;
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < n; ++k) {
      const bool stays = Order::before(best_[k], x[k]);
      y[k] = best_[k] = stays ? best_[k] : x[k];
      indices[k] = at_[k] = stays ? at_[k] : position;
    }
  }

 private:
  T best_[strip_width];
  int64_t at_[strip_width];
  int64_t* indices_;
};

/// Lets a State, made for each strip from `given`, see the strip's elements in order.
template <class State, class T, class E, class... Given>
void scan(const Context& context, const WalkedLines& plan, AnyView<const E> self, View<E> out,
          Given... given) {
  const DType computes = internal::computed_dtype<E>(*self.ref);
  const Source source(*self.ref, plan.walk, computes);
  const index_t extent = plan.lines.extent, step = plan.lines.inner,
                width = step < strip_width ? step : strip_width;
  parallel_ranges(
      context.threads, plan.strips(), extent * width, [&](index_t number, index_t last) {
        BlockReader<T> reader(source);
        BlockWriter<T> writer(*out.ref, computes);
        for (; number < last; ++number) {
          const Strip strip(plan, number);
          State state(given...);
          const index_t block = step == 1 ? strip_width : 1;
          for (index_t i = 0; i < extent; i += block) {
            const index_t at = strip.first + i * step, n = step > 1             ? strip.width
                                                           : extent - i < block ? extent - i
                                                                                : block;
            const T* const x = reader.read(at, n);
            T* const y = writer.place(at);
            step == 1 ? state.line(x, n, i, y, at) : state.row(x, n, i, y, at);
            writer.store(at, n);
          }
        }
      });
}

template <template <class> class Running, class E, class... P>
struct Scan {
  static Error prepare(Context&, WalkedLines& plan, AnyView<const E> self, int64_t dim, P...,
                       View<E>) {
    plan = WalkedLines::along(self.shape(), dim);
    return Error::ok;
  }
  static Error run(Context& context, const WalkedLines& plan, AnyView<const E> self, int64_t, P...,
                   View<E> out) {
    scan<Sums<Running, Compute<E>>, Compute<E>>(context, plan, self, out);
    return Error::ok;
  }
};

/// With a dtype, which the host has settled.
template <template <class> class Running, class E>
using ScanTo = Scan<Running, E, Maybe<DType>>;

template <template <class> class Order, class E>
struct RunningExtreme {
  static Error prepare(Context&, WalkedLines& plan, AnyView<const E> self, int64_t dim, View<E>,
                       View<int64_t>) {
    plan = WalkedLines::along(self.shape(), dim);
    return Error::ok;
  }
  static Error run(Context& context, const WalkedLines& plan, AnyView<const E> self, int64_t,
                   View<E> values, View<int64_t> indices) {
    using T = Compute<E>;
    scan<Extremes<Order<T>, T>, T>(context, plan, self, values, indices.data());
    return Error::ok;
  }
};

}  // namespace

TAPER_LINES_NUMERIC(cummax, RunningExtreme, Greater)
TAPER_LINES_NUMERIC(cummin, RunningExtreme, Less)
TAPER_LINES_NUMERIC(cumsum, ScanTo, RunningSum)
TAPER_LINES_NUMERIC(cumprod, ScanTo, RunningProduct)
TAPER_LINES(logcumsumexp, f32, Scan<RunningLogSum, float>)
TAPER_LINES(logcumsumexp, f64, Scan<RunningLogSum, double>)
TAPER_LINES(logcumsumexp, small_float, Scan<RunningLogSum, SmallFloat>)

}  // namespace taper::portable
