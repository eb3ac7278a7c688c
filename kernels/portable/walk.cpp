#include "taper/kernels/portable/walk.h"

#include <cstring>
#include <limits>

#include "taper/kernels/float8.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/small_floats.h"

namespace taper::portable {
namespace {

void load_half(const void* from, index_t stride, index_t n, void* to) {
  const Half* x = static_cast<const Half*>(from);
  float* y = static_cast<float*>(to);
  if (stride == 1) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
  } else {
    for (index_t i = 0; i < n; ++i) y[i] = to_float(x[i * stride]);
  }
}
template <class To>
void store_small(const void* from, index_t n, void* to) {
  const float* x = static_cast<const float*>(from);
  To* y = static_cast<To*>(to);
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = to_small<To>(x[i]);
}

template <class From, class To>
void load(const void* from, index_t stride, index_t n, void* to) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  if (stride == 1) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
  } else {
    for (index_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i * stride]);
  }
}

// The conversions of eight bits are long. So each has one loop: other strides and f64 go through a
// buffer.
constexpr index_t buffered = 64;
constexpr index_t at_most_buffered(index_t n) { return n < buffered ? n : buffered; }

template <class From>
void load_float8(const void* from, index_t stride, index_t n, void* to) {
  const From* x = static_cast<const From*>(from);
  float* y = static_cast<float*>(to);
  From part[buffered];
  for (index_t i = 0; i < n; i += buffered) {
    const index_t here = at_most_buffered(n - i);
    for (index_t j = 0; j < here; ++j) part[j] = x[(i + j) * stride];
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t j = 0; j < here; ++j) y[i + j] = static_cast<float>(part[j]);
  }
}
void load_double_through(Load load_float, index_t bytes, const void* from, index_t stride,
                         index_t n, void* to) {
  const char* x = static_cast<const char*>(from);
  double* y = static_cast<double*>(to);
  float part[buffered];
  for (index_t i = 0; i < n; i += buffered) {
    const index_t here = at_most_buffered(n - i);
    load_float(x + i * stride * bytes, stride, here, part);
    for (index_t j = 0; j < here; ++j) y[i + j] = static_cast<double>(part[j]);
  }
}
void store_double_through(Store store_float, index_t bytes, const void* from, index_t n, void* to) {
  const double* x = static_cast<const double*>(from);
  char* y = static_cast<char*>(to);
  float part[buffered];
  for (index_t i = 0; i < n; i += buffered) {
    const index_t here = at_most_buffered(n - i);
    for (index_t j = 0; j < here; ++j) part[j] = static_cast<float>(x[i + j]);
    store_float(part, here, y + i * bytes);
  }
}
template <class From, Load load_float>
void load_double(const void* from, index_t stride, index_t n, void* to) {
  load_double_through(load_float, sizeof(From), from, stride, n, to);
}
template <class To, Store store_float>
void store_double(const void* from, index_t n, void* to) {
  store_double_through(store_float, sizeof(To), from, n, to);
}

// Loads elements as bytes, whatever they mean.
template <int bytes>
void load_bytes(const void* from, index_t stride, index_t n, void* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * bytes);
    return;
  }
  load<Bytes<bytes>, Bytes<bytes>>(from, stride, n, to);
}

// Rounds towards zero. NaN and numbers that i64 and u64 do not hold become 2^63, or 0 above 2^64.
uint64_t to_unsigned(double x) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  constexpr uint64_t half = uint64_t{1} << 63;
  if (x >= limit) return x < 2 * limit ? static_cast<uint64_t>(x - limit) + half : 0;
  return x >= -limit ? static_cast<uint64_t>(static_cast<int64_t>(x)) : half;
}

template <class To>
void store_real(const void* from, index_t n, void* to) {
  const double* x = static_cast<const double*>(from);
  To* y = static_cast<To*>(to);
  for (index_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, bool>) {
      y[i] = x[i] != 0;
    } else if constexpr (std::is_same_v<To, uint64_t>) {
      y[i] = to_unsigned(x[i]);
    } else if constexpr (std::is_integral_v<To>) {
      constexpr double limit = 9223372036854775808.0;  // 2^63
      const bool holds = x[i] >= -limit && x[i] < limit;
      y[i] =
          static_cast<To>(holds ? static_cast<int64_t>(x[i]) : std::numeric_limits<int64_t>::min());
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

template <class To>
void store_integer(const void* from, index_t n, void* to) {
  const int64_t* x = static_cast<const int64_t*>(from);
  To* y = static_cast<To*>(to);
  for (index_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, bool>)
      y[i] = x[i] != 0;
    else if constexpr (std::is_arithmetic_v<To>)
      y[i] = static_cast<To>(x[i]);
    else
      y[i] = To(static_cast<float>(x[i]));
  }
}

template <class To>
void store_float8(const void* from, index_t n, void* to) {
  const float* x = static_cast<const float*>(from);
  To* y = static_cast<To*>(to);
  for (index_t i = 0; i < n; ++i) y[i] = To(x[i]);
}

template <int bytes>
void store_bytes(const void* from, index_t n, void* to) {
  std::memcpy(to, from, static_cast<size_t>(n) * bytes);
}

}  // namespace

Load loader(DType from, DType to) {
  if (from != to) {
    switch (from) {
      case DType::boolean:
      case DType::u8:
        return load<uint8_t, int64_t>;  // a bool is stored as 0 or 1
      case DType::i8:
        return load<int8_t, int64_t>;
      case DType::i16:
        return load<int16_t, int64_t>;
      case DType::i32:
        return load<int32_t, int64_t>;
      case DType::f16:
        return to == DType::f32 ? load_half : load_double<Half, load_half>;
      case DType::bf16:
        return to == DType::f32 ? load<BFloat16, float>
                                : load_double<BFloat16, load<BFloat16, float>>;
      case DType::f32:
        return load<float, double>;
      case DType::f8_e4m3fn:
        return to == DType::f32 ? load_float8<Float8E4M3>
                                : load_double<Float8E4M3, load_float8<Float8E4M3>>;
      case DType::f8_e5m2:
        return to == DType::f32 ? load_float8<Float8E5M2>
                                : load_double<Float8E5M2, load_float8<Float8E5M2>>;
      case DType::u16:
        return load<uint16_t, int64_t>;
      case DType::u32:
        return load<uint32_t, int64_t>;
      case DType::u64:
        if (to == DType::i64) break;  // the same bytes
        return to == DType::f32 ? load<uint64_t, float> : load<uint64_t, double>;
      default:
        break;
    }
  }
  switch (size_bytes(from)) {
    case 1:
      return load_bytes<1>;
    case 2:
      return load_bytes<2>;
    case 4:
      return load_bytes<4>;
    default:
      return load_bytes<8>;
  }
}

Store storer(DType from, DType to) {
  if (from == DType::i64 && to != from) {
    switch (to) {
      case DType::boolean:
        return store_integer<bool>;
      case DType::u8:
        return store_integer<uint8_t>;
      case DType::i8:
        return store_integer<int8_t>;
      case DType::i16:
        return store_integer<int16_t>;
      case DType::i32:
        return store_integer<int32_t>;
      case DType::f16:
        return store_integer<Half>;
      case DType::bf16:
        return store_integer<BFloat16>;
      case DType::f32:
        return store_integer<float>;
      case DType::f8_e4m3fn:
        return store_integer<Float8E4M3>;
      case DType::f8_e5m2:
        return store_integer<Float8E5M2>;
      case DType::u16:
        return store_integer<uint16_t>;
      case DType::u32:
        return store_integer<uint32_t>;
      case DType::u64:
        return store_bytes<8>;
      default:
        return store_integer<double>;
    }
  }
  if (from == DType::f32 && to == DType::f16) return store_small<Half>;
  if (from == DType::f32 && to == DType::bf16) return store_small<BFloat16>;
  if (from == DType::f32 && to == DType::f8_e4m3fn) return store_float8<Float8E4M3>;
  if (from == DType::f32 && to == DType::f8_e5m2) return store_float8<Float8E5M2>;
  if (from == DType::f64 && to != from) {
    switch (to) {
      case DType::boolean:
        return store_real<bool>;
      case DType::u8:
        return store_real<uint8_t>;
      case DType::i8:
        return store_real<int8_t>;
      case DType::i16:
        return store_real<int16_t>;
      case DType::i32:
        return store_real<int32_t>;
      case DType::i64:
        return store_real<int64_t>;
      case DType::f16:
        return store_double<Half, store_small<Half>>;
      case DType::bf16:
        return store_double<BFloat16, store_small<BFloat16>>;
      case DType::f8_e4m3fn:
        return store_double<Float8E4M3, store_float8<Float8E4M3>>;
      case DType::f8_e5m2:
        return store_double<Float8E5M2, store_float8<Float8E5M2>>;
      case DType::u16:
        return store_real<uint16_t>;
      case DType::u32:
        return store_real<uint32_t>;
      case DType::u64:
        return store_real<uint64_t>;
      default:
        return store_real<float>;
    }
  }
  switch (size_bytes(from)) {
    case 1:
      return store_bytes<1>;
    case 2:
      return store_bytes<2>;
    case 4:
      return store_bytes<4>;
    default:
      return store_bytes<8>;
  }
}

void Walk::add(index_t size, index_t stride) {
  if (size == 1) return;
  const int last = rank - 1;
  if (sizes[last] == 1) {
    sizes[last] = size, strides[last] = stride;
  } else if (strides[last] == size * stride) {
    sizes[last] *= size, strides[last] = stride;
  } else {
    sizes[rank] = size, strides[rank] = stride, ++rank;
  }
}

index_t Walk::offset_of(index_t element) const {
  index_t offset = 0;
  for (int d = rank - 1; d > 0; --d) offset += element % sizes[d] * strides[d], element /= sizes[d];
  return offset + element * strides[0];
}

Cursor::Cursor(const Walk& walk, index_t element) : walk_(&walk), offset_(0) {
  for (int d = walk.rank - 1; d >= 0; --d) {
    position_[d] = d > 0 ? element % walk.sizes[d] : element;
    if (d > 0) element /= walk.sizes[d];
    offset_ += position_[d] * walk.strides[d];
  }
}

Walk Walk::of(const Shape& shape) {
  Walk walk;
  for (int d = 0; d < shape.rank; ++d) walk.add(shape.sizes[d], shape.strides[d]);
  return walk;
}

Walk Walk::broadcast(const Shape& operand, const Shape& space) {
  Walk walk;
  walk.repeat(operand, space);
  return walk;
}
void Walk::repeat(const Shape& operand, const Shape& space) {
  rank = 1, sizes[0] = strides[0] = 1;
  const int missing = space.rank - operand.rank;
  for (int d = 0; d < space.rank; ++d) {
    const bool repeats = d < missing || operand.sizes[d - missing] == 1;
    add(space.sizes[d], repeats ? 0 : operand.strides[d - missing]);
  }
}

const void* read_block(const Source& source, index_t first, index_t n, void* buffer) {
  if (n == 0) return buffer;
  const Walk& walk = *source.walk;
  if (walk.is_linear()) {
    if (!source.converts) return source.at(first);
    source.load(source.at(first), 1, n, buffer);
    return buffer;
  }
  const int inner = walk.rank - 1;
  const index_t inner_stride = walk.strides[inner];
  Cursor at(walk, first);
  if (!source.converts && inner_stride == 1 && at.left(inner) >= n) return source.at(at.offset());

  // Converts run by run. Each run ends where the innermost dimension ends.
  char* to = static_cast<char*>(buffer);
  while (true) {
    const index_t run = at.left(inner) < n ? at.left(inner) : n;
    source.load(source.at(at.offset()), inner_stride, run, to);
    n -= run;
    if (n == 0) return buffer;
    to += run * source.buffer_bytes;
    at.advance(inner, run);
  }
}

}  // namespace taper::portable
