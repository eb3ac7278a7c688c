// How caches of attention hold rows of f32: as f16, as bf16, or in the blocks of CacheBlocks. The
// bytes of full blocks are those that ggml writes for finite numbers. A row depends on its own
// elements only. Loops have no branches, so that they vectorise.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "taper/kernels/portable/small_floats.h"
#include "taper/kernels/shapes/cached_attention.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

inline constexpr index_t cache_block = CacheBlocks::elements;

/// Blocks of a row.
constexpr index_t cache_blocks(index_t features) {
  return (features + cache_block - 1) / cache_block;
}
/// Where a row in f32 ends: reading writes whole blocks.
constexpr index_t padded_row(index_t features) { return cache_blocks(features) * cache_block; }

namespace internal {

/// The element of the largest magnitude. NaN: an element is NaN or infinite.
inline float largest_element(const float* x) {
  float most = 0;
  bool is_finite = true;
  for (index_t i = 0; i < cache_block; ++i) {
    is_finite &= std::fabs(x[i]) <= FLT_MAX;
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  }
  return is_finite ? most : std::numeric_limits<float>::quiet_NaN();
}

/// Stores the scale, and returns what elements are multiplied with. 0: all integers are 0.
inline float store_scale(float scale, uint8_t* to) {
  const Half stored = to_small<Half>(scale);
  std::memcpy(to, &stored, sizeof stored);
  return std::fabs(scale) > 1e-32f ? 1 / scale : 0;
}
inline float scale_of_block(const uint8_t* from) {
  Half scale;
  std::memcpy(&scale, from, sizeof scale);
  return to_float(scale);
}

/// To the nearest integer, halves away from zero.
inline int32_t nearest_integer(float x) {
  return static_cast<int32_t>(x + std::copysign(0.49999997f, x));
}

/// The last block of a row of 8 bits, if it has 1 to 16 elements. The unused bytes hold more
/// digits: of n elements, the first n bytes are the first digits, the next n bytes the second ones.
/// A digit counts 1/128 of the digit before it. Three digits make an integer of 22 bits, which f32
/// holds.
struct FineBlock {
  static constexpr index_t most_elements = cache_block / 2, most_digits = 3;
  static constexpr int32_t base = 128;

  static bool holds(index_t elements) { return elements > 0 && elements <= most_elements; }
  static index_t digits(index_t elements) {
    return cache_block / elements < most_digits ? cache_block / elements : most_digits;
  }
  /// How often the last digit's unit is in the first one's, which is the scale.
  static int32_t units(index_t digits) { return digits == 2 ? base : base * base; }

  /// x: `cache_block` numbers, with zeros behind the elements.
  static void write(const float* x, index_t elements, uint8_t* to) {
    // elements are divided by the stored scale: that is rounded up, so that none is above 127
    const float scale = std::fabs(largest_element(x)) / 127;
    Half stored = to_small<Half>(scale);
    if (to_float(stored) < scale) ++stored.bits;
    std::memcpy(to, &stored, sizeof stored);
    std::memset(to + 2, 0, cache_block);
    if (!(scale > 1e-32f)) return;
    const index_t count = digits(elements);
    const float factor = static_cast<float>(units(count));
    for (index_t i = 0; i < elements; ++i) {
      int32_t rest = nearest_integer(x[i] / to_float(stored) * factor);
      for (index_t d = count - 1; d > 0; --d) {  // the last digits are in [-64, 64)
        const int32_t digit = ((rest + base / 2) & (base - 1)) - base / 2;
        to[2 + d * elements + i] = static_cast<uint8_t>(digit);
        rest = (rest - digit) / base;
      }
      to[2 + i] = static_cast<uint8_t>(rest);
    }
  }
  static void read(const uint8_t* from, index_t elements, float* to) {
    const index_t count = digits(elements);
    const float scale = scale_of_block(from), factor = static_cast<float>(units(count));
    const auto* q = reinterpret_cast<const int8_t*>(from + 2);
    for (index_t i = 0; i < elements; ++i) {
      int32_t sum = q[i] * base + q[elements + i];
      if (count == most_digits) sum = sum * base + q[2 * elements + i];
      to[i] = scale * (static_cast<float>(sum) / factor);
    }
    for (index_t i = elements; i < cache_block; ++i) to[i] = 0;
  }
};

/// 8 bits an element. The last block of a row may be a FineBlock.
struct Blocks8 {
  static constexpr index_t bytes = CacheBlocks::bytes_of_8_bits;
  static void write(const float* x, index_t elements, uint8_t* to) {
    if (FineBlock::holds(elements)) return FineBlock::write(x, elements, to);
    const float factor = store_scale(std::fabs(largest_element(x)) / 127, to);
    for (index_t i = 0; i < cache_block; ++i)
      to[2 + i] = static_cast<uint8_t>(nearest_integer(factor == 0 ? 0 : x[i] * factor));
  }
  static void read(const uint8_t* from, float* to) {
    const float scale = scale_of_block(from);
    const auto* q = reinterpret_cast<const int8_t*>(from + 2);
    for (index_t i = 0; i < cache_block; ++i) to[i] = scale * static_cast<float>(q[i]);
  }
};

/// 4 bits an element: a byte holds element i in its lower half, and i + 16 in its upper half.
struct Blocks4 {
  static constexpr index_t bytes = CacheBlocks::bytes_of_4_bits, half = cache_block / 2;
  static void write(const float* x, index_t, uint8_t* to) {
    const float factor = store_scale(largest_element(x) / -8, to);
    const auto bits = [&](float value) {
      const auto q = static_cast<int32_t>((factor == 0 ? 0 : value * factor) + 8.5f);
      return q > 15 ? 15 : q;
    };
    for (index_t i = 0; i < half; ++i)
      to[2 + i] = static_cast<uint8_t>(bits(x[i]) | bits(x[i + half]) << 4);
  }
  static void read(const uint8_t* from, float* to) {
    const float scale = scale_of_block(from);
    const uint8_t* q = from + 2;
    for (index_t i = 0; i < half; ++i) to[i] = scale * static_cast<float>((q[i] & 15) - 8);
    for (index_t i = 0; i < half; ++i) to[i + half] = scale * static_cast<float>((q[i] >> 4) - 8);
  }
};

template <class Blocks>
void write_blocks(const float* from, index_t step, index_t features, uint8_t* to) {
  float x[cache_block];
  for (index_t at = 0; at < features; at += cache_block, to += Blocks::bytes) {
    for (index_t i = 0; i < cache_block; ++i) x[i] = at + i < features ? from[(at + i) * step] : 0;
    Blocks::write(x, features - at, to);
  }
}
template <class Blocks>
void read_blocks(const uint8_t* from, index_t blocks, float* to) {
  for (index_t b = 0; b < blocks; ++b) Blocks::read(from + b * Blocks::bytes, to + b * cache_block);
}

}  // namespace internal

/// Writes the elements from[0], from[step], … of a row. `width`: elements of the cache's last
/// dimension.
template <class E>
void write_row(const float* from, index_t step, index_t features, E* to, index_t) {
  for (index_t f = 0; f < features; ++f) to[f] = to_small<E>(from[f * step]);
}
inline void write_row(const float* from, index_t step, index_t features, uint8_t* to,
                      index_t width) {
  if (width == cache_blocks(features) * CacheBlocks::bytes_of_8_bits)
    internal::write_blocks<internal::Blocks8>(from, step, features, to);
  else
    internal::write_blocks<internal::Blocks4>(from, step, features, to);
}

/// Reads `count` rows, which lie one behind the other. They lie padded_row(features) apart in `to`.
/// Those of a cache in blocks are filled up with zeros.
template <class E>
void read_rows(const E* from, index_t count, index_t features, index_t, float* to) {
  for (index_t i = 0; i < count; ++i)
    for (index_t f = 0; f < features; ++f)
      to[i * padded_row(features) + f] = to_float(from[i * features + f]);
}
template <>
inline void read_rows(const uint8_t* from, index_t count, index_t features, index_t width,
                      float* to) {
  const index_t blocks = count * cache_blocks(features);
  if (width != cache_blocks(features) * CacheBlocks::bytes_of_8_bits)
    return internal::read_blocks<internal::Blocks4>(from, blocks, to);
  internal::read_blocks<internal::Blocks8>(from, blocks, to);
  const index_t rest = features % cache_block;
  if (!internal::FineBlock::holds(rest)) return;
  for (index_t last = cache_blocks(features) - 1; last < blocks; last += cache_blocks(features))
    internal::FineBlock::read(from + last * CacheBlocks::bytes_of_8_bits, rest,
                              to + last * cache_block);
}

}  // namespace taper::portable
