// Operators that draw from the default generator, in terms of those that take their state as an
// argument.
#include "taper/exporter/eager/ops/random.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/indexing.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

void check_probability(double p, std::string_view op, Location here) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(here, std::string(op) + ": p must be in [0, 1], not " + to_text(p));
}
/// (batch, channels, 1, …): a number for each channel.
Dims channel_sizes(const Tensor& input, std::string_view op, Location here) {
  if (input.rank() < 2)
    throw EagerError(
        here, std::string(op) + ": needs a batch and channels, got " + to_string(input.sizes()));
  Dims sizes(static_cast<size_t>(input.rank()), Dim(1));
  sizes[0] = input.size(0), sizes[1] = input.size(1);
  return sizes;
}
template <const Operator& op>
DType dtype_or_f32(const Arguments<op>& a) {
  return a.template has<"dtype">() ? a.template dtype<"dtype">() : DType::f32;
}

}  // namespace

TAPER_DECOMPOSITION(dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "dropout", a.here());
  if (!a.boolean<"train">() || p == 0) return {input};
  return {dropout(input, p, true, default_generator(), a.here())};
}
// Whole channels of (batch, channels, …) at once.
TAPER_DECOMPOSITION(feature_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "feature_dropout", a.here());
  if (!a.boolean<"train">() || p == 0) return {input};
  const Tensor factors =
      dropout(ones(channel_sizes(input, "feature_dropout", a.here()), input.dtype(), a.here()), p,
              true, default_generator(), a.here());
  return {mul(input, factors, a.here())};
}
TAPER_DECOMPOSITION(native_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "native_dropout", a.here());
  if (a.has<"train">() && !a.boolean<"train">())
    return {clone(input, a.here()), ones_like(input, DType::boolean, a.here())};
  Generator& generator = default_generator();
  auto [result, mask, next] =
      call<ops::taper_native_dropout>(a.here(), generator.state(), input, p);
  generator.state().copy_(next, a.here());
  return {result, mask};
}
TAPER_DECOMPOSITION(rand) {
  return {rand(a.dims<"size">(), dtype_or_f32(a), default_generator(), a.here())};
}
TAPER_DECOMPOSITION(randn) {
  return {randn(a.dims<"size">(), dtype_or_f32(a), default_generator(), a.here())};
}

TAPER_DECOMPOSITION(rand_like) {
  const Tensor self = a.tensor<"self">();
  return {rand(self.sizes(), a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(),
               default_generator(), a.here())};
}
TAPER_DECOMPOSITION(randn_like) {
  const Tensor self = a.tensor<"self">();
  return {randn(self.sizes(), a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(),
                default_generator(), a.here())};
}
TAPER_DECOMPOSITION(bernoulli) {
  const Tensor self = a.tensor<"self">();
  if (!is_floating(self.dtype()))
    throw EagerError(a.here(),
                     std::string("bernoulli: needs probabilities of a floating dtype, not ") +
                         taper::name_of(self.dtype()));
  if (!self.is_traced()) {
    const Tensor usable = logical_and(ge(self, 0, a.here()), le(self, 1, a.here()), a.here());
    if (!all(usable, a.here()).item<bool>(a.here()))
      throw EagerError(a.here(), "bernoulli: probabilities must lie in [0, 1]");
  }
  const DType drawn = self.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor u = rand(self.sizes(), drawn, default_generator(), a.here());
  return {to(lt(u, cast(self, drawn, a.here()), a.here()), self.dtype(), a.here())};
}
// With replacement: where a number below the sum of the weights falls among their running sums.
// Without: the first arrivals of processes with the weights as rates (Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", 2006).
[[noreturn]] static void refuse_weights(const Tensor& weights, Location here) {
  const std::vector<double> w = weights.to_vector<double>(here);
  const auto wrong =
      std::find_if(w.begin(), w.end(), [](double x) { return !(x >= 0 && x < INFINITY); });
  throw EagerError(here, "multinomial: the weights in self must be finite and 0 or more, got " +
                             to_text(*wrong));
}
TAPER_DECOMPOSITION(multinomial) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const Dim samples = a.dim<"num_samples">();
  if ((self.rank() != 1 && self.rank() != 2) || !is_floating(self.dtype()))
    throw EagerError(here, "multinomial: self must have one or two dimensions of floats, got " +
                               to_string(self.sizes()) + " " + taper::name_of(self.dtype()));
  if (proves_less(samples, Dim(1)))
    throw EagerError(here,
                     "multinomial: num_samples must be 1 or more, got " + samples.to_string());
  NoGrad guard;
  const Tensor weights = cast(self.detach(), DType::f64, here);
  const Dim count = weights.size(-1);
  if (!weights.is_traced()) {
    const Tensor usable = logical_and(ge(weights, 0, here), isfinite(weights, here), here);
    if (!all(usable, here).item<bool>(here)) refuse_weights(weights, here);
    if (!all(gt(sum(weights, {-1}, false, std::nullopt, here), 0, here), here).item<bool>(here))
      throw EagerError(here, "multinomial: a row of self must not be all 0, for self " +
                                 to_string(self.sizes()));
  }
  Dims sizes = weights.sizes();
  if (!a.boolean<"replacement">()) {
    if (proves_less(count, samples))
      throw EagerError(here, "multinomial: without replacement num_samples must be at most " +
                                 count.to_string() + ", the number of weights, got " +
                                 samples.to_string());
    const Tensor u = rand(sizes, DType::f64, default_generator(), here);
    const Tensor rate = div(weights, neg(log1p(neg(u, here), here), here), here);
    const Tensor order = masked_fill(rate, eq(weights, 0, here), -1, here);
    return {std::get<1>(topk(order, samples, -1, true, here))};
  }
  sizes.back() = samples;
  const Tensor sums = cumsum(weights, -1, {}, here);
  const Tensor u = rand(sizes, DType::f64, default_generator(), here);
  const Tensor at = mul(u, slice(sums, -1, count - 1, count, Dim(1), here), here);
  const Tensor last = sub(sum(ones({count}, DType::i64, here), {}, here), 1, 1, here);
  return {minimum(searchsorted(sums, at, true, false, here), last, here)};
}
TAPER_DECOMPOSITION(randperm) {
  const Tensor keys = rand({a.dim<"n">()}, DType::f64, default_generator(), a.here());
  const DType dtype = a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64;
  return {cast(argsort(keys, 0, false, a.here()), dtype, a.here())};
}
namespace {
Tensor integers_in(Dim low, Dim high, const Dims& size, DType dtype, Location here) {
  if (!proves_less(low, high))
    throw EagerError(
        here, "randint: low " + low.to_string() + " must be less than high " + high.to_string());
  const Dim range = high - low;
  const Tensor drawn = rand(size, DType::f64, default_generator(), here);
  const Tensor place = mul(drawn, Scalar(static_cast<double>(range.value())), here);
  // a cast to integers rounds down what is not negative
  const Tensor whole = is_floating(dtype) ? floor(place, here) : cast(place, DType::i64, here);
  const int64_t first = low.value();
  return cast(first == 0 ? whole : add(whole, Scalar(first), 1, here), dtype, here);
}
}  // namespace

// Uniform over [low, high).
TAPER_DECOMPOSITION(randint) {
  return {integers_in(0, a.dim<"high">(), a.dims<"size">(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64, a.here())};
}
TAPER_DECOMPOSITION(randint_low) {
  return {integers_in(a.dim<"low">(), a.dim<"high">(), a.dims<"size">(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64, a.here())};
}

namespace {

/// Even in [0, 1), in a dtype that is fine enough.
Tensor drawn_like(const Tensor& self, Location here) {
  return rand(self.sizes(), self.dtype() == DType::f64 ? DType::f64 : DType::f32,
              default_generator(), here);
}
Tensor normal_like(const Tensor& self, Location here) {
  return randn(self.sizes(), self.dtype() == DType::f64 ? DType::f64 : DType::f32,
               default_generator(), here);
}
void need_floating(const Tensor& self, std::string_view op, Location here) {
  if (!is_floating(self.dtype()))
    throw EagerError(
        here, std::string(op) + ": needs a floating dtype, not " + taper::name_of(self.dtype()));
}

}  // namespace

// These take of `self` the sizes and the dtype alone.
TAPER_DECOMPOSITION(bernoulli_p) {
  const Tensor self = a.tensor<"self">();
  const double p = a.real<"p">();
  check_probability(p, "bernoulli", a.here());
  return {cast(lt(drawn_like(self, a.here()), p, a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(uniform) {
  const Tensor self = a.tensor<"self">();
  const double from = a.real<"from">(), to = a.real<"to">();
  need_floating(self, "uniform", a.here());
  if (!(from <= to))
    throw EagerError(a.here(),
                     "uniform: from " + to_text(from) + " must be at most to " + to_text(to));
  const Tensor drawn = mul(drawn_like(self, a.here()), Scalar(to - from), a.here());
  return {cast(add(drawn, from, 1, a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(exponential) {
  const Tensor self = a.tensor<"self">();
  const double lambd = a.real<"lambd">();
  need_floating(self, "exponential", a.here());
  if (!(lambd > 0)) throw EagerError(a.here(), "exponential: lambd must be above 0");
  const Tensor log = log1p(neg(drawn_like(self, a.here()), a.here()), a.here());
  return {cast(mul(log, Scalar(-1 / lambd), a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(geometric) {
  const Tensor self = a.tensor<"self">();
  const double p = a.real<"p">();
  if (!(p > 0 && p < 1)) throw EagerError(a.here(), "geometric: p must be inside (0, 1)");
  const Tensor log = log1p(neg(drawn_like(self, a.here()), a.here()), a.here());
  const Tensor tries = ceil(mul(log, Scalar(1 / std::log1p(-p)), a.here()), a.here());
  return {cast(clamp_min(tries, 1, a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(normal_functional) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "normal", a.here());
  const Tensor drawn = mul(normal_like(self, a.here()), Scalar(a.real<"std">()), a.here());
  return {cast(add(drawn, a.real<"mean">(), 1, a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(log_normal) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "log_normal", a.here());
  const Tensor drawn = mul(normal_like(self, a.here()), Scalar(a.real<"std">()), a.here());
  return {cast(exp(add(drawn, a.real<"mean">(), 1, a.here()), a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(cauchy) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "cauchy", a.here());
  constexpr double pi = 3.14159265358979323846;
  const Tensor angle = mul(sub(drawn_like(self, a.here()), 0.5, 1, a.here()), pi, a.here());
  const Tensor drawn = mul(tan(angle, a.here()), Scalar(a.real<"sigma">()), a.here());
  return {cast(add(drawn, a.real<"median">(), 1, a.here()), self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(normal_Tensor_float) {
  const Tensor mean = a.tensor<"mean">();
  need_floating(mean, "normal", a.here());
  return {add(mean, randn_like(mean, {}, a.here()), a.real<"std">(), a.here())};
}
TAPER_DECOMPOSITION(normal_Tensor_Tensor) {
  const Tensor mean = a.tensor<"mean">(), deviation = a.tensor<"std">();
  need_floating(mean, "normal", a.here());
  const Tensor shape = add(mean, deviation, 1, a.here());
  return {add(mean, mul(deviation, randn_like(shape, {}, a.here()), a.here()), 1, a.here())};
}
TAPER_DECOMPOSITION(normal_float_Tensor) {
  const Tensor deviation = a.tensor<"std">();
  need_floating(deviation, "normal", a.here());
  return {add(mul(deviation, randn_like(deviation, {}, a.here()), a.here()),
              Scalar(a.real<"mean">()), 1, a.here())};
}
TAPER_DECOMPOSITION(randint_like) {
  const Tensor self = a.tensor<"self">();
  return {integers_in(0, a.dim<"high">(), self.sizes(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(), a.here())};
}
TAPER_DECOMPOSITION(randint_like_low_dtype) {
  const Tensor self = a.tensor<"self">();
  return {integers_in(a.dim<"low">(), a.dim<"high">(), self.sizes(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(), a.here())};
}

// A leaky relu whose slope, in training, is drawn for each element.
TAPER_DECOMPOSITION(rrelu) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const double lower = a.real<"lower">(), upper = a.real<"upper">();
  if (!(lower <= upper))
    throw EagerError(here,
                     "rrelu: lower " + to_text(lower) + " must be at most upper " + to_text(upper));
  if (!a.boolean<"training">()) return {leaky_relu(self, (lower + upper) / 2, here)};
  const Tensor slope = call<ops::uniform>(here, self.detach(), lower, upper);
  return {where(le(self, 0, here), mul(self, slope, here), self, here)};
}

namespace {

/// Dropped elements become the value to which selu tends, and all are moved and scaled so that mean
/// and variance stay (Klambauer et al., "Self-Normalizing Neural Networks", arXiv:1706.02515).
/// `noise` has the sizes of what is dropped at once.
Tensor alpha_dropped(const Tensor& input, double p, const Dims& noise, Location here) {
  if (p == 1) return mul(input, zeros_like(input, {}, here), here);
  constexpr double alpha = 1.7580993408473766;  // scale * alpha of selu
  const double scale = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor kept = call<ops::bernoulli_p>(here, zeros(noise, input.dtype(), here), 1 - p);
  const Tensor moved = add(mul(sub(kept, 1, 1, here), Scalar(alpha * scale), here),
                           Scalar(alpha * scale * p), 1, here);
  return add(mul(input, mul(kept, Scalar(scale), here), here), moved, 1, here);
}

}  // namespace

TAPER_DECOMPOSITION(alpha_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "alpha_dropout", a.here());
  if (!a.boolean<"train">() || p == 0) return {input};
  return {alpha_dropped(input, p, input.sizes(), a.here())};
}
TAPER_DECOMPOSITION(feature_alpha_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "feature_alpha_dropout", a.here());
  if (!a.boolean<"train">() || p == 0) return {input};
  return {
      alpha_dropped(input, p, channel_sizes(input, "feature_alpha_dropout", a.here()), a.here())};
}

}  // namespace taper::eager::decompositions
