#include "taper/exporter/llm/cache.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/kernels/shapes/cached_attention.h"

namespace taper::llm {

using namespace eager;

namespace {

DType dtype_of(CacheType type) {
  switch (type) {
    case CacheType::f16:
      return DType::f16;
    case CacheType::bf16:
      return DType::bf16;
    case CacheType::int8:
    case CacheType::int4:
      return DType::u8;
    default:
      return DType::f32;
  }
}

/// Rows of `order` numbers, which is the largest power of two that divides `features`: Hadamard's
/// matrix of this order, again and again along the diagonal, with columns of length 1.
Tensor hadamard_matrix(int64_t features) {
  const auto order = features & -features;
  const auto entry = static_cast<float>(1 / std::sqrt(static_cast<double>(order)));
  std::vector<float> matrix(static_cast<size_t>(features * features));
  for (int64_t i = 0; i < features; ++i)
    for (int64_t j = i / order * order; j < (i / order + 1) * order; ++j) {
      const auto both = static_cast<uint64_t>(i % order & j % order);
      matrix[static_cast<size_t>(i * features + j)] = std::popcount(both) % 2 == 0 ? entry : -entry;
    }
  return Tensor::from(matrix, {1, features, features});
}

/// Of a key or a value of a head.
int64_t bytes_of_row(CacheType type, int64_t features) {
  const int64_t blocks = (features + CacheBlocks::elements - 1) / CacheBlocks::elements;
  if (type == CacheType::int8) return blocks * CacheBlocks::bytes_of_8_bits;
  if (type == CacheType::int4) return blocks * CacheBlocks::bytes_of_4_bits;
  return features * size_bytes(dtype_of(type));
}

}  // namespace

const std::vector<std::string>& cache_type_names() {
  static const std::vector<std::string> names = {"f32", "f16", "bf16", "int8", "int4", "int8-int4"};
  return names;
}

CacheType cache_type_named(const std::string& name) {
  const auto at = std::ranges::find(cache_type_names(), name);
  if (at == cache_type_names().end())
    throw ExportError("caches cannot be " + name +
                      "; they can be f32, f16, bf16, int8, int4 or int8-int4");
  return static_cast<CacheType>(at - cache_type_names().begin());
}

CacheType type_of_keys(CacheType type) {
  return type == CacheType::int8_int4 ? CacheType::int8 : type;
}
CacheType type_of_values(CacheType type) {
  return type == CacheType::int8_int4 ? CacheType::int4 : type;
}

int64_t bytes_of_token(CacheType type, int64_t features) {
  return bytes_of_row(type_of_keys(type), features) + bytes_of_row(type_of_values(type), features);
}

Cache::Cache(int64_t batch, int64_t heads, int64_t capacity, int64_t features, CacheType type)
    : turns_values_(type_of_values(type) == CacheType::int4) {
  const auto rows_of = [&](CacheType of) {
    const DType dtype = dtype_of(of);
    return lazy_zeros({batch, heads, capacity, bytes_of_row(of, features) / size_bytes(dtype)},
                      dtype);
  };
  key = rows_of(type_of_keys(type)), value = rows_of(type_of_values(type));
  if (key.dtype() == DType::u8) hadamard = hadamard_matrix(features);
  set_names();
}

void Cache::write(const Tensor& keys, const Tensor& values, const Tensor& start,
                  const Tensor& batch) {
  key.copy_(cache_write(key, keys, start, batch));
  value.copy_(cache_write(value, values, start, batch));
}

Tensor Cache::turned_values(const Tensor& x) const { return turns_values_ ? turned(x) : x; }

Tensor Cache::turned(const Tensor& x) const {
  if (!hadamard.defined()) return x;
  const Dim rows = x.size(0) * x.size(1) * x.size(2);
  // a product of batches, which recipes leave as it is
  return bmm(x.reshape({1, rows, x.size(3)}), hadamard)
      .reshape({x.size(0), x.size(1), x.size(2), x.size(3)});
}

}  // namespace taper::llm
