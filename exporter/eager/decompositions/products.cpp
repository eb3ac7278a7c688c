// Products of vectors, matrices and tensors, written with matrix products or sums.
#include <algorithm>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

[[noreturn]] void refuse_shapes(const char* name, const char* needs, const Tensor& a,
                                const Tensor& b) {
  throw EagerError(std::string(name) + ": needs " + needs + ", got " + to_string(a.sizes()) +
                   " and " + to_string(b.sizes()));
}

}  // namespace

TAPER_DECOMPOSITION(addmv) {
  const Tensor self = a.tensor<"self">(), mat = a.tensor<"mat">(), vec = a.tensor<"vec">();
  if (mat.rank() != 2 || vec.rank() != 1) refuse_shapes("addmv", "a matrix and a vector", mat, vec);
  return {squeeze(addmm(self.rank() == 1 ? unsqueeze(self, 1) : self, mat, unsqueeze(vec, 1),
                        a.scalar<"beta">(), a.scalar<"alpha">()),
                  1)};
}
TAPER_DECOMPOSITION(addr) {
  const Tensor x = a.tensor<"vec1">(), y = a.tensor<"vec2">();
  if (x.rank() != 1 || y.rank() != 1) refuse_shapes("addr", "two vectors", x, y);
  if (x.dtype() == DType::boolean && y.dtype() == DType::boolean &&
      a.tensor<"self">().dtype() == DType::boolean) {
    const auto counted = [&](const Tensor& t, bool counts) { return counts ? t : zeros_like(t); };
    const Tensor product = logical_and(unsqueeze(x, 1), unsqueeze(y, 0));
    return {logical_or(counted(a.tensor<"self">(), a.real<"beta">() != 0),
                       counted(product, a.real<"alpha">() != 0))};
  }
  return {addmm(a.tensor<"self">(), unsqueeze(x, 1), unsqueeze(y, 0), a.scalar<"beta">(),
                a.scalar<"alpha">())};
}
TAPER_DECOMPOSITION(vdot) { return {dot(a.tensor<"self">(), a.tensor<"other">())}; }

// The sum of products over the last dimension of both.
TAPER_DECOMPOSITION(inner) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  if (x.rank() == 0 || y.rank() == 0) return {mul(x, y)};
  const Dim k = x.size(-1);
  if (proves_different(k, y.size(-1))) refuse_shapes("inner", "last dimensions of one size", x, y);
  Dims sizes = x.sizes();
  sizes.pop_back();
  Dim rows = 1, columns = 1;
  for (const Dim& d : sizes) rows *= d;
  for (int i = 0; i + 1 < y.rank(); ++i) columns *= y.size(i), sizes.push_back(y.size(i));
  const Tensor right = t(reshape(y, {columns, k}));
  return {reshape(mm(reshape(x, {rows, k}), right), sizes)};
}

// Every element of self times the whole tensor other.
TAPER_DECOMPOSITION(kron) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  const int rank = std::max(x.rank(), y.rank());
  Dims outer, inner, sizes;
  for (int i = rank; i >= 1; --i) {
    const Dim m = i <= x.rank() ? x.size(-i) : Dim(1), n = i <= y.rank() ? y.size(-i) : Dim(1);
    outer.insert(outer.end(), {m, Dim(1)});
    inner.insert(inner.end(), {Dim(1), n});
    sizes.push_back(m * n);
  }
  return {reshape(mul(reshape(x, outer), reshape(y, inner)), sizes)};
}

// out[o] = input1 weight[o] input2 + bias[o]
TAPER_DECOMPOSITION_ROUNDED_ONCE(bilinear) {
  const Tensor x = a.tensor<"input1">(), y = a.tensor<"input2">(), weight = a.tensor<"weight">(),
               bias = a.tensor<"bias">();
  if (weight.rank() != 3 || x.rank() == 0 || x.rank() != y.rank())
    throw EagerError(
        "bilinear: needs inputs of equal rank, at least 1, and a weight of 3 "
        "dimensions, got " +
        to_string(x.sizes()) + ", " + to_string(y.sizes()) + " and " + to_string(weight.sizes()));
  Dims sizes = x.sizes();
  Dim count = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) {
    count *= x.size(i);
    if (proves_different(x.size(i), y.size(i)))
      refuse_shapes("bilinear", "inputs that differ in their last size alone", x, y);
  }
  if (proves_equal(x.size(-1), Dim(0)) || proves_equal(y.size(-1), Dim(0)))
    refuse_shapes("bilinear", "inputs with features", x, y);
  const Dim out = weight.size(0), m = weight.size(1), n = weight.size(2);
  sizes.back() = out;
  // (count, m) (m, out n) -> (count, out, n) (count, n, 1)
  const Tensor by_input1 = reshape(permute(weight, {1, 0, 2}), {m, out * n});
  const Tensor half = reshape(mm(reshape(x, {count, x.size(-1)}), by_input1), {count, out, n});
  const Tensor product = reshape(bmm(half, reshape(y, {count, y.size(-1), Dim(1)})), sizes);
  return {bias.defined() ? add(product, bias) : product};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(linalg_cross) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  if (x.rank() != y.rank()) refuse_shapes("linalg_cross", "two tensors of one rank", x, y);
  const int64_t dim = checked_dim(a.integer<"dim">(), x.rank(), "linalg_cross", x);
  if (x.rank() == 0 || !proves_equal(x.size(dim), Dim(3)) || !proves_equal(y.size(dim), Dim(3)))
    refuse_shapes("linalg_cross", "3 elements along dim in both", x, y);
  const auto product = [&](int64_t i, int64_t j) {
    return mul(select(x, dim, i), select(y, dim, j));
  };
  const auto component = [&](int64_t i, int64_t j) { return sub(product(i, j), product(j, i)); };
  return {stack({component(1, 2), component(2, 0), component(0, 1)}, dim)};
}
// i1 i2 i3, with new dimensions as `expand` says, summed over `sumdim`.
TAPER_DECOMPOSITION(_trilinear) {
  const auto expanded = [&](Tensor t, const Ints& dims) {
    for (const int64_t d : dims) t = unsqueeze(t, d);
    return t;
  };
  const Tensor product = mul(mul(expanded(a.tensor<"i1">(), a.integers<"expand1">()),
                                 expanded(a.tensor<"i3">(), a.integers<"expand3">())),
                             expanded(a.tensor<"i2">(), a.integers<"expand2">()));
  const Ints dims = a.integers<"sumdim">();
  return {dims.empty() ? product : sum(product, dims, false, product.dtype())};
}

// Moves the contracted dimensions to the end of one and to the front of the other, then computes
// one matrix product.
TAPER_DECOMPOSITION(tensordot) {
  Tensor self = a.tensor<"self">(), other = a.tensor<"other">();
  const Ints from_self = a.integers<"dims_self">(), from_other = a.integers<"dims_other">();
  if (from_self.size() != from_other.size())
    throw EagerError("tensordot: " + std::to_string(from_self.size()) +
                     " dimensions of self stand against " + std::to_string(from_other.size()) +
                     " of other");
  const auto sum_along = [&](Tensor& t, int64_t dim, const Tensor& beside, int64_t beside_dim) {
    if (proves_equal(beside.size(beside_dim), Dim(1)) && !same(t.size(dim), Dim(1)))
      t = sum(t, {dim}, true, t.dtype());
  };
  for (size_t i = 0; i < from_self.size(); ++i) {  // a size of 1 broadcasts
    const int64_t d = checked_dim(from_self[i], self.rank(), "tensordot", self),
                  e = checked_dim(from_other[i], other.rank(), "tensordot", other);
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
      parts.contracted.push_back(checked_dim(d, t.rank(), "tensordot", t));
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
  const Tensor product = mm(reshape(permute(self, joined(left.kept, left.contracted)),
                                    {left.kept_count, left.contracted_count}),
                            reshape(permute(other, joined(right.contracted, right.kept)),
                                    {right.contracted_count, right.kept_count}));
  Dims sizes = left.sizes;
  sizes.insert(sizes.end(), right.sizes.begin(), right.sizes.end());
  return {reshape(product, sizes)};
}

// self (m, k) times dequantized rows: mat2 (n, k) of integers with scales (n). The result is (m,
// n).
TAPER_DECOMPOSITION_ROUNDED_ONCE(_weight_int8pack_mm, "self") {
  const Tensor self = a.tensor<"self">(), mat2 = a.tensor<"mat2">(), scales = a.tensor<"scales">();
  if (mat2.dtype() != DType::i8 || self.rank() != 2 || mat2.rank() != 2)
    refuse_shapes("_weight_int8pack_mm", "two matrices, the second of i8", self, mat2);
  if (scales.rank() != 1 || proves_different(scales.size(0), mat2.size(0)))
    refuse_shapes("_weight_int8pack_mm", "one scale for each row of mat2", mat2, scales);
  return {mul(linear(self, cast(mat2, self.dtype())), scales)};
}

// Along `dim`, or else along the first dimension with 3 elements.
TAPER_DECOMPOSITION(cross) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  int64_t dim = 0;
  if (a.has<"dim">()) {
    dim = a.integer<"dim">();
  } else {
    while (dim < x.rank() && !proves_equal(x.size(dim), Dim(3))) ++dim;
    if (dim == x.rank())
      throw EagerError("cross: no dimension of self " + to_string(x.sizes()) + " has 3 elements");
  }
  return {call<ops::linalg_cross>(x, y, dim)};
}
// beta * self + alpha * the sum of the products
TAPER_DECOMPOSITION_ROUNDED_ONCE(addbmm) {
  const Tensor self = a.tensor<"self">();
  const Scalar beta = a.scalar<"beta">();
  const Tensor product =
      mul(sum(bmm(a.tensor<"batch1">(), a.tensor<"batch2">()), {0}, false, self.dtype()),
          a.scalar<"alpha">());
  if (beta.to<double>() == 0)  // then self is ignored, even if it holds NaN
    return {add(product, zeros_like(self))};
  return {add(mul(self, beta), product)};
}

}  // namespace taper::eager::decompositions
