// Symbolic tensor types: layout helpers that the tracer, the passes and the writer share.
#pragma once
#include <string>

#include "taper/exporter/dim/dim.h"

namespace taper::ir {

using Type = TensorType<Dim>;

/// Row-major strides without gaps, offset 0.
inline void make_dense(Type& type) {
  Dim stride = 1;
  for (int i = type.rank - 1; i >= 0; --i) {
    type.strides[i] = stride;
    if (!same(type.sizes[i], 0)) stride *= type.sizes[i];
  }
  type.offset = 0;
}

/// A dense type of known sizes.
Type dense_type(DType dtype, const std::vector<Dim>& sizes);

/// Whether the ranges prove that elements lie row-major without gaps. Strides of extents 0 and 1 do
/// not matter.
bool is_dense(const Type& type);
/// The same for the last dimension only.
bool has_dense_rows(const Type& type);

/// Equal dtype, rank and provably equal sizes.
bool same_sizes(const Type& a, const Type& b);
/// `same_sizes`, and equal strides and offset.
bool same_type(const Type& a, const Type& b);

/// Row-major bytes of all elements.
Dim size_in_bytes(const Type& type);
/// One more than the largest element position that the type reaches, counted from its base's start;
/// 0 without elements (where that is known).
Dim end_of(const Type& type);

/// "f32[batch, 10]"; with strides and offset where it is not dense: "f32[10, batch] strides [1, 10]
/// offset 5".
std::string to_string(const Type& type);

}  // namespace taper::ir
