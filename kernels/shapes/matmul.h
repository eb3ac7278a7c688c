// Shape rules of the matrix products.
#pragma once
#include "taper/kernels/rule.h"

namespace taper {
namespace internal {

/// Both operands have one dtype that can be multiplied.
template <class D>
bool multipliable(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b) {
  return facts.require(a.dtype == b.dtype, TAPER_TEXT("the operands' dtypes differ")) &&
         facts.require(a.dtype != DType::boolean, TAPER_TEXT("bool cannot be multiplied"));
}

/// `self` broadcasts to `out`: dimensions from the right are one or equal.
template <class D>
bool broadcasts_to(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& out) {
  if (!facts.require(self.dtype == out.dtype,
                     TAPER_TEXT("self's dtype differs from the product's")))
    return false;
  if (!facts.require(self.rank <= out.rank, TAPER_TEXT("self has {} dimensions, the product {}"),
                     D(self.rank), D(out.rank)))
    return false;
  for (int i = 1; i <= self.rank; ++i) {
    const D& from = self[self.rank - i];
    if (facts.is_one(from)) continue;
    if (!facts.equal(from, out[out.rank - i],
                     TAPER_TEXT("self's extent {} does not broadcast to the product's {}")))
      return false;
  }
  return true;
}

/// (m, k) (k, n) -> (m, n)
template <class D>
bool product_of_matrices(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b,
                         TensorType<D>& out) {
  if (!facts.require(a.rank == 2 && b.rank == 2,
                     TAPER_TEXT("needs two matrices, got {} and {} dimensions"), D(a.rank),
                     D(b.rank)))
    return false;
  if (!multipliable(facts, a, b)) return false;
  if (!facts.equal(a[1], b[0], TAPER_TEXT("{} columns do not fit {} rows"))) return false;
  out.dtype = a.dtype, out.rank = 2;
  out[0] = a[0], out[1] = b[1];
  return true;
}

/// (batch, m, k) (batch, k, n) -> (batch, m, n)
template <class D>
bool product_of_batches(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b,
                        TensorType<D>& out) {
  if (!facts.require(a.rank == 3 && b.rank == 3,
                     TAPER_TEXT("needs two batches of matrices, got {} and {} dimensions"),
                     D(a.rank), D(b.rank)))
    return false;
  if (!multipliable(facts, a, b)) return false;
  if (!facts.equal(a[0], b[0], TAPER_TEXT("batch sizes {} and {} differ"))) return false;
  if (!facts.equal(a[2], b[1], TAPER_TEXT("{} columns do not fit {} rows"))) return false;
  out.dtype = a.dtype, out.rank = 3;
  out[0] = a[0], out[1] = a[1], out[2] = b[2];
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::mm> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    TensorType<D>& out) {
    return internal::product_of_matrices(facts, self, mat2, out);
  }
};

template <>
struct Rule<ops::bmm> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    TensorType<D>& out) {
    return internal::product_of_batches(facts, self, mat2, out);
  }
};

template <>
struct Rule<ops::addmm> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat1,
                    const TensorType<D>& mat2, Scalar, Scalar, TensorType<D>& out) {
    return internal::product_of_matrices(facts, mat1, mat2, out) &&
           internal::broadcasts_to(facts, self, out);
  }
};

template <>
struct Rule<ops::baddbmm> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& batch1,
                    const TensorType<D>& batch2, Scalar, Scalar, TensorType<D>& out) {
    return internal::product_of_batches(facts, batch1, batch2, out) &&
           internal::broadcasts_to(facts, self, out);
  }
};

/// (*, in) weight (out, in) bias (out) -> (*, out). A weight (in) gives (*).
template <>
struct Rule<ops::linear> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, TensorType<D>& out) {
    if (!facts.require(input.rank >= 1, TAPER_TEXT("input needs at least one dimension")))
      return false;
    if (!facts.require(weight.rank == 1 || weight.rank == 2,
                       TAPER_TEXT("weight needs 1 or 2 dimensions, got {}"), D(weight.rank)))
      return false;
    if (!internal::multipliable(facts, input, weight)) return false;
    if (!facts.equal(
            input[input.rank - 1], weight[weight.rank - 1],
            TAPER_TEXT("input does not fit weight: the last dimension is {} and must be {}")))
      return false;
    out.dtype = input.dtype, out.rank = input.rank - (weight.rank == 1);
    for (int i = 0; i + 1 < input.rank; ++i) out[i] = input[i];
    if (weight.rank == 2) out[out.rank - 1] = weight[0];
    if (bias == nullptr) return true;
    return facts.require(bias->rank <= 1, TAPER_TEXT("bias needs at most one dimension, got {}"),
                         D(bias->rank)) &&
           internal::broadcasts_to(facts, *bias, out);
  }
};

}  // namespace taper
