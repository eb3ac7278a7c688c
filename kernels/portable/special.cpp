// Special functions of one tensor.
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/special_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

template <class T>
struct Erfinv {
  T operator()(T x) const { return math::erfinv(x); }
};
template <class T>
struct Lgamma {
  T operator()(T x) const {
    return static_cast<T>(math::lgamma < sizeof(T) == 4 ? 13 : 26 > (double{x}));
  }
};
template <class T>
struct Digamma {
  T operator()(T x) const { return static_cast<T>(math::digamma(double{x})); }
};
template <class T>
struct Polygamma {
  int64_t n;
  explicit Polygamma(int64_t n) : n(n) {}
  T operator()(T x) const { return static_cast<T>(math::polygamma(n, double{x})); }
};
template <class T>
struct I0 {
  T operator()(T x) const { return static_cast<T>(math::bessel_i(0, double{x})); }
};
template <class T>
struct I1 {
  T operator()(T x) const { return static_cast<T>(math::bessel_i(1, double{x})); }
};
template <class T>
struct I0e {
  T operator()(T x) const { return static_cast<T>(math::scaled_bessel_i(0, double{x})); }
};
template <class T>
struct I1e {
  T operator()(T x) const { return static_cast<T>(math::scaled_bessel_i(1, double{x})); }
};
template <class T>
struct LogNdtr {
  T operator()(T x) const { return static_cast<T>(math::log_ndtr(double{x})); }
};

}  // namespace

TAPER_UNARY_FLOATING(erfinv, Erfinv)
TAPER_UNARY_FLOATING(lgamma, Lgamma)
TAPER_UNARY_FLOATING(digamma, Digamma)
TAPER_UNARY_FLOATING(i0, I0)
TAPER_UNARY_FLOATING(special_i0e, I0e)
TAPER_UNARY_FLOATING(special_i1, I1)
TAPER_UNARY_FLOATING(special_i1e, I1e)
TAPER_UNARY_FLOATING(special_log_ndtr, LogNdtr)
TAPER_POINTWISE(polygamma, f32, AfterNumber<Polygamma<float>, int64_t, float>)
TAPER_POINTWISE(polygamma, f64, AfterNumber<Polygamma<double>, int64_t, double>)
TAPER_POINTWISE(polygamma, small_float, AfterNumber<Polygamma<float>, int64_t, SmallFloat>)

}  // namespace taper::portable
