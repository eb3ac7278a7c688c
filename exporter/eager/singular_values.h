// Functions that the decompositions of matrices share. A matrix is the last two dimensions of a
// tensor.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Throws an error of `op`: "what", and the tensor that it is about.
[[noreturn]] void refuse_matrix(std::string_view op, const std::string& what, const Tensor& got);
/// Throws unless `t`, the argument `name`, is a floating matrix or a batch of them.
void need_matrix(const Tensor& t, std::string_view op, const char* name,
                 bool may_be_complex = false);

/// Whether vectors must be computed because somebody wants a gradient of the values.
bool needs_vectors(const Tensor& a);
/// min(m, n) singular values of each matrix (…, m, n), the largest first. It keeps what a gradient
/// needs if anybody wants one.
Tensor singular_values(const Tensor& a);
/// n eigenvalues of each symmetric matrix, in ascending order, from the half that `uplo` names.
Tensor symmetric_eigenvalues(const Tensor& a, std::string_view uplo = "L");
/// Whether the sizes of a matrix prove that it has no elements.
bool is_empty_matrix(const Tensor& a);

/// What of the singular values a norm of a matrix is.
enum class SpectralNorm { largest, smallest, sum };
/// The norm of the matrices in two dimensions of self, which `dims` names. They become 1 with
/// `keepdim`.
Tensor spectral_norm(const Tensor& self, SpectralNorm norm, const Ints& dims, bool keepdim,
                     std::optional<DType> dtype);

}  // namespace taper::eager
