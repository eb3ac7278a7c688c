// Shape rules of Fourier transforms. A transform keeps sizes, but of a real line of n elements only
// n / 2 + 1 complex numbers are kept: the others are their conjugates.
#pragma once
#include "taper/kernels/half_precision.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// Whether `dims` names different dimensions of a tensor of `rank` dimensions. Brings them into
/// [0, rank).
template <class D>
bool are_transform_dims(Facts<D>& facts, const int64_t* dims, index_t count, int rank,
                        int64_t (&out)[max_rank]) {
  uint32_t named = 0;
  if (!facts.require(count <= rank, TAPER_TEXT("{} dims are more than the {} dimensions of self"),
                     count, rank))
    return false;
  for (index_t i = 0; i < count; ++i) {
    out[i] = dims[i];
    if (!normalize_dim(facts, out[i], rank)) return false;
    const uint32_t bit = uint32_t{1} << out[i];
    if (!facts.require((named & bit) == 0, TAPER_TEXT("dim {} is named twice: dims must be unique"),
                       out[i]))
      return false;
    named |= bit;
  }
  return true;
}
/// The same, and the last of them; there must be one.
template <class D>
bool has_last_dim(Facts<D>& facts, Span<const int64_t> dims, int rank, int64_t& last) {
  int64_t all[max_rank];
  if (!facts.require(dims.size() > 0, TAPER_TEXT("must transform at least one dimension")) ||
      !are_transform_dims(facts, dims.data(), dims.size(), rank, all))
    return false;
  last = all[dims.size() - 1];
  return true;
}
template <class D>
bool is_normalization(Facts<D>& facts, int64_t mode) {
  return facts.require(mode >= 0 && mode <= 2,
                       TAPER_TEXT("normalization must be 0 (none), 1 (by the root of the number "
                                  "of elements) or 2 (by that number), not {}"),
                       mode);
}

}  // namespace internal

template <>
struct Rule<ops::_fft_c2c> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> dim,
                    int64_t normalization, bool, TensorType<D>& out) {
    out.like(self);
    int64_t dims[max_rank] = {}, all[max_rank];
    if (!facts.require(is_complex(self.dtype), TAPER_TEXT("self must be c64")) ||
        !internal::is_normalization(facts, normalization) ||
        !facts.require(dim.size() <= max_rank, TAPER_TEXT("{} dims are more than {}"), dim.size(),
                       max_rank))
      return false;
    for (index_t i = 0; i < dim.size(); ++i)
      if (!facts.require(is_number(dim[i], dims[i]), TAPER_TEXT("dims must be numbers")))
        return false;
    return internal::are_transform_dims(facts, dims, dim.size(), self.rank, all);
  }
};

/// Real numbers to the whole spectrum, or to the elements 0 … n / 2 of the last of `dim`.
template <>
struct Rule<ops::_fft_r2c> {
  static constexpr HalfPrecision halves = HalfPrecision::refuse;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> dim,
                    int64_t normalization, bool onesided, TensorType<D>& out) {
    out.like(self, DType::c64);
    int64_t last = 0;
    if (!facts.require(self.dtype == DType::f32,
                       TAPER_TEXT("self must be f32, because the result is c64: cast it to f32")) ||
        !internal::is_normalization(facts, normalization) ||
        !internal::has_last_dim(facts, dim, self.rank, last) ||
        !facts.at_least(self[static_cast<int>(last)], D(1),
                        TAPER_TEXT("cannot transform a dimension of size {}")))
      return false;
    D& size = out[static_cast<int>(last)];
    if (onesided) size = size / D(2) + D(1);
    return true;
  }
};

/// The elements 0 … n / 2 of a spectrum to n = `last_dim_size` real numbers.
template <>
struct Rule<ops::_fft_c2r> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> dim,
                    int64_t normalization, D last_dim_size, TensorType<D>& out) {
    out.like(self, DType::f32);
    int64_t last = 0;
    if (!facts.require(is_complex(self.dtype), TAPER_TEXT("self must be c64")) ||
        !internal::is_normalization(facts, normalization) ||
        !internal::has_last_dim(facts, dim, self.rank, last) ||
        !facts.at_least(last_dim_size, D(1), TAPER_TEXT("last_dim_size {} must be at least 1")) ||
        !facts.equal(self[static_cast<int>(last)], last_dim_size / D(2) + D(1),
                     TAPER_TEXT("self has {} elements along the last dim, last_dim_size asks for "
                                "{}")))
      return false;
    out[static_cast<int>(last)] = last_dim_size;
    return internal::has_countable_bytes(facts, out);
  }
};

}  // namespace taper
