#include "taper/exporter/eager/ops/matmul.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

bool is_one(Dim d) { return d.is_constant() && d.value() == 1; }

Dim product(const Dims& sizes) {
  Dim n(1);
  for (const Dim& d : sizes) n *= d;
  return n;
}

/// The leading dimensions of both operands, after broadcasting.
Dims broadcast_batches(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()), Dim(1));
  for (size_t k = 1; k <= out.size(); ++k) {
    const Dim x = k <= a.size() ? a[a.size() - k] : Dim(1),
              y = k <= b.size() ? b[b.size() - k] : Dim(1);
    out[out.size() - k] = is_one(x) ? y : x;
  }
  return out;
}
Dims leading(const Tensor& t, int dropped) {
  Dims sizes = t.sizes();
  sizes.resize(sizes.size() - static_cast<size_t>(dropped));
  return sizes;
}

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  if (a.rank() == 2 && b.rank() == 2) return mm(a, b);
  const Dim m = a.size(-2), k = a.size(-1), n = b.size(-1);
  if (b.rank() == 2) {  // one matrix for all batches, whose rows then form one matrix
    const Dims batches = leading(a, 2);
    return mm(a.reshape({product(batches) * m, k}), b).reshape(joined(batches, {m, n}));
  }
  const Dims batches = broadcast_batches(leading(a, 2), leading(b, 2));
  const Dim count = product(batches);
  const Tensor x = a.expand(joined(batches, {m, k})).reshape({count, m, k});
  const Tensor y = b.expand(joined(batches, {b.size(-2), n})).reshape({count, b.size(-2), n});
  return bmm(x, y).reshape(joined(batches, {m, n}));
}

void require_vectors(const char* name, const Tensor& a, const Tensor& b) {
  if (a.rank() != 1 || b.rank() != 1)
    throw EagerError(std::string(name) + ": needs two vectors, got " + to_string(a.sizes()) +
                     " and " + to_string(b.sizes()));
}

// A matrix times a vector. The vector becomes a row, so that the product runs along the dense rows
// of the matrix.
Tensor times_vector(const Tensor& matrix, const Tensor& vector) {
  return mm(vector.unsqueeze(0), matrix.transpose(0, 1)).squeeze(0);
}
// A sum of products would round each product of narrow dtypes. Vectors of different lengths are
// refused by the matrix product.
Tensor dot_product(const Tensor& x, const Tensor& y) {
  const bool wide = x.dtype() == DType::f32 || x.dtype() == DType::f64;
  if (wide && x.dtype() == y.dtype() && x.size(0) == y.size(0))
    return sum(mul(x, y), std::optional<DType>());
  return mm(x.unsqueeze(0), y.unsqueeze(1)).reshape({});
}

// Addition would promote the summand. As in PyTorch, a matrix product with a summand does not.
void require_dtype(const char* op, const Tensor& summand, const Tensor& factor) {
  if (summand.dtype() != factor.dtype())
    throw EagerError(std::string(op) + ": the summand's dtype differs from the product's: " +
                     name_of(summand.dtype()) + " and " + name_of(factor.dtype()));
}

}  // namespace

TAPER_DECOMPOSITION(matmul) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"other">();
  if (x.rank() == 0 || y.rank() == 0)
    throw EagerError("matmul: both operands need at least one dimension, got " +
                     to_string(x.sizes()) + " and " + to_string(y.sizes()));
  if (x.rank() == 1 && y.rank() == 1) return {dot_product(x, y)};
  if (x.rank() == 2 && y.rank() == 1) return {times_vector(x, y)};
  const Tensor left = x.rank() == 1 ? x.unsqueeze(0) : x,
               right = y.rank() == 1 ? y.unsqueeze(1) : y;
  Tensor out = matrix_product(left, right);
  if (y.rank() == 1) out = out.squeeze(-1);
  if (x.rank() == 1) out = out.squeeze(-2);
  return {out};
}

TAPER_DECOMPOSITION(mv) {
  const Tensor m = a.tensor<"self">(), v = a.tensor<"vec">();
  if (m.rank() != 2 || v.rank() != 1)
    throw EagerError("mv: needs a matrix and a vector, got " + to_string(m.sizes()) + " and " +
                     to_string(v.sizes()));
  return {times_vector(m, v)};
}

TAPER_DECOMPOSITION(dot) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"tensor">();
  require_vectors("dot", x, y);
  return {dot_product(x, y)};
}

TAPER_DECOMPOSITION(outer) {
  const Tensor x = a.tensor<"self">(), y = a.tensor<"vec2">();
  require_vectors("outer", x, y);
  return {mul(x.unsqueeze(1), y.unsqueeze(0))};
}

// transformers writes grouped_mm in this way for dtypes that torch.compile has no grouped_mm for.
TAPER_DECOMPOSITION(transformers_grouped_mm_fallback) {
  const Tensor input = a.tensor<"input">(), weight = a.tensor<"weight">();
  if (input.rank() != 2 || weight.rank() != 3)
    throw EagerError(
        "grouped_mm_fallback: needs input (rows, in) and weight (experts, in, out), "
        "got " +
        to_string(input.sizes()) + " and " + to_string(weight.sizes()));
  return {grouped_mm(input, weight, a.tensor<"offs">())};
}

// For dtypes in which no kernel computes the whole operator.

TAPER_DECOMPOSITION_ROUNDED_ONCE(linear) {
  const Tensor input = a.tensor<"input">(), bias = a.tensor<"bias">();
  if (bias.defined()) require_dtype("linear", bias, input);
  const Tensor product = matmul(input, a.tensor<"weight">().t());
  return {bias.defined() ? add(product, bias) : product};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(baddbmm) {
  const Scalar alpha = a.scalar<"alpha">(), beta = a.scalar<"beta">();
  require_dtype("baddbmm", a.tensor<"self">(), a.tensor<"batch1">());
  Tensor product = bmm(a.tensor<"batch1">(), a.tensor<"batch2">());
  if (alpha.to<double>() != 1) product = mul(product, alpha);
  return {beta.to<double>() == 0 ? product : add(product, a.tensor<"self">(), beta)};
}

}  // namespace taper::eager::decompositions
