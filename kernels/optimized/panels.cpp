#include "taper/kernels/optimized/panels.h"

#include <cstring>

#include "taper/kernels/optimized/packing.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {
namespace {

struct Matrix {
  index_t across = 0, depth = 0, across_stride = 0, depth_stride = 0;
};

// For dense weights of any rank, or a matrix with any strides. Other shapes give an empty matrix.
Matrix matrix_of_first(const Shape& s) {
  if (s.rank == 2) return {s.sizes[0], s.sizes[1], s.strides[0], s.strides[1]};
  if (s.rank < 2 || !s.is_dense() || s.sizes[0] == 0) return {};
  const index_t depth = s.numel() / s.sizes[0];
  return {s.sizes[0], depth, depth, 1};
}
Matrix matrix_of_last(const Shape& s) {
  if (s.rank != 2) return {};
  return {s.sizes[1], s.sizes[0], s.strides[1], s.strides[0]};
}

size_t bytes_of(const Matrix& m) {
  if (m.across < panel_width || m.depth == 0) return 0;
  return static_cast<size_t>(round_up(m.across, panel_width) * m.depth) * sizeof(float);
}

void pack_panels(const TensorRef& source, const Matrix& m, const Microkernels& kernels,
                 const portable::SmallFloats& small, float* to) {
  const Operand operand{source.data, m.across_stride, m.depth_stride, stored_dtype(source), &small};
  alignas(64) float piece[piece_floats];
  for (index_t i = 0; i < m.across; i += panel_width, to += panel_width * m.depth) {
    const index_t columns = smaller(panel_width, m.across - i);
    if (columns < panel_width)
      std::memset(to, 0, static_cast<size_t>(panel_width * m.depth) * sizeof(float));
    pack(kernels, operand, i, 0, columns, m.depth, to, panel_width, piece);
  }
}

// Packs halves. `group` neighbours along k stay side by side: 1, or 2 for pairs.
void pack_halves(const TensorRef& source, index_t group, uint16_t* to) {
  const Matrix m = matrix_of_first(*source.shape);
  const auto* from = static_cast<const uint16_t*>(source.data);
  const index_t panel_halves = panel_width * round_up(m.depth, group);
  for (index_t i = 0; i < m.across; i += panel_width, to += panel_halves) {
    const index_t columns = smaller(panel_width, m.across - i);
    if (columns < panel_width || m.depth % group != 0)
      std::memset(to, 0, static_cast<size_t>(panel_halves) * sizeof(uint16_t));
    for (index_t j = 0; j < columns; ++j)
      for (index_t k = 0; k < m.depth; ++k)
        to[(k / group * panel_width + j) * group + k % group] =
            from[(i + j) * m.across_stride + k * m.depth_stride];
  }
}

}  // namespace

size_t bytes_of_panels_of_first(const TensorRef& source) {
  return bytes_of(matrix_of_first(*source.shape));
}
size_t bytes_of_panels_of_last(const TensorRef& source) {
  return bytes_of(matrix_of_last(*source.shape));
}
size_t bytes_of_filter_panels(const TensorRef& source) {
  const bool has_channels = source.shape->rank > 1 && source.shape->sizes[1] > 1;
  return has_channels ? bytes_of_panels_of_first(source) : 0;
}
void pack_panels_of_first(const TensorRef& source, const Microkernels& kernels,
                          const portable::SmallFloats& small, void* packed) {
  pack_panels(source, matrix_of_first(*source.shape), kernels, small, static_cast<float*>(packed));
}
void pack_panels_of_last(const TensorRef& source, const Microkernels& kernels,
                         const portable::SmallFloats& small, void* packed) {
  pack_panels(source, matrix_of_last(*source.shape), kernels, small, static_cast<float*>(packed));
}

size_t bytes_of_f16_panels(const TensorRef& source) {
  return bytes_of(matrix_of_first(*source.shape)) / 2;
}
size_t bytes_of_bf16_panels(const TensorRef& source) {
  Matrix m = matrix_of_first(*source.shape);
  m.depth = round_up(m.depth, 2);
  return bytes_of(m) / 2;
}
void pack_f16_panels(const TensorRef& source, void* packed) {
  pack_halves(source, 1, static_cast<uint16_t*>(packed));
}
void pack_bf16_panels(const TensorRef& source, void* packed) {
  pack_halves(source, 2, static_cast<uint16_t*>(packed));
}

}  // namespace taper::optimized
