// Functions that the decompositions and the derivatives of linear algebra apply to factors P L U.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Whether `b` holds vectors, not matrices, for a matrix of sizes `a`. It does if it has one
/// dimension, or the sizes of `a` without the last.
bool is_vector_of(const Dims& a, const Dims& b);

/// P^T y, or P y with `back`: exchanges the rows of `y` that `pivots` name.
Tensor exchange_rows(const Tensor& pivots, const Tensor& y, bool back);
/// The determinant of P: 1 or -1.
Tensor sign_of_exchanges(const Tensor& pivots, DType dtype);
/// The determinant of P L U.
Tensor determinant_by(const Tensor& lu, const Tensor& pivots);

}  // namespace taper::eager
