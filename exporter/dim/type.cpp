#include "taper/exporter/dim/type.h"

#include <algorithm>

namespace taper::ir {

Type dense_type(DType dtype, const std::vector<Dim>& sizes) {
  if (sizes.size() > max_rank)
    throw ExportError("a tensor has at most " + std::to_string(max_rank) + " dimensions");
  Type type;
  type.dtype = dtype, type.rank = static_cast<int>(sizes.size());
  std::ranges::copy(sizes, type.sizes);
  make_dense(type);
  return type;
}

bool is_dense(const Type& type) {
  Dim expected = 1;
  for (int i = type.rank - 1; i >= 0; --i) {
    if (same(type.sizes[i], 0)) return true;
    if (type.sizes[i].upper() != 1 && !proves_equal(type.strides[i], expected)) return false;
    expected *= type.sizes[i];
  }
  return true;
}

bool has_dense_rows(const Type& type) {
  const int last = type.rank - 1;
  return last < 0 || type.sizes[last].upper() <= 1 || proves_equal(type.strides[last], 1);
}

bool same_sizes(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!proves_equal(a.sizes[i], b.sizes[i])) return false;
  return true;
}

bool same_type(const Type& a, const Type& b) {
  if (!same_sizes(a, b) || !proves_equal(a.offset, b.offset)) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!proves_equal(a.strides[i], b.strides[i])) return false;
  return true;
}

Dim size_in_bytes(const Type& type) { return type.numel() * size_bytes(type.dtype); }

Dim end_of(const Type& type) {
  Dim last = type.offset;
  for (int i = 0; i < type.rank; ++i) {
    if (same(type.sizes[i], 0)) return 0;
    last += (type.sizes[i] - 1) * type.strides[i];
  }
  return last + 1;
}

namespace {
std::string list(const Dim* dims, int count) {
  std::string s = "[";
  for (int i = 0; i < count; ++i) s += (i > 0 ? ", " : "") + dims[i].to_string();
  return s + "]";
}
}  // namespace

std::string to_string(const Type& type) {
  std::string s = name_of(type.dtype) + list(type.sizes, type.rank);
  Type dense = type;
  make_dense(dense);
  const bool strided = !std::equal(type.strides, type.strides + type.rank, dense.strides,
                                   [](Dim a, Dim b) { return same(a, b); });
  if (strided) s += " strides " + list(type.strides, type.rank);
  if (!same(type.offset, 0)) s += " offset " + type.offset.to_string();
  return s;
}

}  // namespace taper::ir
