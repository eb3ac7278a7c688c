// Shape rules of the matrix products.
#pragma once
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// Requires that both operands have one dtype that can be multiplied.
template <class D>
bool multipliable(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b) {
  return facts.require(a.dtype == b.dtype, TAPER_TEXT("the operands' dtypes differ")) &&
         facts.require(a.dtype != DType::boolean, TAPER_TEXT("bool cannot be multiplied"));
}

/// Requires that the summand of a product broadcasts to it: from the right, dimensions are one or
/// equal.
template <class D>
bool broadcasts_to(Facts<D>& facts, const TensorType<D>& summand, const TensorType<D>& out) {
  if (!facts.require(summand.dtype == out.dtype,
                     TAPER_TEXT("the summand's dtype differs from the product's")))
    return false;
  if (!facts.require(summand.rank <= out.rank,
                     TAPER_TEXT("the summand has {} dimensions, the product {}"), D(summand.rank),
                     D(out.rank)))
    return false;
  for (int i = 1; i <= summand.rank; ++i) {
    const D& from = summand[summand.rank - i];
    if (facts.is_one(from)) continue;
    if (!facts.equal(from, out[out.rank - i],
                     TAPER_TEXT("the summand's extent {} does not broadcast to the product's {}")))
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
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    TensorType<D>& out) {
    return internal::product_of_matrices(facts, self, mat2, out);
  }
};

template <>
struct Rule<ops::bmm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    TensorType<D>& out) {
    return internal::product_of_batches(facts, self, mat2, out);
  }
};

template <>
struct Rule<ops::addmm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat1,
                    const TensorType<D>& mat2, Scalar, Scalar, TensorType<D>& out) {
    return internal::product_of_matrices(facts, mat1, mat2, out) &&
           internal::broadcasts_to(facts, self, out);
  }
};

template <>
struct Rule<ops::baddbmm> {
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

/// i8 or u8 (m, k), i8 (k, n) -> i32 (m, n)
template <>
struct Rule<ops::_int_mm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    TensorType<D>& out) {
    if (!facts.require(self.rank == 2 && mat2.rank == 2,
                       TAPER_TEXT("needs two matrices, got {} and {} dimensions"), D(self.rank),
                       D(mat2.rank)) ||
        !facts.require(self.dtype == DType::i8 || self.dtype == DType::u8,
                       TAPER_TEXT("self must be i8 or u8")) ||
        !facts.require(mat2.dtype == DType::i8, TAPER_TEXT("mat2 must be i8")) ||
        !facts.equal(self[1], mat2[0], TAPER_TEXT("{} columns do not fit {} rows")))
      return false;
    out.dtype = DType::i32, out.rank = 2;
    out[0] = self[0], out[1] = mat2[1];
    return true;
  }
};

/// Products of groups, each with its own matrix. Two batches, (groups, m, k) and (groups, k, n),
/// give (groups, m, n). If an operand is one matrix, group g is the range [offs[g - 1], offs[g]) of
///
///   the rows of self     (m, k) (groups, k, n) -> (m, n)
///   the columns of mat2  (groups, m, k) (k, n) -> (m, n)
///   both, along k        (m, k) (k, n)         -> (groups, m, n)
///
/// The part behind the last group becomes zero.
template <>
struct Rule<ops::_grouped_mm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    const TensorType<D>* offs, const TensorType<D>* bias, Maybe<DType> out_dtype,
                    TensorType<D>& out) {
    if (!facts.require(bias == nullptr, TAPER_TEXT("bias must be absent, as in PyTorch: add it "
                                                   "to the result")) ||
        !facts.require(is_floating(self.dtype), TAPER_TEXT("self must have a floating dtype")) ||
        !facts.require(self.dtype == mat2.dtype, TAPER_TEXT("the operands' dtypes differ")) ||
        !facts.require(!out_dtype || *out_dtype == self.dtype,
                       TAPER_TEXT("out_dtype must be the dtype of self")) ||
        !facts.require((self.rank == 2 || self.rank == 3) && (mat2.rank == 2 || mat2.rank == 3),
                       TAPER_TEXT("needs matrices or batches of them, got {} and {} dimensions"),
                       D(self.rank), D(mat2.rank)) ||
        !facts.equal(self[self.rank - 1], mat2[mat2.rank - 2],
                     TAPER_TEXT("{} columns do not fit {} rows")))
      return false;
    const bool batches = self.rank == 3 && mat2.rank == 3;
    if (!facts.require(batches == (offs == nullptr),
                       TAPER_TEXT("needs offs where an operand is one matrix, and only there")))
      return false;
    if (offs != nullptr &&
        (!facts.require(offs->rank == 1, TAPER_TEXT("offs must have 1 dimension, it has {}"),
                        D(offs->rank)) ||
         !facts.require(internal::is_index(offs->dtype), TAPER_TEXT("offs must be i32 or i64"))))
      return false;
    const D groups = offs != nullptr ? (*offs)[0] : self[0];
    for (const TensorType<D>* operand : {&self, &mat2})
      if (operand->rank == 3 &&
          !facts.equal((*operand)[0], groups, TAPER_TEXT("{} matrices do not fit {} groups")))
        return false;
    out.dtype = self.dtype, out.rank = self.rank == mat2.rank ? 3 : 2;
    if (out.rank == 3) out[0] = groups;
    out[out.rank - 2] = self[self.rank - 2], out[out.rank - 1] = mat2[mat2.rank - 1];
    return true;
  }
};

}  // namespace taper
