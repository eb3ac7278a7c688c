// Running sums, products, maxima and minima along a dimension.
#include "taper/kernels/portable/scan.h"

#include <cmath>

#include "taper/kernels/portable/screening.h"

namespace taper::portable {
namespace {

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

/// The extreme of x[0] … x[k], and the last position where it occurs. Once there is a NaN, it
/// stays.
template <class Order, class T>
class Extremes {
 public:
  explicit Extremes(int64_t* indices) : indices_(indices) {
    for (index_t k = 0; k < strip_width; ++k) best_[k] = Order::last, at_[k] = 0;
  }
  /// Reads element number `first` of the line and the following ones, and writes to the result from
  /// element `to` on.
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

/// For rows with a dtype, which the host has resolved.
template <template <class> class Running, class E>
using ScanTo = Scan<PlainLoops, Running, E, Maybe<DType>>;

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
    scan<PlainLoops, Extremes<Order<T>, T>, T>(context, plan, self, values, indices.data());
    return Error::ok;
  }
};

}  // namespace

TAPER_LINES_NUMERIC(cummax, RunningExtreme, Greater)
TAPER_LINES_NUMERIC(cummin, RunningExtreme, Less)
TAPER_LINES_NUMERIC(cumsum, ScanTo, RunningSum)
TAPER_LINES_NUMERIC(cumprod, ScanTo, RunningProduct)
TAPER_LINES(logcumsumexp, f32, Scan<PlainLoops, RunningLogSum, float>)
TAPER_LINES(logcumsumexp, f64, Scan<PlainLoops, RunningLogSum, double>)
TAPER_LINES(logcumsumexp, small_float, Scan<PlainLoops, RunningLogSum, SmallFloat>)

}  // namespace taper::portable
