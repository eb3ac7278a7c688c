#include "taper/exporter/eager/ops/softmax.h"

#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class A>
Tensor cast_self(const A& a) {
  const Tensor self = a.template tensor<"self">();
  return a.template has<"dtype">() ? self.to(a.template dtype<"dtype">()) : self;
}

/// A softmax in which lines that are all -inf become 0.
Tensor safe_softmax(const Tensor& x, int64_t dim) {
  const Tensor nothing = all(eq(x, Scalar(-infinity)), dim, true);
  // fills zeros before the softmax, too: a NaN there would reach the gradient
  return masked_fill(call<ops::_softmax>(masked_fill(x, nothing, Scalar(0)), dim, false), nothing,
                     Scalar(0));
}

}  // namespace

TAPER_DECOMPOSITION(softmax_int) {
  return {call<ops::_softmax>(cast_self(a), a.integer<"dim">(), false)};
}
TAPER_DECOMPOSITION(log_softmax_int) {
  return {call<ops::_log_softmax>(cast_self(a), a.integer<"dim">(), false)};
}
TAPER_DECOMPOSITION(_safe_softmax) { return {safe_softmax(cast_self(a), a.integer<"dim">())}; }

}  // namespace taper::eager::decompositions
