#include "taper/exporter/importers/pt2/number.h"

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using Operands = std::span<const Number>;

DType dtype_of(Kind kind) {
  return kind == Kind::integer ? DType::i64 : kind == Kind::boolean ? DType::boolean : DType::f64;
}

bool is_real(Operands x) {
  for (const Number& n : x)
    if (n.kind == Kind::real) return true;
  return false;
}
bool are_dims(Operands x) {
  for (const Number& n : x)
    if (n.tensor.defined() || n.condition || n.kind == Kind::real) return false;
  return true;
}
bool are_known(Operands x) {
  for (const Number& n : x)
    if (!n.is_known()) return false;
  return true;
}
/// Booleans count as 0 and 1.
double to_double(const Number& n) { return n.value().to<double>(); }

/// Uses `integers` if both are sizes, `reals` if both are known, and `tensors` otherwise.
template <class Integers, class Reals, class Tensors>
Number binary(Operands x, const Integers& integers, const Reals& reals, const Tensors& tensors) {
  if (are_dims(x)) return Number::of(integers(x[0].numerator, x[1].numerator));
  if (are_known(x)) return Number::of(static_cast<double>(reals(to_double(x[0]), to_double(x[1]))));
  const DType dtype = is_real(x) ? DType::f64 : DType::i64;
  return Number::of(tensors(x[0].as_tensor(dtype), x[1].as_tensor(dtype)));
}

// Python's % and //. They are exact, while a - floor(a / b) * b rounds the quotient first: 1 // 0.1
// is 9.
bool has_other_sign(double rest, double b) { return rest != 0 && (rest < 0) != (b < 0); }
double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return has_other_sign(rest, b) ? rest + b : rest;
}
double floor_divide(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b), whole = (a - rest) / b - has_other_sign(rest, b);
  if (whole == 0) return std::copysign(0.0, a / b);
  const double below = std::floor(whole);
  return whole - below > 0.5 ? below + 1 : below;
}

Number add(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return a + b; }, [](double a, double b) { return a + b; },
      [](const Tensor& a, const Tensor& b) { return eager::add(a, b); });
}
Number sub(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return a - b; }, [](double a, double b) { return a - b; },
      [](const Tensor& a, const Tensor& b) { return eager::sub(a, b); });
}
Number mul(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return a * b; }, [](double a, double b) { return a * b; },
      [](const Tensor& a, const Tensor& b) { return eager::mul(a, b); });
}
Number floordiv(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return a / b; }, floor_divide,
      [](const Tensor& a, const Tensor& b) { return eager::floor_divide(a, b); });
}
Number mod(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return a % b; }, floor_modulo,
      [](const Tensor& a, const Tensor& b) { return eager::remainder(a, b); });
}
Number maximum(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return max(a, b); }, [](double a, double b) { return std::max(a, b); },
      [](const Tensor& a, const Tensor& b) { return eager::maximum(a, b); });
}
Number minimum(Operands x) {
  return binary(
      x, [](Dim a, Dim b) { return min(a, b); }, [](double a, double b) { return std::min(a, b); },
      [](const Tensor& a, const Tensor& b) { return eager::minimum(a, b); });
}
Number truediv(Operands x) {
  if (are_known(x)) return Number::of(to_double(x[0]) / to_double(x[1]));
  if (are_dims(x)) {
    Number quotient;
    quotient.kind = Kind::real;
    quotient.numerator = x[0].numerator, quotient.denominator = x[1].numerator;
    return quotient;
  }
  return Number::of(eager::div(x[0].as_tensor(DType::f64), x[1].as_tensor(DType::f64)));
}
Number power(Operands x) {
  if (are_dims(x) && x[1].numerator.is_constant() && x[1].numerator.value() >= 0 &&
      x[1].numerator.value() < 63) {
    Dim result = 1;
    for (int64_t i = 0; i < x[1].numerator.value(); ++i) result *= x[0].numerator;
    return Number::of(result);
  }
  if (are_known(x)) return Number::of(std::pow(to_double(x[0]), to_double(x[1])));
  return Number::of(eager::pow(x[0].as_tensor(DType::f64), x[1].as_tensor(DType::f64)));
}
/// a * 2^b, and the floor of a / 2^b, for a constant b.
template <bool left>
Number shift(Operands x) {
  const Dim count = x[1].dim();
  if (!count.is_constant() || count.value() < 0 || count.value() > 62)
    throw EagerError("a number is shifted by " + count.to_string() +
                     ", which must be a constant in [0, 62]");
  const Dim factor = int64_t{1} << count.value();
  return Number::of(left ? x[0].dim() * factor : x[0].dim() / factor);
}

Number negate(Operands x) {
  const Number zero = x[0].kind == Kind::real ? Number::of(-0.0) : Number::of(Dim(0));
  const Number operands[] = {zero, x[0]};
  return sub(operands);
}
Number positive(Operands x) { return x[0]; }

// ---- rounding and conversion

Number trunc(Operands x) {
  const Number& n = x[0];
  if (n.kind == Kind::integer) return n;
  if (n.is_known()) return Number::of(Dim(static_cast<int64_t>(std::trunc(to_double(n)))));
  if (!n.tensor.defined() && n.kind == Kind::real && proves_at_least(n.numerator, 0) &&
      proves_at_least(n.denominator, 1))
    return Number::of(n.numerator / n.denominator);
  return Number::of(eager::cast(eager::trunc(n.as_tensor(DType::f64)), DType::i64));
}
Number to_real(Operands x) {
  const Number& n = x[0];
  if (n.kind == Kind::real) return n;
  if (n.is_known()) return Number::of(to_double(n));
  const Number operands[] = {n, Number::of(Dim(1))};
  return truediv(operands);
}
Number square_root(Operands x) {
  if (x[0].is_known()) return Number::of(std::sqrt(to_double(x[0])));
  return Number::of(eager::sqrt(x[0].as_tensor(DType::f64)));
}

// ---- comparisons and logic

Tensor compare(Comparison comparison, const Tensor& a, const Tensor& b) {
  return comparison == Comparison::equal       ? eager::eq(a, b)
         : comparison == Comparison::not_equal ? eager::ne(a, b)
         : comparison == Comparison::less      ? eager::lt(a, b)
                                               : eager::le(a, b);
}
Number compare(Comparison comparison, Operands x) {
  if (are_dims(x)) {
    const Dim a = x[0].numerator, b = x[1].numerator;
    const auto [always, never] = [&]() -> std::pair<bool, bool> {
      switch (comparison) {
        case Comparison::equal:
          return {proves_equal(a, b), proves_different(a, b)};
        case Comparison::not_equal:
          return {proves_different(a, b), proves_equal(a, b)};
        case Comparison::less:
          return {proves_less(a, b), proves_at_least(a, b)};
        default:
          return {proves_at_least(b, a), proves_less(b, a)};
      }
    }();
    if (always || never) return Number::of(always);
    return Number::of(Check{comparison, a, b, ""});
  }
  if (are_known(x)) {
    const double a = to_double(x[0]), b = to_double(x[1]);
    return Number::of(comparison == Comparison::equal       ? a == b
                      : comparison == Comparison::not_equal ? a != b
                      : comparison == Comparison::less      ? a < b
                                                            : a <= b);
  }
  return Number::of(compare(comparison, x[0].as_tensor(DType::f64), x[1].as_tensor(DType::f64)));
}
template <Comparison comparison, bool swapped = false>
Number compared(Operands x) {
  if (!swapped) return compare(comparison, x);
  const Number operands[] = {x[1], x[0]};
  return compare(comparison, operands);
}

bool truth(const Number& n) { return to_double(n) != 0; }

Number logical_not(Operands x) {
  const Number& n = x[0];
  if (n.is_known()) return Number::of(!truth(n));
  if (n.condition) {  // not (a <= b) becomes b < a
    Check c = *n.condition;
    switch (c.comparison) {
      case Comparison::equal:
        c.comparison = Comparison::not_equal;
        break;
      case Comparison::not_equal:
        c.comparison = Comparison::equal;
        break;
      case Comparison::less:
        c = {Comparison::less_equal, c.right, c.left, ""};
        break;
      case Comparison::less_equal:
        c = {Comparison::less, c.right, c.left, ""};
        break;
    }
    return Number::of(c);
  }
  return Number::of(eager::logical_not(n.as_tensor(DType::boolean)));
}
Number logical_and(Operands x) {
  for (size_t i = 0; i < 2; ++i)
    if (x[i].is_known()) return truth(x[i]) ? x[1 - i] : Number::of(false);
  return Number::of(
      eager::logical_and(x[0].as_tensor(DType::boolean), x[1].as_tensor(DType::boolean)));
}
Number logical_or(Operands x) {
  for (size_t i = 0; i < 2; ++i)
    if (x[i].is_known()) return truth(x[i]) ? Number::of(true) : x[1 - i];
  return Number::of(
      eager::logical_or(x[0].as_tensor(DType::boolean), x[1].as_tensor(DType::boolean)));
}
/// sym_ite(condition, then, else)
Number select(Operands x) {
  if (x[0].is_known()) return truth(x[0]) ? x[1] : x[2];
  const DType dtype = is_real(x.subspan(1)) ? DType::f64 : dtype_of(x[1].kind);
  return Number::of(
      eager::where(x[0].as_tensor(DType::boolean), x[1].as_tensor(dtype), x[2].as_tensor(dtype)));
}

constexpr NamedNumberFunction functions[] = {
    {"_operator.add", 2, add},
    {"_operator.sub", 2, sub},
    {"_operator.mul", 2, mul},
    {"_operator.floordiv", 2, floordiv},
    {"_operator.mod", 2, mod},
    {"_operator.truediv", 2, truediv},
    {"_operator.pow", 2, power},
    {"_operator.neg", 1, negate},
    {"_operator.pos", 1, positive},
    {"_operator.lshift", 2, shift<true>},
    {"_operator.rshift", 2, shift<false>},
    {"_operator.eq", 2, compared<Comparison::equal>},
    {"_operator.ne", 2, compared<Comparison::not_equal>},
    {"_operator.lt", 2, compared<Comparison::less>},
    {"_operator.le", 2, compared<Comparison::less_equal>},
    {"_operator.gt", 2, compared<Comparison::less, true>},
    {"_operator.ge", 2, compared<Comparison::less_equal, true>},
    {"_operator.and_", 2, logical_and},
    {"_operator.or_", 2, logical_or},
    {"math.trunc", 1, trunc},
    {"torch.sym_int", 1, trunc},
    {"torch.sym_float", 1, to_real},
    {"torch.sym_max", 2, maximum},
    {"torch.sym_min", 2, minimum},
    {"torch.sym_not", 1, logical_not},
    {"torch.sym_ite", 3, select},
    {"torch._sym_sqrt", 1, square_root},
};

}  // namespace

Number Number::of(Dim value) {
  Number n;
  n.numerator = value;
  return n;
}
Number Number::of(bool value) {
  Number n = of(Dim(int64_t{value}));
  n.kind = Kind::boolean;
  return n;
}
Number Number::of(double value) {
  Number n;
  n.kind = Kind::real, n.real = value;
  return n;
}
Number Number::of(const Scalar& s) {
  return s.is_real ? of(s.real) : s.is_bool ? of(s.integer != 0) : of(Dim(s.integer));
}
Number Number::of(Tensor value) {
  Number n;
  n.kind = value.dtype() == DType::boolean ? Kind::boolean
           : is_floating(value.dtype())    ? Kind::real
                                           : Kind::integer;
  if (!value.is_traced()) return of(value.scalar());
  n.tensor = std::move(value);
  return n;
}
Number Number::of(Check condition) {
  Number n;
  n.kind = Kind::boolean, n.condition = std::move(condition);
  return n;
}

DType Number::dtype() const { return dtype_of(kind); }

bool Number::is_known() const {
  if (tensor.defined() || condition) return false;
  return real || (kind != Kind::real && numerator.is_constant());
}

Scalar Number::value() const {
  if (real) return Scalar(*real);
  return kind == Kind::boolean ? Scalar(numerator.value() != 0) : Scalar(numerator.value());
}

Dim Number::dim() const {
  if (is_dim() || (kind == Kind::boolean && is_known())) return numerator;
  if (kind == Kind::real)
    throw EagerError("the model gives a real number where an integer is needed");
  throw DataDependentError("a size depends on the elements of a tensor");
}

Tensor Number::as_tensor(DType dtype) const {
  if (tensor.defined()) return eager::cast(tensor, dtype);
  if (condition) {
    const Tensor a = of(condition->left).as_tensor(DType::i64),
                 b = of(condition->right).as_tensor(DType::i64);
    return eager::cast(compare(condition->comparison, a, b), dtype);
  }
  if (is_known()) return eager::scalar_tensor(value(), dtype);
  if (kind == Kind::real)
    return eager::cast(
        eager::div(of(numerator).as_tensor(DType::f64), of(denominator).as_tensor(DType::f64)),
        dtype);
  return eager::dim_as_tensor(numerator, dtype);
}

const NamedNumberFunction* find_number_function(std::string_view name) {
  for (const NamedNumberFunction& f : functions)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace taper::pt2
