// Kernels that fill a dense result row by row, each row from a place that its coordinates decide.
#pragma once
#include <cstring>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/records.h"

namespace taper::portable {

/// Calls `row(coordinates, first)` for every row of a dense tensor: the coordinates of its first
/// element, the last one 0, and its number. In parallel, in tasks of a fixed number of elements. A
/// tensor without dimensions is one row of one element.
template <class Row>
void for_each_row(const Threads* threads, const Shape& shape, const Row& row) {
  const index_t width = shape.rank == 0 ? 1 : shape.sizes[shape.rank - 1];
  index_t rows = 1;
  for (int d = 0; d + 1 < shape.rank; ++d) rows *= shape.sizes[d];
  if (width == 0) return;
  const index_t per_task = width < pointwise_grain ? pointwise_grain / width : 1;
  parallel_for(threads, (rows + per_task - 1) / per_task, [&](index_t task) {
    const index_t begin = task * per_task, end = begin + per_task < rows ? begin + per_task : rows;
    index_t coordinates[max_rank] = {};
    index_t rest = begin;
    for (int d = shape.rank - 2; d >= 0; --d)
      coordinates[d] = rest % shape.sizes[d], rest /= shape.sizes[d];
    for (index_t i = begin; i < end; ++i) {
      row(static_cast<const index_t*>(coordinates), i);
      for (int d = shape.rank - 2; d >= 0 && ++coordinates[d] == shape.sizes[d]; --d)
        coordinates[d] = 0;
    }
  });
}

/// Rows as long as they can be, up to some thousand elements: joins the last dimension of `in` and
/// `out` with the one before while both lie densely and equally there. `shift`: how far a dimension
/// is moved, one whose number is not 0 ends that; nullptr: none is.
inline void join_rows(Shape& in, Shape& out, index_t* shift) {
  constexpr index_t longest = 4096;
  while (in.rank > 1 && out.rank > 1) {
    const int i = --in.rank, o = --out.rank;
    const index_t n = in.sizes[i];
    const bool joins = n > 0 && n <= longest && n == out.sizes[o] && in.strides[i] == 1 &&
                       in.strides[i - 1] == n && (shift == nullptr || shift[o] == 0);
    if (!joins) {
      ++in.rank, ++out.rank;
      return;
    }
    in.sizes[i - 1] *= n, out.sizes[o - 1] *= n, in.strides[i - 1] = out.strides[o - 1] = 1;
    if (shift != nullptr) shift[o - 1] *= n;
  }
}

/// A copy of `size` bytes that may be few: a call would take longer than moving those. All are
/// loaded before they are stored: a store to a like address in another page would hold loads up.
inline void copy_bytes(const void* from, void* to, index_t size) {
  char line[128];
  if (size == 128) {
    std::memcpy(line, from, 128);
    std::memcpy(to, line, 128);
  } else if (size == 64) {
    std::memcpy(line, from, 64);
    std::memcpy(to, line, 64);
  } else {
    std::memcpy(to, from, static_cast<size_t>(size));
  }
}

/// y[i] = x[i * step] for i in [0, n).
template <class T>
void copy_run(const T* x, index_t step, index_t n, T* y) {
  if (step == 1 && n > 0)
    copy_bytes(x, y, n * static_cast<index_t>(sizeof(T)));
  else if (step == -1)  // a step that the compiler knows
    for (index_t i = 0; i < n; ++i) y[i] = x[-i];
  else
    for (index_t i = 0; i < n; ++i) y[i] = x[i * step];
}

/// A Scalar as an element of any dtype: `element` holds size_bytes(dtype) bytes.
struct Element {
  alignas(8) char bytes[8];
};
Element element_of(Scalar value, DType dtype);

}  // namespace taper::portable
