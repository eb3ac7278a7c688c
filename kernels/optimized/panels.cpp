#include "taper/kernels/optimized/panels.h"

#include <cstring>

#include "taper/kernels/optimized/microkernel.h"
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

// Uses the vectors that every processor has: memory is slower than they are.
void pack(const float* from, const Matrix& m, float* to) {
  const Microkernels& kernels = microkernels<CpuLevel::portable>();
  for (index_t i = 0; i < m.across; i += panel_width, from += panel_width * m.across_stride) {
    const index_t columns = smaller(panel_width, m.across - i);
    if (columns < panel_width)
      std::memset(to, 0, static_cast<size_t>(panel_width * m.depth) * sizeof(float));
    kernels.pack(from, m.across_stride, m.depth_stride, columns, m.depth, to, panel_width);
    to += panel_width * m.depth;
  }
}

}  // namespace

size_t bytes_of_panels_of_first(const TensorRef& dense) {
  return bytes_of(matrix_of_first(*dense.shape));
}
size_t bytes_of_panels_of_last(const TensorRef& dense) {
  return bytes_of(matrix_of_last(*dense.shape));
}
void pack_panels_of_first(const TensorRef& dense, void* packed) {
  pack(static_cast<const float*>(dense.data), matrix_of_first(*dense.shape),
       static_cast<float*>(packed));
}
void pack_panels_of_last(const TensorRef& dense, void* packed) {
  pack(static_cast<const float*>(dense.data), matrix_of_last(*dense.shape),
       static_cast<float*>(packed));
}
size_t bytes_of_filter_panels(const TensorRef& dense) {
  const bool has_channels = dense.shape->rank > 1 && dense.shape->sizes[1] > 1;
  return has_channels ? bytes_of_panels_of_first(dense) : 0;
}

}  // namespace taper::optimized
