// What the decompositions and the derivatives of linear algebra read out of a factorisation P L U.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Whether `b` stands for vectors, not matrices, beside a matrix of sizes `a`: it has one
/// dimension, or the sizes of `a` but the last.
bool is_vector_of(const Dims& a, const Dims& b);

/// P y, or P^T y with `back` false: the exchanges of rows that `pivots` name, of the rows of `y`.
Tensor exchange_rows(const Tensor& pivots, const Tensor& y, bool back);
/// The determinant of P: 1 or -1.
Tensor sign_of_exchanges(const Tensor& pivots, DType dtype);
/// The determinant of P L U.
Tensor determinant_by(const Tensor& lu, const Tensor& pivots);

}  // namespace taper::eager
