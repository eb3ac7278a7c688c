// Operators that draw from the default generator, in terms of those that take their state as an
// argument.
#include "taper/exporter/eager/ops/random.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/movement.h"

namespace taper::eager::decompositions {
namespace {

void check_probability(double p, std::string_view op, Location here) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(here, std::string(op) + ": p must be in [0, 1], not " + std::to_string(p));
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

}  // namespace taper::eager::decompositions
