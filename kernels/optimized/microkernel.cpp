#include "taper/kernels/optimized/microkernel.h"

#include <cstring>
#include <utility>

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/microkernel.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

#define TAPER_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

// The accumulators and one row of b stay in registers, the elements of a come from memory as
// broadcasts.
constexpr int most_rows = registers == 32 ? 12 : 6, most_vectors = 2;

template <int rows, int vectors>
void tile(index_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
          const index_t* HWY_RESTRICT b_rows, float* HWY_RESTRICT c, index_t c_row, bool add_to_c) {
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);

  // Lines of c are asked for one after the other while the sums grow, so that they are near at the
  // end.
  index_t k = 0;
  for (int part = 0; part < rows; ++part) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) __builtin_prefetch(c + part * c_row + v * lanes, 1);
    for (const index_t stop = depth * (part + 1) / rows; k < stop; ++k, a += rows) {
      const float* b_row = b + b_rows[k];
      const float* b_ahead = b + b_rows[k + Microkernels::rows_ahead];
      Vec column[vectors];
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        column[v] = load(b_row + v * lanes);
        __builtin_prefetch(b_ahead + v * lanes);
      }
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Vec row = broadcast(a[r]);
        TAPER_UNROLL
        for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(row, column[v], sum[r][v]);
      }
    }
  }

  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) {
    float* to = c + r * c_row;
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      store(add_to_c ? add(load(to + v * lanes), sum[r][v]) : sum[r][v], to + v * lanes);
  }
}

// ---- packing
// ---------------------------------------------------------------------------------------------------------

typedef float Four __attribute__((vector_size(16)));

HWY_INLINE Four load_four(const float* from) {
  Four v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

HWY_INLINE void store_four(Four v, float* to) { std::memcpy(to, &v, sizeof v); }

// to[k][i] = from[i][k] for 4 × 4 elements
HWY_INLINE void transpose_4x4(const float* from, index_t across_stride, float* to, index_t to_row) {
  const Four a = load_four(from), b = load_four(from + across_stride),
             c = load_four(from + 2 * across_stride), d = load_four(from + 3 * across_stride);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_four(__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), to);
  store_four(__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), to + to_row);
  store_four(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), to + 2 * to_row);
  store_four(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), to + 3 * to_row);
}

void pack(const float* from, index_t across_stride, index_t depth_stride, index_t across,
          index_t depth, float* to, index_t to_row) {
  index_t done = 0;  // columns of `to` that are complete
  if (across_stride == 1) {
    done = across / 4 * 4;
    for (index_t k = 0; k < depth; ++k) {
      const float* source = from + k * depth_stride;
      float* target = to + k * to_row;
      index_t i = 0;
      for (; i + lanes <= across; i += lanes) store(load(source + i), target + i);
      for (; i < done; i += 4) std::memcpy(target + i, source + i, sizeof(Four));
    }
  } else if (depth_stride == 1) {
    done = across / 4 * 4;
    // Four lines of the source at a time: with strides of 4 KiB more would fall on the same few
    // places of the cache.
    const index_t whole = depth / 4 * 4;
    for (index_t i = 0; i < done; i += 4) {
      const float* source = from + i * across_stride;
      for (index_t k = 0; k < whole; k += 4)
        transpose_4x4(source + k, across_stride, to + k * to_row + i, to_row);
    }
    for (index_t k = whole; k < depth; ++k)
      for (index_t i = 0; i < done; ++i) to[k * to_row + i] = from[i * across_stride + k];
  }
  for (index_t k = 0; done < across && k < depth; ++k)
    for (index_t i = done; i < across; ++i)
      to[k * to_row + i] = from[i * across_stride + k * depth_stride];
}

// ---- epilogue and sum
// ------------------------------------------------------------------------------------------------

void finish(index_t rows, index_t columns, float* c, index_t c_row, const Epilogue& epilogue) {
  const bool has_addend = epilogue.addend != nullptr,
             clamps = epilogue.activation == Activation::relu;
  const Vec alpha = broadcast(epilogue.alpha), beta = broadcast(epilogue.beta);
  for (index_t r = 0; r < rows; ++r) {
    float* y = c + r * c_row;
    const float* addend = has_addend ? epilogue.addend + r * epilogue.addend_row : nullptr;
    index_t j = 0;
    if (!has_addend || epilogue.addend_column <= 1) {
      const index_t step = epilogue.addend_column;
      for (; j + lanes <= columns; j += lanes) {
        Vec v = multiply(load(y + j), alpha);
        if (has_addend)
          v = add(v, multiply(step == 1 ? load(addend + j) : broadcast(*addend), beta));
        store(clamps ? relu(v) : v, y + j);
      }
    }
    for (; j < columns; ++j) {
      float v = y[j] * epilogue.alpha;
      if (has_addend) v += addend[j * epilogue.addend_column] * epilogue.beta;
      y[j] = clamps && v < 0 ? 0 : v;
    }
  }
}

float sum(const float* from, index_t count) {
  Vec partial[4] = {broadcast(0), broadcast(0), broadcast(0), broadcast(0)};
  index_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) TAPER_UNROLL
  for (int v = 0; v < 4; ++v) partial[v] = add(partial[v], load(from + i + v * lanes));
  float lane[lanes], total = 0;
  store(add(add(partial[0], partial[1]), add(partial[2], partial[3])), lane);
  for (int l = 0; l < lanes; ++l) total += lane[l];
  for (; i < count; ++i) total += from[i];
  return total;
}

// ---- the table
// -------------------------------------------------------------------------------------------------------

template <size_t... r>
constexpr Microkernels make_table(std::index_sequence<r...>) {
  return {lanes, most_rows, most_vectors, {{tile<r + 1, 1>, tile<r + 1, 2>}...}, pack, finish, sum};
}
constexpr Microkernels table = make_table(std::make_index_sequence<most_rows>());

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {

// A compiler whose baseline is above a level leaves the level out: its place is taken by the
// baseline.
constexpr Microkernels microkernels_portable = HWY_STATIC_DISPATCH(table);
#if TAPER_X86_LEVELS
#if HWY_TARGETS & HWY_AVX2
constexpr Microkernels microkernels_avx2 = N_AVX2::table;
#else
constexpr Microkernels microkernels_avx2 = HWY_STATIC_DISPATCH(table);
#endif
constexpr Microkernels microkernels_avx512 = N_AVX3::table;
#endif

}  // namespace taper::optimized
#endif
