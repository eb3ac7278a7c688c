#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// (-b, a) of each pair (a, b).
Tensor turned(const Tensor& x, bool interleaved) {
  const Dims last = {x.size(-1)};
  return rotary_embedding(x, zeros(last, x.dtype()), ones(last, x.dtype()), interleaved);
}

}  // namespace

// Y = X cos + turned(X) sin, and turned is linear with turned^T = -turned:
// dX = dY cos - turned(dY sin),  dcos = dY X,  dsin = dY turned(X)
TAPER_DERIVATIVE(taper_rotary_embedding, "x", "cos", "sin") {
  const bool interleaved = saved.boolean<"interleaved">();
  const Tensor x = saved.tensor<"x">(), cos = saved.tensor<"cos">(), sin = saved.tensor<"sin">();
  return {saved.needs<"x">() ? mul(dy, cos) - turned(mul(dy, sin), interleaved) : Tensor(),
          saved.needs<"cos">() ? mul(dy, x) : Tensor(),
          saved.needs<"sin">() ? mul(dy, turned(x, interleaved)) : Tensor()};
}

}  // namespace taper::eager::derivatives
