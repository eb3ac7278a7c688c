// Kernels that fill a dense result row by row. The coordinates of a row decide where it comes from.
#pragma once
#include <cstring>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/records.h"

namespace taper::portable {

/// Calls `row(coordinates, first)` for every row of a dense tensor, in parallel. `coordinates` are
/// those of the row's first element, so the last one is 0. `first` is the number of this element. A
/// task has a fixed number of elements. A scalar is one row of one element.
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

/// Makes rows longer, up to a few thousand elements. Joins the last dimension of `in` and `out`
/// with the one before, as long as it is dense and equal in both. `shift` says how far each
/// dimension is moved; a dimension that moves is not joined. nullptr: none moves.
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

/// Copies `size` bytes. For few bytes, a call of memcpy would take longer than the copy. All bytes
/// are loaded before any is stored, because a store delays a load at the same place of another
/// page.
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
  else if (step == -1)  // a step that is a compile-time constant
    for (index_t i = 0; i < n; ++i) y[i] = x[-i];
  else
    for (index_t i = 0; i < n; ++i) y[i] = x[i * step];
}

/// A Scalar as an element of any dtype. Its bytes are the first size_bytes(dtype) of `bytes`.
struct Element {
  alignas(8) char bytes[8];
};
Element element_of(Scalar value, DType dtype);

}  // namespace taper::portable
