// Distances and similarities between vectors.
#include "taper/exporter/eager/ops/distance.h"

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// sqrt(|a|² + |b|² - 2 a b). This is far faster than computing differences, and less exact for
/// vectors that are near each other. The gradient at 0 is 0.
Tensor by_products(const Tensor& x1, const Tensor& x2) {
  const auto squares = [&](const Tensor& x) { return sum(mul(x, x), {-1}, true); };
  const Tensor products = matmul(x1, mT(x2));
  const Tensor square = clamp_min(add(add(squares(x1), mT(squares(x2))), products, -2), 0);
  const Tensor zero = eq(square, 0);
  return masked_fill(sqrt(masked_fill(square, zero, 1)), zero, 0);
}

/// x / max(|x|, eps) along dim. If eps is larger, the gradient is still that of |x|.
Tensor direction(const Tensor& x, int64_t dim, double eps) {
  Tensor length = vector_norm(x, 2, {dim}, true);
  const Tensor own = length.detach();
  length = add(length, masked_fill(rsub(own, eps), logical_not(lt(own, eps)), 0));
  return div(x, length);
}

}  // namespace

// Uses products where PyTorch does: for more than 25 vectors, unless compute_mode says otherwise.
TAPER_DECOMPOSITION(cdist) {
  const Tensor x1 = a.tensor<"x1">(), x2 = a.tensor<"x2">();
  const double p = a.real<"p">();
  const int64_t mode = a.has<"compute_mode">() ? a.integer<"compute_mode">() : 0;
  const std::optional<int64_t> given = a.has<"compute_mode">() ? std::optional(mode) : std::nullopt;
  if (p == 2 && mode != 2 && x1.rank() >= 2 && x2.rank() >= 2 && is_floating(x1.dtype()) &&
      x1.dtype() == x2.dtype() && proves_equal(x1.size(-1), x2.size(-1))) {
    const auto many = [](const Tensor& x) { return proves_less(Dim(25), x.size(-2)); };
    if (mode == 1 || (mode == 0 && (many(x1) || many(x2)))) return {by_products(x1, x2)};
  }
  return {call<ops::_cdist_forward>(x1, x2, p, given)};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(pairwise_distance) {
  const Tensor difference = add(sub(a.tensor<"x1">(), a.tensor<"x2">()), a.real<"eps">());
  return {vector_norm(difference, a.real<"p">(), {-1}, a.boolean<"keepdim">())};
}

TAPER_DECOMPOSITION(cosine_similarity) {
  Tensor x1 = a.tensor<"x1">(), x2 = a.tensor<"x2">();
  const DType dtype = promote_types(x1.dtype(), x2.dtype());
  if (!is_floating(dtype))
    throw EagerError(std::string("cosine_similarity: needs a floating dtype, not ") +
                     taper::name_of(dtype));
  const DType computes = dtype == DType::f64 ? DType::f64 : DType::f32;
  x1 = cast(x1, computes), x2 = cast(x2, computes);
  // `dim` refers to the broadcast shape
  while (x1.rank() < x2.rank()) x1 = unsqueeze(x1, 0);
  while (x2.rank() < x1.rank()) x2 = unsqueeze(x2, 0);
  const int64_t dim = checked_dim(a.integer<"dim">(), x1.rank(), "cosine_similarity", x1);
  const double eps = a.real<"eps">();
  if (x1.rank() > 0) {
    // a size of 1 along dim is repeated, so the vector gets longer
    Dims wide1 = x1.sizes(), wide2 = x2.sizes();
    const size_t d = static_cast<size_t>(dim);
    const auto is_one = [](Dim n) { return n.lower() == 1 && n.upper() == 1; };
    if (is_one(wide1[d])) wide1[d] = wide2[d];
    if (is_one(wide2[d])) wide2[d] = wide1[d];
    x1 = expand(x1, wide1), x2 = expand(x2, wide2);
  }
  const Tensor cosine = mul(direction(x1, dim, eps), direction(x2, dim, eps));
  return {cast(sum(cosine, {dim}), dtype)};
}

}  // namespace taper::eager::decompositions
