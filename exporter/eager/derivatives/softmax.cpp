#include "taper/exporter/eager/ops/softmax.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// The sum along `dim`, which keeps its place with extent 1.
Tensor total(const Tensor& t, int64_t dim) { return sum(t, {dim}, true); }

}  // namespace

// y = softmax(x):  dx = y (dy - sum(y dy))
TAPER_DERIVATIVE(_softmax, "result") {
  return {call<ops::_softmax_backward_data>(dy, saved.result(), saved.integer<"dim">(),
                                            saved.dtype_of<"self">())};
}

// y = log softmax(x):  dx = dy - exp(y) sum(dy)
TAPER_DERIVATIVE(_log_softmax, "result") {
  return {call<ops::_log_softmax_backward_data>(dy, saved.result(), saved.integer<"dim">(),
                                                saved.dtype_of<"self">())};
}

// g = y (v - sum(y v)) with v = grad_output, dg = dy:
//   dv = y (dy - sum(y dy)),  d/dy = dy (v - sum(y v)) - v sum(y dy)
TAPER_DERIVATIVE(_softmax_backward_data, "grad_output", "output") {
  const Tensor v = saved.tensor<"grad_output">(), y = saved.tensor<"output">();
  const int64_t dim = saved.integer<"dim">();
  Tensor dv, d_output;
  if (saved.needs<"grad_output">()) dv = call<ops::_softmax_backward_data>(dy, y, dim, y.dtype());
  if (saved.needs<"output">()) d_output = dy * (v - total(y * v, dim)) - v * total(y * dy, dim);
  return {dv, d_output};
}

// g = v - exp(y) sum(v):  dv = dy - sum(exp(y) dy),  d/dy = -dy exp(y) sum(v)
TAPER_DERIVATIVE(_log_softmax_backward_data, "grad_output", "output") {
  const Tensor v = saved.tensor<"grad_output">(), e = exp(saved.tensor<"output">());
  const int64_t dim = saved.integer<"dim">();
  Tensor dv, d_output;
  if (saved.needs<"grad_output">()) dv = dy - total(e * dy, dim);
  if (saved.needs<"output">()) d_output = neg(dy * e * total(v, dim));
  return {dv, d_output};
}

}  // namespace taper::eager::derivatives
