// Complex numbers in the place of Scalars, which hold real numbers only. They become 0-dim tensors.
#pragma once
#include <complex>

#include "taper/exporter/eager/owned_arguments.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// The 0-dim c64 tensor.
eager::Tensor tensor_of(std::complex<double> z);

/// If a Scalar of the call is a complex number, the overload that takes a tensor there:
/// `mul.Tensor` for `mul.Scalar`. Otherwise, and if there is none, `overload` itself.
eager::Overload for_complex_scalars(const Node& node, const eager::Overload& overload);

/// The complex number with which `full` or one of its relatives fills a tensor. nullptr: another
/// operator, or a real number.
const std::complex<double>* filled_with(const Node& node);

}  // namespace taper::pt2
