#include "taper/exporter/eager/ops/indexing.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::eager::derivatives {
namespace {

/// Zeros of the shape of argument `name` of the call, to add gradients to.
template <Name name, class S>
Tensor zeros_like_argument(const S& saved, const Tensor& dy) {
  return zeros(saved.template sizes<name>(), dy.dtype(), saved.here());
}

}  // namespace

TAPER_DERIVATIVE(embedding, "indices") {
  return {call<ops::embedding_dense_backward>(
              saved.here(), dy, saved.tensor<"indices">(), saved.sizes<"weight">()[0],
              saved.dim<"padding_idx">(), saved.boolean<"scale_grad_by_freq">()),
          {}};
}

// Rows of the table's gradient, but none for `padding_idx`. As in PyTorch, `scale_grad_by_freq`
// counts as a constant of the call and has no part in it.
TAPER_DERIVATIVE(embedding_dense_backward, "indices") {
  const Tensor indices = saved.tensor<"indices">();
  const Location here = saved.here();
  const Tensor rows = embedding(dy, indices, -1, false, here);
  const Dim padding = saved.dim<"padding_idx">();
  if (padding.is_constant() && padding.value() < 0) return {rows, {}};
  const Tensor counts =
      ne(indices, Scalar(padding.value()), here).unsqueeze(-1, here).to(dy.dtype(), here);
  return {mul(rows, counts, here), {}};
}

TAPER_DERIVATIVE(gather, "index") {
  return {scatter_add(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(),
                      saved.tensor<"index">(), dy, saved.here()),
          {}};
}

TAPER_DERIVATIVE(scatter_src, "index") {
  const Tensor index = saved.tensor<"index">();
  return {scatter(dy, saved.integer<"dim">(), index, Scalar(0), saved.here()),
          {},
          gather(dy, saved.integer<"dim">(), index, saved.here())};
}

TAPER_DERIVATIVE(scatter_value, "index") {
  return {scatter(dy, saved.integer<"dim">(), saved.tensor<"index">(), Scalar(0), saved.here()),
          {}};
}

TAPER_DERIVATIVE(scatter_add, "index") {
  return {dy, {}, gather(dy, saved.integer<"dim">(), saved.tensor<"index">(), saved.here())};
}

TAPER_DERIVATIVE(index_select, "index") {
  return {index_add(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(),
                    saved.tensor<"index">(), dy, 1, saved.here()),
          {}};
}

TAPER_DERIVATIVE(index_add, "index") {
  const Scalar alpha = saved.scalar<"alpha">();
  const Tensor slices =
      index_select(dy, saved.integer<"dim">(), saved.tensor<"index">(), saved.here());
  return {dy, {}, alpha.to<double>() == 1 ? slices : mul(slices, alpha, saved.here())};
}

TAPER_DERIVATIVE(index_Tensor, "indices") {
  const std::vector<Tensor> indices = saved.tensors<"indices">();
  Gradients gradients(1 + indices.size());
  gradients[0] = index_put(zeros_like_argument<"self">(saved, dy), indices, dy, true, saved.here());
  return gradients;
}

TAPER_DERIVATIVE(index_put, "indices") {
  const std::vector<Tensor> indices = saved.tensors<"indices">();
  const Location here = saved.here();
  Gradients gradients(2 + indices.size());
  gradients.front() = saved.boolean<"accumulate">()
                          ? dy
                          : index_put(dy, indices, zeros({}, dy.dtype(), here), false, here);
  gradients.back() = index(dy, indices, here);
  return gradients;
}

// Each element came from one place.

TAPER_DERIVATIVE(sort, "result1") {
  return {scatter(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(), saved.result(1),
                  dy, saved.here())};
}

TAPER_DERIVATIVE(topk, "result1") {
  return {scatter(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(), saved.result(1),
                  dy, saved.here())};
}

}  // namespace taper::eager::derivatives
