// Operators that draw from the default generator, written with operators that take the state as an
// argument.
#include "taper/exporter/eager/ops/random.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/checkpoint.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

void check_probability(double p, std::string_view op) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(std::string(op) + ": p must be in [0, 1], not " + to_text(p));
}
/// (batch, channels, 1, …): one number for each channel.
Dims channel_sizes(const Tensor& input, std::string_view op) {
  if (input.rank() < 2)
    throw EagerError(std::string(op) + ": needs a batch and channels, got " +
                     to_string(input.sizes()));
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
  check_probability(p, "dropout");
  if (!a.boolean<"train">() || p == 0) return {input};
  return {dropout(input, p)};
}
// Drops whole channels of (batch, channels, …).
TAPER_DECOMPOSITION(feature_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "feature_dropout");
  if (!a.boolean<"train">() || p == 0) return {input};
  const Tensor factors = dropout(ones(channel_sizes(input, "feature_dropout"), input.dtype()), p);
  return {mul(input, factors)};
}
TAPER_DECOMPOSITION(native_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "native_dropout");
  if (a.has<"train">() && !a.boolean<"train">())
    return {clone(input), ones_like(input, DType::boolean)};
  Generator& generator = default_generator();
  before_draw(generator.state());
  auto [result, mask, next] = call<ops::taper_native_dropout>(generator.state(), input, p);
  generator.state().copy_(next);
  return {result, mask};
}
TAPER_DECOMPOSITION(rand) { return {rand(a.dims<"size">(), dtype_or_f32(a))}; }
TAPER_DECOMPOSITION(randn) { return {randn(a.dims<"size">(), dtype_or_f32(a))}; }

TAPER_DECOMPOSITION(rand_like) {
  const Tensor self = a.tensor<"self">();
  return {rand(self.sizes(), a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype())};
}
TAPER_DECOMPOSITION(randn_like) {
  const Tensor self = a.tensor<"self">();
  return {randn(self.sizes(), a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype())};
}
TAPER_DECOMPOSITION(bernoulli) {
  const Tensor self = a.tensor<"self">();
  if (!is_floating(self.dtype()))
    throw EagerError(std::string("bernoulli: needs probabilities of a floating dtype, not ") +
                     taper::name_of(self.dtype()));
  if (!self.is_traced()) {
    const Tensor usable = logical_and(ge(self, 0), le(self, 1));
    if (!all(usable).item<bool>()) throw EagerError("bernoulli: probabilities must lie in [0, 1]");
  }
  const DType drawn = self.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor u = rand(self.sizes(), drawn);
  return {to(lt(u, cast(self, drawn)), self.dtype())};
}
TAPER_DECOMPOSITION(poisson) {
  Generator& generator = default_generator();
  auto [numbers, next] = call<ops::taper_poisson>(generator.state(), a.tensor<"self">());
  generator.state().copy_(next);
  return {numbers};
}
[[noreturn]] static void refuse_weights(const Tensor& weights) {
  const std::vector<double> w = weights.to_vector<double>();
  const auto wrong =
      std::find_if(w.begin(), w.end(), [](double x) { return !(x >= 0 && x < INFINITY); });
  throw EagerError("multinomial: the weights in self must be finite and 0 or more, got " +
                   to_text(*wrong));
}
// With replacement: draws a number below the sum of the weights, and finds its place among the
// running sums. Without replacement: takes the first arrivals of processes whose rates are the
// weights (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
TAPER_DECOMPOSITION(multinomial) {
  const Tensor self = a.tensor<"self">();
  const Dim samples = a.dim<"num_samples">();
  if ((self.rank() != 1 && self.rank() != 2) || !is_floating(self.dtype()))
    throw EagerError("multinomial: self must have one or two dimensions of floats, got " +
                     to_string(self.sizes()) + " " + taper::name_of(self.dtype()));
  if (proves_less(samples, Dim(1)))
    throw EagerError("multinomial: num_samples must be 1 or more, got " + samples.to_string());
  NoGrad guard;
  const Tensor weights = cast(self.detach(), DType::f64);
  const Dim count = weights.size(-1);
  if (!weights.is_traced()) {
    const Tensor usable = logical_and(ge(weights, 0), isfinite(weights));
    if (!all(usable).item<bool>()) refuse_weights(weights);
    if (!all(gt(sum(weights, {-1}), 0)).item<bool>())
      throw EagerError("multinomial: a row of self must not be all 0, for self " +
                       to_string(self.sizes()));
  }
  Dims sizes = weights.sizes();
  if (!a.boolean<"replacement">()) {
    if (proves_less(count, samples))
      throw EagerError("multinomial: without replacement num_samples must be at most " +
                       count.to_string() + ", the number of weights, got " + samples.to_string());
    const Tensor u = rand(sizes, DType::f64);
    const Tensor rate = div(weights, neg(log1p(neg(u))));
    const Tensor order = masked_fill(rate, eq(weights, 0), -1);
    return {std::get<1>(topk(order, samples))};
  }
  sizes.back() = samples;
  const Tensor sums = cumsum(weights, -1);
  const Tensor u = rand(sizes, DType::f64);
  const Tensor at = mul(u, slice(sums, -1, count - 1, count));
  const Tensor last = sub(sum(ones({count}, DType::i64)), 1);
  return {minimum(searchsorted(sums, at, true), last)};
}
TAPER_DECOMPOSITION(randperm) {
  const Tensor keys = rand({a.dim<"n">()}, DType::f64);
  const DType dtype = a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64;
  return {cast(argsort(keys, 0), dtype)};
}
namespace {
Tensor integers_in(Dim low, Dim high, const Dims& size, DType dtype) {
  if (!proves_less(low, high))
    throw EagerError("randint: low " + low.to_string() + " must be less than high " +
                     high.to_string());
  const Dim range = high - low;
  const Tensor drawn = rand(size, DType::f64);
  const Tensor place = mul(drawn, Scalar(static_cast<double>(range.value())));
  // a cast to integers rounds non-negative numbers down
  const Tensor whole = is_floating(dtype) ? floor(place) : cast(place, DType::i64);
  const int64_t first = low.value();
  return cast(first == 0 ? whole : add(whole, Scalar(first)), dtype);
}
}  // namespace

// Uniform over [low, high).
TAPER_DECOMPOSITION(randint) {
  return {integers_in(0, a.dim<"high">(), a.dims<"size">(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64)};
}
TAPER_DECOMPOSITION(randint_low) {
  return {integers_in(a.dim<"low">(), a.dim<"high">(), a.dims<"size">(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : DType::i64)};
}

namespace {

/// Uniform in [0, 1), in a dtype that is fine enough.
Tensor drawn_like(const Tensor& self) {
  return rand(self.sizes(), self.dtype() == DType::f64 ? DType::f64 : DType::f32);
}
Tensor normal_like(const Tensor& self) {
  return randn(self.sizes(), self.dtype() == DType::f64 ? DType::f64 : DType::f32);
}
void need_floating(const Tensor& self, std::string_view op) {
  if (!is_floating(self.dtype()))
    throw EagerError(std::string(op) + ": needs a floating dtype, not " +
                     taper::name_of(self.dtype()));
}

}  // namespace

// These use only the sizes and the dtype of `self`.
TAPER_DECOMPOSITION(bernoulli_p) {
  const Tensor self = a.tensor<"self">();
  const double p = a.real<"p">();
  check_probability(p, "bernoulli");
  return {cast(lt(drawn_like(self), p), self.dtype())};
}
TAPER_DECOMPOSITION(uniform) {
  const Tensor self = a.tensor<"self">();
  const double from = a.real<"from">(), to = a.real<"to">();
  need_floating(self, "uniform");
  if (!(from <= to))
    throw EagerError("uniform: from " + to_text(from) + " must be at most to " + to_text(to));
  const Tensor drawn = mul(drawn_like(self), Scalar(to - from));
  return {cast(add(drawn, from), self.dtype())};
}
TAPER_DECOMPOSITION(exponential) {
  const Tensor self = a.tensor<"self">();
  const double lambd = a.real<"lambd">();
  need_floating(self, "exponential");
  if (!(lambd > 0)) throw EagerError("exponential: lambd must be above 0");
  const Tensor log = log1p(neg(drawn_like(self)));
  return {cast(mul(log, Scalar(-1 / lambd)), self.dtype())};
}
TAPER_DECOMPOSITION(geometric) {
  const Tensor self = a.tensor<"self">();
  const double p = a.real<"p">();
  if (!(p > 0 && p < 1)) throw EagerError("geometric: p must be inside (0, 1)");
  const Tensor log = log1p(neg(drawn_like(self)));
  const Tensor tries = ceil(mul(log, Scalar(1 / std::log1p(-p))));
  return {cast(clamp_min(tries, 1), self.dtype())};
}
TAPER_DECOMPOSITION(normal_functional) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "normal");
  const Tensor drawn = mul(normal_like(self), Scalar(a.real<"std">()));
  return {cast(add(drawn, a.real<"mean">()), self.dtype())};
}
TAPER_DECOMPOSITION(log_normal) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "log_normal");
  const Tensor drawn = mul(normal_like(self), Scalar(a.real<"std">()));
  return {cast(exp(add(drawn, a.real<"mean">())), self.dtype())};
}
TAPER_DECOMPOSITION(cauchy) {
  const Tensor self = a.tensor<"self">();
  need_floating(self, "cauchy");
  constexpr double pi = 3.14159265358979323846;
  const Tensor angle = mul(sub(drawn_like(self), 0.5), pi);
  const Tensor drawn = mul(tan(angle), Scalar(a.real<"sigma">()));
  return {cast(add(drawn, a.real<"median">()), self.dtype())};
}
TAPER_DECOMPOSITION(normal_Tensor_float) {
  const Tensor mean = a.tensor<"mean">();
  need_floating(mean, "normal");
  return {add(mean, randn_like(mean), a.real<"std">())};
}
TAPER_DECOMPOSITION(normal_Tensor_Tensor) {
  const Tensor mean = a.tensor<"mean">(), deviation = a.tensor<"std">();
  need_floating(mean, "normal");
  const Tensor shape = add(mean, deviation);
  return {add(mean, mul(deviation, randn_like(shape)))};
}
TAPER_DECOMPOSITION(normal_float_Tensor) {
  const Tensor deviation = a.tensor<"std">();
  need_floating(deviation, "normal");
  return {add(mul(deviation, randn_like(deviation)), Scalar(a.real<"mean">()))};
}
TAPER_DECOMPOSITION(randint_like) {
  const Tensor self = a.tensor<"self">();
  return {integers_in(0, a.dim<"high">(), self.sizes(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype())};
}
TAPER_DECOMPOSITION(randint_like_low_dtype) {
  const Tensor self = a.tensor<"self">();
  return {integers_in(a.dim<"low">(), a.dim<"high">(), self.sizes(),
                      a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype())};
}

// A leaky relu. In training, its slope is drawn for each element.
TAPER_DECOMPOSITION(rrelu) {
  const Tensor self = a.tensor<"self">();
  const double lower = a.real<"lower">(), upper = a.real<"upper">();
  if (!(lower <= upper))
    throw EagerError("rrelu: lower " + to_text(lower) + " must be at most upper " + to_text(upper));
  if (!a.boolean<"training">()) return {leaky_relu(self, (lower + upper) / 2)};
  const Tensor slope = call<ops::uniform>(self.detach(), lower, upper);
  return {where(le(self, 0), mul(self, slope), self)};
}

namespace {

/// Dropped elements become the limit of selu for large negative numbers. All elements are then
/// moved and scaled so that mean and variance stay (Klambauer et al., "Self-Normalizing Neural
/// Networks", arXiv:1706.02515). Elements that share an element of `noise` are dropped together.
Tensor alpha_dropped(const Tensor& input, double p, const Dims& noise) {
  if (p == 1) return mul(input, zeros_like(input));
  constexpr double alpha = 1.7580993408473766;  // scale * alpha of selu
  const double scale = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor kept = call<ops::bernoulli_p>(zeros(noise, input.dtype()), 1 - p);
  const Tensor moved = add(mul(sub(kept, 1), Scalar(alpha * scale)), Scalar(alpha * scale * p));
  return add(mul(input, mul(kept, Scalar(scale))), moved);
}

}  // namespace

TAPER_DECOMPOSITION(alpha_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "alpha_dropout");
  if (!a.boolean<"train">() || p == 0) return {input};
  return {alpha_dropped(input, p, input.sizes())};
}
TAPER_DECOMPOSITION(feature_alpha_dropout) {
  const Tensor input = a.tensor<"input">();
  const double p = a.real<"p">();
  check_probability(p, "feature_alpha_dropout");
  if (!a.boolean<"train">() || p == 0) return {input};
  return {alpha_dropped(input, p, channel_sizes(input, "feature_alpha_dropout"))};
}

}  // namespace taper::eager::decompositions
