// Sums, products, quotients, powers and comparisons of complex numbers.
#include <cmath>

#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::complex_forms {
namespace {

template <Name name, const Operator& op>
Pair pair(const Arguments<op>& a) {
  return pair_of(a.template tensor<name>());
}
bool is_number(Scalar s, double value) { return s.to<double>() == value; }
Pair scaled(const Pair& z, Scalar factor) { return is_number(factor, 1) ? z : z * factor; }

/// The operator with a number, which changes the real part alone.
template <const Operator& op>
Results on_real_part(const OperatorInfo& info, const Boxed* arguments) {
  const Arguments<op> a(arguments);
  return {complex_of({real_parts(info, arguments)[0], pair<"self">(a).im})};
}

Tensor equal(const Pair& x, const Pair& y) {
  return logical_and(eq(x.re, y.re), eq(imaginary(x), imaginary(y)));
}
template <const Operator& op>
Tensor equal_to_number(const Arguments<op>& a) {
  const Pair z = pair<"self">(a);
  return logical_and(eq(z.re, a.template scalar<"other">()), eq(z.im, 0));
}

/// Refuses a rounded division.
template <const Operator& op>
void require_exact(const Arguments<op>& a) {
  if (a.template has<"rounding_mode">())
    throw ExportError("complex numbers cannot be rounded; leave rounding_mode out");
}

bool is_integer(double x) { return x == std::floor(x) && std::abs(x) <= 64; }

Pair power_of(const Pair& x, Scalar exponent) {
  const double e = exponent.to<double>();
  if (is_integer(e)) return power(x, static_cast<int64_t>(e));
  if (e == 0.5) return square_root(x);
  return power(x, {scalar_tensor(exponent, DType::f32), {}});
}

/// start + weight (end - start), from the nearer end.
Pair between(const Pair& start, const Pair& end, Scalar weight) {
  const double w = weight.to<double>();
  if (std::abs(w) < 0.5) return start + (end - start) * weight;
  return end - (end - start) * Scalar(1 - w);
}

}  // namespace

TAPER_COMPLEX(add_Tensor) {
  return {complex_of(pair<"self">(a) + scaled(pair<"other">(a), a.scalar<"alpha">()))};
}
TAPER_COMPLEX(sub_Tensor) {
  return {complex_of(pair<"self">(a) - scaled(pair<"other">(a), a.scalar<"alpha">()))};
}
TAPER_COMPLEX_FORM(add_Scalar, on_real_part<ops::add_Scalar>)
TAPER_COMPLEX_FORM(sub_Scalar, on_real_part<ops::sub_Scalar>)
TAPER_COMPLEX(rsub_Scalar) {
  const Tensor negative = neg(mul(a.tensor<"self">(), a.scalar<"alpha">()));
  return {add(negative, a.scalar<"other">())};
}
TAPER_COMPLEX(mul_Tensor) { return {complex_of(pair<"self">(a) * pair<"other">(a))}; }
TAPER_COMPLEX_FORM(mul_Scalar, by_parts)
TAPER_COMPLEX(div_Tensor) { return {complex_of(pair<"self">(a) / pair<"other">(a))}; }
TAPER_COMPLEX_FORM(div_Scalar, by_parts)
TAPER_COMPLEX(div_Tensor_mode) {
  require_exact(a);
  return {div(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_COMPLEX(div_Scalar_mode) {
  require_exact(a);
  return {div(a.tensor<"self">(), a.scalar<"other">())};
}
TAPER_COMPLEX_FORM(neg, by_parts)
TAPER_COMPLEX_FORM(nan_to_num, by_parts)
TAPER_COMPLEX(reciprocal) {
  const Pair z = pair<"self">(a);
  return {complex_of(Pair{ones_like(z.re), {}} / z)};
}

TAPER_COMPLEX(pow_Tensor_Scalar) {
  return {complex_of(power_of(pair<"self">(a), a.scalar<"exponent">()))};
}
TAPER_COMPLEX(pow_Tensor_Tensor) {
  return {complex_of(power(pair<"self">(a), pair<"exponent">(a)))};
}
TAPER_COMPLEX(pow_Scalar) {
  const Pair base = {scalar_tensor(a.scalar<"self">(), DType::f32), {}};
  return {complex_of(power(base, pair<"exponent">(a)))};
}

TAPER_COMPLEX(addcmul) {
  const Pair product = pair<"tensor1">(a) * pair<"tensor2">(a);
  return {complex_of(pair<"self">(a) + scaled(product, a.scalar<"value">()))};
}
TAPER_COMPLEX(addcdiv) {
  const Pair quotient = pair<"tensor1">(a) / pair<"tensor2">(a);
  return {complex_of(pair<"self">(a) + scaled(quotient, a.scalar<"value">()))};
}
TAPER_COMPLEX(lerp_Scalar) {
  return {complex_of(between(pair<"self">(a), pair<"end">(a), a.scalar<"weight">()))};
}
TAPER_COMPLEX(lerp_Tensor) {
  const Pair start = pair<"self">(a);
  return {complex_of(start + pair<"weight">(a) * (pair<"end">(a) - start))};
}

// Both parts stay or become 0.
TAPER_COMPLEX(taper_native_dropout) {
  const Pair z = pair<"input">(a);
  const auto [factors, mask, next] =
      call<ops::taper_native_dropout>(a.tensor<"state">(), ones_like(z.re), a.real<"p">());
  return {complex_of({mul(z.re, factors), mul(z.im, factors)}), mask, next};
}

TAPER_COMPLEX(eq_Tensor) { return {equal(pair<"self">(a), pair<"other">(a))}; }
TAPER_COMPLEX(eq_Scalar) { return {equal_to_number(a)}; }
TAPER_COMPLEX(ne_Tensor) { return {logical_not(equal(pair<"self">(a), pair<"other">(a)))}; }
TAPER_COMPLEX(ne_Scalar) { return {logical_not(equal_to_number(a))}; }
TAPER_COMPLEX(isnan) {
  const Pair z = pair<"self">(a);
  return {logical_or(isnan(z.re), isnan(z.im))};
}
TAPER_COMPLEX(isinf) {
  const Pair z = pair<"self">(a);
  return {logical_or(isinf(z.re), isinf(z.im))};
}
TAPER_COMPLEX(logical_not) { return {is_zero(pair<"self">(a))}; }
TAPER_COMPLEX(isreal) { return {eq(pair<"self">(a).im, 0)}; }

TAPER_COMPLEX(abs) { return {magnitude(pair<"self">(a))}; }
TAPER_COMPLEX(sgn) { return {complex_of(direction(pair<"self">(a)))}; }

}  // namespace taper::eager::complex_forms
