#include "taper/exporter/eager/ops/indexing.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// Zeros of the shape of argument `name`, to which gradients are added.
template <Name name, class S>
Tensor zeros_like_argument(const S& saved, const Tensor& dy) {
  return zeros(saved.template sizes<name>(), dy.dtype());
}

/// Each element has its own index, as in gather and scatter_add.
struct ByElement {
  int64_t dim;
  Tensor index;
  Tensor pick(const Tensor& t) const { return gather(t, dim, index); }
  Tensor add(const Tensor& t, const Tensor& src) const { return scatter_add(t, dim, index, src); }
  Tensor without(const Tensor& t) const { return scatter(t, dim, index, Scalar(0)); }
  Tensor product(const Tensor& t, const Tensor& src, bool include_self) const {
    return scatter_reduce(t, dim, index, src, "prod", include_self);
  }
};
/// Each slice has one index of a vector.
struct BySlice {
  int64_t dim;
  Tensor index;
  Tensor pick(const Tensor& t) const { return index_select(t, dim, index); }
  Tensor add(const Tensor& t, const Tensor& src) const { return index_add(t, dim, index, src); }
  Tensor without(const Tensor& t) const { return index_fill(t, dim, index, 0); }
  Tensor product(const Tensor& t, const Tensor& src, bool include_self) const {
    return index_reduce(t, dim, index, src, "prod", include_self);
  }
};

struct ReduceGradients {
  Tensor self, src;
};

/// The gradient of a product: the product of all other factors. If one factor from src is zero,
/// only its place gets a gradient from that product; if two are zero, none does.
template <class By>
ReduceGradients product_gradients(const By& by, const Tensor& dy, const Tensor& self,
                                  const Tensor& src, const Tensor& result, bool include_self) {
  const Tensor self_or_one = masked_fill(self, self == 0, 1);
  const Tensor to_self = dy * by.product(self_or_one, src, include_self) / self_or_one;
  const Tensor zero = src == 0;
  const Tensor zeros_there = by.pick(by.add(zeros_like(self), to(zero, self.dtype())));
  const Tensor only_zero = logical_and(zero, zeros_there == 1);
  const Tensor without_it = by.product(self, masked_fill(src, only_zero, 1), include_self);
  const Tensor to_src =
      where(only_zero, by.pick(dy * without_it), by.pick(dy * result) / masked_fill(src, zero, 1));
  return {to_self, to_src};
}

/// The gradient of a maximum or minimum, shared evenly among the elements that equal it.
template <class By>
ReduceGradients extreme_gradients(const By& by, const Tensor& dy, const Tensor& self,
                                  const Tensor& src, const Tensor& result) {
  const Tensor self_equal = to(eq(self, result), dy.dtype());
  const Tensor src_equal = to(eq(src, by.pick(result)), dy.dtype());
  const Tensor part = dy / by.add(self_equal, src_equal);
  return {self_equal * part, src_equal * by.pick(part)};
}

template <class By>
ReduceGradients reduce_gradients(const By& by, std::string_view reduce, bool include_self,
                                 const Tensor& dy, const Tensor& self, const Tensor& src,
                                 const Tensor& result) {
  ReduceGradients g;
  if (reduce == "prod") {
    g = product_gradients(by, dy, self, src, result, include_self);
  } else if (reduce == "mean") {
    const Tensor start = include_self ? ones_like(dy) : zeros_like(dy);
    const Tensor count = clamp_min(by.add(start, ones_like(src)), 1);
    g = {dy / count, by.pick(dy / count)};
  } else if (reduce == "sum") {
    g = {dy, by.pick(dy)};
  } else {
    g = extreme_gradients(by, dy, self, src, result);
  }
  if (!include_self) g.self = by.without(g.self);
  return g;
}

}  // namespace

TAPER_DERIVATIVE(embedding, "indices") {
  if (saved.boolean<"sparse">())
    throw EagerError(
        "embedding: sparse gradients are not supported: sparse must be "
        "false where the weight requires a gradient");
  return {call<ops::embedding_dense_backward>(
              dy, saved.tensor<"indices">(), saved.sizes<"weight">()[0], saved.dim<"padding_idx">(),
              saved.boolean<"scale_grad_by_freq">()),
          {}};
}

// Sums dy's rows at the indices, except `padding_idx`. As in PyTorch, `scale_grad_by_freq` has no
// effect here, because the counts are constants of the call.
TAPER_DERIVATIVE(embedding_dense_backward, "indices") {
  const Tensor indices = saved.tensor<"indices">();
  const Tensor rows = embedding(dy, indices);
  const Dim padding = saved.dim<"padding_idx">();
  if (padding.is_constant() && padding.value() < 0) return {rows, {}};
  const Tensor counts = ne(indices, Scalar(padding.value())).unsqueeze(-1).to(dy.dtype());
  return {mul(rows, counts), {}};
}

TAPER_DERIVATIVE(gather, "index") {
  return {scatter_add(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(),
                      saved.tensor<"index">(), dy),
          {}};
}

TAPER_DERIVATIVE(scatter_src, "index") {
  const Tensor index = saved.tensor<"index">();
  return {scatter(dy, saved.integer<"dim">(), index, Scalar(0)),
          {},
          gather(dy, saved.integer<"dim">(), index)};
}

TAPER_DERIVATIVE(scatter_value, "index") {
  return {scatter(dy, saved.integer<"dim">(), saved.tensor<"index">(), Scalar(0)), {}};
}

TAPER_DERIVATIVE(scatter_add, "index") {
  return {dy, {}, gather(dy, saved.integer<"dim">(), saved.tensor<"index">())};
}

TAPER_DERIVATIVE(scatter_reduce_two, "self", "index", "src", "result") {
  const ByElement by{saved.integer<"dim">(), saved.tensor<"index">()};
  const auto [self, src] =
      reduce_gradients(by, saved.text<"reduce">(), saved.boolean<"include_self">(), dy,
                       saved.tensor<"self">(), saved.tensor<"src">(), saved.result());
  return {self, {}, src};
}
TAPER_DERIVATIVE(index_reduce, "self", "index", "source", "result") {
  const BySlice by{saved.integer<"dim">(), saved.tensor<"index">()};
  const auto [self, source] =
      reduce_gradients(by, saved.text<"reduce">(), saved.boolean<"include_self">(), dy,
                       saved.tensor<"self">(), saved.tensor<"source">(), saved.result());
  return {self, {}, source};
}

TAPER_DERIVATIVE(index_copy, "index") {
  const BySlice by{saved.integer<"dim">(), saved.tensor<"index">()};
  return {by.without(dy), {}, reshape(by.pick(dy), saved.sizes<"source">())};
}
TAPER_DERIVATIVE(index_fill_int_Scalar, "index") {
  return {BySlice{saved.integer<"dim">(), saved.tensor<"index">()}.without(dy), {}};
}

// Element k of the source gets the gradient of the k-th place where the mask is true.
TAPER_DERIVATIVE(masked_scatter, "mask") {
  const Tensor mask = reshape(expand(saved.tensor<"mask">(), dy.sizes()), {Dim(-1)});
  const Dims sizes = saved.sizes<"source">();
  Dim count = 1;
  for (const Dim& d : sizes) count = count * d;
  const Tensor to_self = masked_fill(dy, saved.tensor<"mask">(), 0);
  if (proves_equal(count, Dim(0))) return {to_self, {}, zeros(sizes, dy.dtype())};
  const Tensor place = where(mask, cumsum(mask, 0) - 1, Scalar(0));
  const Tensor added = where(mask, reshape(dy, {Dim(-1)}), Scalar(0));
  return {to_self, {}, reshape(index_add(zeros({count}, dy.dtype()), 0, place, added), sizes)};
}

TAPER_DERIVATIVE(index_select, "index") {
  return {index_add(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(),
                    saved.tensor<"index">(), dy),
          {}};
}

TAPER_DERIVATIVE(index_add, "index") {
  const Scalar alpha = saved.scalar<"alpha">();
  const Tensor slices = index_select(dy, saved.integer<"dim">(), saved.tensor<"index">());
  return {dy, {}, alpha.to<double>() == 1 ? slices : mul(slices, alpha)};
}

TAPER_DERIVATIVE(index_Tensor, "indices") {
  const std::vector<Tensor> indices = saved.tensors<"indices">();
  Gradients gradients(1 + indices.size());
  gradients[0] = index_put(zeros_like_argument<"self">(saved, dy), indices, dy, true);
  return gradients;
}

TAPER_DERIVATIVE(index_put, "indices") {
  const std::vector<Tensor> indices = saved.tensors<"indices">();
  Gradients gradients(2 + indices.size());
  gradients.front() =
      saved.boolean<"accumulate">() ? dy : index_put(dy, indices, zeros({}, dy.dtype()));
  gradients.back() = index(dy, indices);
  return gradients;
}

// Each element of the result is one element of the argument.

TAPER_DERIVATIVE(sort, "result1") {
  return {
      scatter(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(), saved.result(1), dy)};
}

TAPER_DERIVATIVE(topk, "result1") {
  return {
      scatter(zeros_like_argument<"self">(saved, dy), saved.integer<"dim">(), saved.result(1), dy)};
}

}  // namespace taper::eager::derivatives
