// Products of vectors, matrices and tensors that are matrix products, or sums of them.
#include <algorithm>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

[[noreturn]] void refuse_shapes(const char* name, const char* needs, const Tensor& a,
                                const Tensor& b, Location here) {
  throw EagerError(here, std::string(name) + ": needs " + needs + ", got " + to_string(a.sizes()) +
                             " and " + to_string(b.sizes()));
}

}  // namespace

TAPER_DECOMPOSITION(addmv) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">(), mat = a.tensor<"mat">(), vec = a.tensor<"vec">();
  if (mat.rank() != 2 || vec.rank() != 1)
    refuse_shapes("addmv", "a matrix and a vector", mat, vec, here);
  return {squeeze(addmm(self.rank() == 1 ? unsqueeze(self, 1, here) : self, mat,
                        unsqueeze(vec, 1, here), a.scalar<"beta">(), a.scalar<"alpha">(), here),
                  1, here)};
}
TAPER_DECOMPOSITION(addr) {
  const Location here = a.here();
  const Tensor x = a.tensor<"vec1">(), y = a.tensor<"vec2">();
  if (x.rank() != 1 || y.rank() != 1) refuse_shapes("addr", "two vectors", x, y, here);
  if (x.dtype() == DType::boolean && y.dtype() == DType::boolean &&
      a.tensor<"self">().dtype() == DType::boolean) {
    const auto counted = [&](const Tensor& t, bool counts) {
      return counts ? t : zeros_like(t, {}, here);
    };
    const Tensor product = logical_and(unsqueeze(x, 1, here), unsqueeze(y, 0, here), here);
    return {logical_or(counted(a.tensor<"self">(), a.real<"beta">() != 0),
                       counted(product, a.real<"alpha">() != 0), here)};
  }
  return {addmm(a.tensor<"self">(), unsqueeze(x, 1, here), unsqueeze(y, 0, here),
                a.scalar<"beta">(), a.scalar<"alpha">(), here)};
}
TAPER_DECOMPOSITION(vdot) { return {dot(a.tensor<"self">(), a.tensor<"other">(), a.here())}; }

// The sum over the last dimension of both.
TAPER_DECOMPOSITION(inner) {
  const Location here = a.here();
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  if (x.rank() == 0 || y.rank() == 0) return {mul(x, y, here)};
  const Dim k = x.size(-1);
  if (proves_different(k, y.size(-1)))
    refuse_shapes("inner", "last dimensions of one size", x, y, here);
  Dims sizes = x.sizes();
  sizes.pop_back();
  Dim rows = 1, columns = 1;
  for (const Dim& d : sizes) rows *= d;
  for (int i = 0; i + 1 < y.rank(); ++i) columns *= y.size(i), sizes.push_back(y.size(i));
  const Tensor right = t(reshape(y, {columns, k}, here), here);
  return {reshape(mm(reshape(x, {rows, k}, here), right, here), sizes, here)};
}

// Every element of self times the whole of other.
TAPER_DECOMPOSITION(kron) {
  const Location here = a.here();
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  const int rank = std::max(x.rank(), y.rank());
  Dims outer, inner, sizes;
  for (int i = rank; i >= 1; --i) {
    const Dim m = i <= x.rank() ? x.size(-i) : Dim(1), n = i <= y.rank() ? y.size(-i) : Dim(1);
    outer.insert(outer.end(), {m, Dim(1)});
    inner.insert(inner.end(), {Dim(1), n});
    sizes.push_back(m * n);
  }
  return {reshape(mul(reshape(x, outer, here), reshape(y, inner, here), here), sizes, here)};
}

// out[o] = input1 weight[o] input2 + bias[o]
TAPER_DECOMPOSITION_ROUNDED_ONCE(bilinear) {
  const Location here = a.here();
  const Tensor x = a.tensor<"input1">(), y = a.tensor<"input2">(), weight = a.tensor<"weight">(),
               bias = a.tensor<"bias">();
  if (weight.rank() != 3 || x.rank() == 0 || x.rank() != y.rank())
    throw EagerError(here,
                     "bilinear: needs inputs of equal rank, at least 1, and a weight of 3 "
                     "dimensions, got " +
                         to_string(x.sizes()) + ", " + to_string(y.sizes()) + " and " +
                         to_string(weight.sizes()));
  Dims sizes = x.sizes();
  Dim count = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) {
    count *= x.size(i);
    if (proves_different(x.size(i), y.size(i)))
      refuse_shapes("bilinear", "inputs that differ in their last size alone", x, y, here);
  }
  const Dim out = weight.size(0), m = weight.size(1), n = weight.size(2);
  sizes.back() = out;
  // (count, m) (m, out n) -> (count, out, n) (count, n, 1)
  const Tensor by_input1 = reshape(permute(weight, {1, 0, 2}, here), {m, out * n}, here);
  const Tensor half =
      reshape(mm(reshape(x, {count, x.size(-1)}, here), by_input1, here), {count, out, n}, here);
  const Tensor product =
      reshape(bmm(half, reshape(y, {count, y.size(-1), Dim(1)}, here), here), sizes, here);
  return {bias.defined() ? add(product, bias, 1, here) : product};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(linalg_cross) {
  const Location here = a.here();
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  if (x.rank() != y.rank()) refuse_shapes("linalg_cross", "two tensors of one rank", x, y, here);
  const int64_t dim = checked_dim(a.integer<"dim">(), x.rank(), "linalg_cross", x, here);
  if (x.rank() == 0 || !proves_equal(x.size(dim), Dim(3)) || !proves_equal(y.size(dim), Dim(3)))
    refuse_shapes("linalg_cross", "3 elements along dim in both", x, y, here);
  const auto product = [&](int64_t i, int64_t j) {
    return mul(select(x, dim, i, here), select(y, dim, j, here), here);
  };
  const auto component = [&](int64_t i, int64_t j) {
    return sub(product(i, j), product(j, i), 1, here);
  };
  return {stack({component(1, 2), component(2, 0), component(0, 1)}, dim, here)};
}
// i1 i2 i3 with new dimensions where `expand` says, summed over `sumdim`.
TAPER_DECOMPOSITION(_trilinear) {
  const Location here = a.here();
  const auto expanded = [&](Tensor t, const Ints& dims) {
    for (const int64_t d : dims) t = unsqueeze(t, d, here);
    return t;
  };
  const Tensor product = mul(mul(expanded(a.tensor<"i1">(), a.integers<"expand1">()),
                                 expanded(a.tensor<"i3">(), a.integers<"expand3">()), here),
                             expanded(a.tensor<"i2">(), a.integers<"expand2">()), here);
  const Ints dims = a.integers<"sumdim">();
  return {dims.empty() ? product : sum(product, dims, false, product.dtype(), here)};
}

// The contracted dimensions last in one and first in the other, then one matrix product.
TAPER_DECOMPOSITION(tensordot) {
  const Location here = a.here();
  Tensor self = a.tensor<"self">(), other = a.tensor<"other">();
  const Ints from_self = a.integers<"dims_self">(), from_other = a.integers<"dims_other">();
  if (from_self.size() != from_other.size())
    throw EagerError(here, "tensordot: " + std::to_string(from_self.size()) +
                               " dimensions of self stand against " +
                               std::to_string(from_other.size()) + " of other");
  const auto sum_along = [&](Tensor& t, int64_t dim, const Tensor& beside, int64_t beside_dim) {
    if (proves_equal(beside.size(beside_dim), Dim(1)) && !same(t.size(dim), Dim(1)))
      t = sum(t, {dim}, true, t.dtype(), here);
  };
  for (size_t i = 0; i < from_self.size(); ++i) {  // a size of 1 broadcasts
    const int64_t d = checked_dim(from_self[i], self.rank(), "tensordot", self, here),
                  e = checked_dim(from_other[i], other.rank(), "tensordot", other, here);
    sum_along(self, d, other, e);
    sum_along(other, e, self, d);
  }
  struct Parts {
    Ints kept, contracted;
    Dims sizes;
    Dim kept_count = 1, contracted_count = 1;
  };
  const auto split = [&](const Tensor& t, const Ints& dims) {
    Parts parts;
    for (const int64_t d : dims) {
      parts.contracted.push_back(checked_dim(d, t.rank(), "tensordot", t, here));
      parts.contracted_count *= t.size(d);
    }
    for (int64_t d = 0; d < t.rank(); ++d) {
      if (std::ranges::find(parts.contracted, d) != parts.contracted.end()) continue;
      parts.kept.push_back(d);
      parts.sizes.push_back(t.size(d));
      parts.kept_count *= t.size(d);
    }
    return parts;
  };
  const Parts left = split(self, from_self), right = split(other, from_other);
  const auto joined = [](Ints first, const Ints& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  };
  const Tensor product = mm(reshape(permute(self, joined(left.kept, left.contracted), here),
                                    {left.kept_count, left.contracted_count}, here),
                            reshape(permute(other, joined(right.contracted, right.kept), here),
                                    {right.contracted_count, right.kept_count}, here),
                            here);
  Dims sizes = left.sizes;
  sizes.insert(sizes.end(), right.sizes.begin(), right.sizes.end());
  return {reshape(product, sizes, here)};
}

// self (m, k), integers mat2 (n, k) that stand for rows times scales (n) -> (m, n)
TAPER_DECOMPOSITION_ROUNDED_ONCE(_weight_int8pack_mm, "self") {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">(), mat2 = a.tensor<"mat2">(), scales = a.tensor<"scales">();
  if (mat2.dtype() != DType::i8 || self.rank() != 2 || mat2.rank() != 2)
    refuse_shapes("_weight_int8pack_mm", "two matrices, the second of i8", self, mat2, here);
  if (scales.rank() != 1 || proves_different(scales.size(0), mat2.size(0)))
    refuse_shapes("_weight_int8pack_mm", "one scale for each row of mat2", mat2, scales, here);
  return {mul(linear(self, cast(mat2, self.dtype(), here), {}, here), scales, here)};
}

// Along `dim`, or the first dimension of 3 elements.
TAPER_DECOMPOSITION(cross) {
  const Location here = a.here();
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  int64_t dim = 0;
  if (a.has<"dim">()) {
    dim = a.integer<"dim">();
  } else {
    while (dim < x.rank() && !proves_equal(x.size(dim), Dim(3))) ++dim;
    if (dim == x.rank())
      throw EagerError(here,
                       "cross: no dimension of self " + to_string(x.sizes()) + " has 3 elements");
  }
  return {call<ops::linalg_cross>(here, x, y, dim)};
}
// beta * self + alpha * the sum of the products
TAPER_DECOMPOSITION_ROUNDED_ONCE(addbmm) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const Scalar beta = a.scalar<"beta">();
  const Tensor product = mul(
      sum(bmm(a.tensor<"batch1">(), a.tensor<"batch2">(), here), {0}, false, self.dtype(), here),
      a.scalar<"alpha">(), here);
  if (beta.to<double>() == 0)  // what self holds does not count, NaN neither
    return {add(product, zeros_like(self, {}, here), 1, here)};
  return {add(mul(self, beta, here), product, 1, here)};
}

}  // namespace taper::eager::decompositions
