// _int_mm, for operands that are dense along k. Others are first copied into this layout. 8-bit
// integers are widened to 16 bits, multiplied, and added in pairs to 32-bit sums. Integers can be
// added in any order, so the bits are those of the portable kernel.
#include <utility>

#include "taper/kernels/optimized/levels.h"

#if TAPER_X86_LEVELS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/int_mm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#define TAPER_UNROLL _Pragma("GCC unroll 4")

#ifndef TAPER_INT_MM_TILES
#define TAPER_INT_MM_TILES
namespace taper::optimized {

/// c(r, j) = the sum over k of a(r, k) b(j, k). All lines are dense.
template <class A>
using DotTile = void (*)(index_t depth, const A* a, index_t a_line, const int8_t* b, index_t b_line,
                         int32_t* c, index_t c_line);

inline constexpr int most_dot_rows = 4, most_dot_columns = 4;

/// to(i, k) = from(k, i) for bytes: `lines` lines of `depth` bytes. Lines of `from` lie `step`
/// apart.
using TurnBytes = void (*)(const uint8_t* from, index_t step, index_t lines, index_t depth,
                           uint8_t* to);

template <class A>
struct DotTiles {
  int columns;  ///< a tile has 1 … most_dot_rows rows and 1 … columns columns
  DotTile<A> tile[most_dot_rows][most_dot_columns];  ///< [rows - 1][columns - 1]
  TurnBytes turn;
};

}  // namespace taper::optimized
#endif

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::ScalableTag<int16_t>;
using Sums = hn::Repartition<int32_t, Wide>;
constexpr index_t step = hn::MaxLanes(Wide());

template <class T>
HWY_INLINE hn::Vec<Wide> widened(const T* from) {
  return hn::PromoteTo(Wide(), hn::LoadU(hn::Rebind<T, Wide>(), from));
}
/// The first `count` elements, then zeros. Reads a whole vector.
template <class T>
HWY_INLINE hn::Vec<Wide> widened_first(const T* from, index_t count) {
  const hn::Rebind<T, Wide> d;
  const auto first = hn::FirstN(d, static_cast<size_t>(count));
  return hn::PromoteTo(Wide(), hn::IfThenElseZero(first, hn::LoadU(d, from)));
}

template <int rows, int columns, class A>
void tile(index_t depth, const A* HWY_RESTRICT a, index_t a_line, const int8_t* HWY_RESTRICT b,
          index_t b_line, int32_t* HWY_RESTRICT c, index_t c_line) {
  hn::Vec<Sums> sum[rows][columns], none = hn::Zero(Sums());
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int j = 0; j < columns; ++j) sum[r][j] = hn::Zero(Sums());
  const auto add = [&](const auto& load, index_t k) HWY_ATTR {
    hn::Vec<Wide> column[columns];
    TAPER_UNROLL
    for (int j = 0; j < columns; ++j) column[j] = load(b + j * b_line + k);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const hn::Vec<Wide> row = load(a + r * a_line + k);
      TAPER_UNROLL
      for (int j = 0; j < columns; ++j)
        sum[r][j] = hn::ReorderWidenMulAccumulate(Sums(), row, column[j], sum[r][j], none);
    }
  };
  index_t k = 0;
  for (; k + step <= depth; k += step)
    add([](const auto* from) HWY_ATTR { return widened(from); }, k);
  if (k < depth) add([=](const auto* from) HWY_ATTR { return widened_first(from, depth - k); }, k);
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < columns; ++j)
      c[r * c_line + j] = hn::GetLane(hn::SumOfLanes(Sums(), sum[r][j]));
}

// Interleaving the lines i and i + 8 of sixteen lines, four times, exchanges lines and columns.
void turn(const uint8_t* from, index_t step, index_t lines, index_t depth, uint8_t* to) {
  constexpr index_t side = 16;
  const hn::FixedTag<uint8_t, 16> d;
  const index_t whole_lines = lines / side * side, whole_depth = depth / side * side;
  for (index_t k = 0; k < whole_depth; k += side)
    for (index_t i = 0; i < whole_lines; i += side) {
      hn::Vec<decltype(d)> line[2][side];
      for (index_t l = 0; l < side; ++l) line[0][l] = hn::LoadU(d, from + (k + l) * step + i);
      TAPER_UNROLL
      for (int pass = 0; pass < 4; ++pass) TAPER_UNROLL
      for (int l = 0; l < 8; ++l) {
        const auto &low = line[pass % 2][l], &high = line[pass % 2][l + 8];
        line[1 - pass % 2][2 * l] = hn::InterleaveLower(d, low, high);
        line[1 - pass % 2][2 * l + 1] = hn::InterleaveUpper(d, low, high);
      }
      for (index_t l = 0; l < side; ++l) hn::StoreU(line[0][l], d, to + (i + l) * depth + k);
    }
  for (index_t i = 0; i < lines; ++i)
    for (index_t k = i < whole_lines ? whole_depth : 0; k < depth; ++k)
      to[i * depth + k] = from[k * step + i];
}

// So many sums that registers remain for the lines that they are computed from.
constexpr int tile_columns = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr int third = tile_columns < 3 ? tile_columns : 3;

template <class A, size_t... r>
constexpr DotTiles<A> make_tiles(std::index_sequence<r...>) {
  return {tile_columns,
          {{tile<r + 1, 1, A>, tile<r + 1, 2, A>, tile<r + 1, third, A>,
            tile<r + 1, tile_columns, A>}...},
          turn};
}
template <class A>
constexpr DotTiles<A> tiles = make_tiles<A>(std::make_index_sequence<most_dot_rows>());

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper::optimized {
namespace {

using Out = View<int32_t>;
using Mat2 = AnyView<const int8_t>;

template <CpuLevel level, class A>
constexpr const DotTiles<A>& dot_tiles() {
#if HWY_TARGETS & HWY_AVX2
  if constexpr (level == CpuLevel::avx2) return N_AVX2::tiles<A>;
#endif  // otherwise the compiler's baseline is above this level
  return N_AVX3::tiles<A>;
}

/// The scratch for lines of 8-bit integers that are dense along k. Kernels read up to 64 bytes
/// behind them.
constexpr index_t bytes_of(index_t lines, index_t depth) {
  return round_up(lines * depth + 64, scratch_alignment);
}

/// to[i * depth + k] = from[i * line + k * step]
template <class T>
void make_dense(const Threads* threads, TurnBytes turn, const T* from, index_t line, index_t step,
                index_t lines, index_t depth, T* to) {
  constexpr index_t block = 64;
  parallel_for(threads, ceil_div(lines, block), [&](index_t task) {
    const index_t first = task * block, count = smaller(block, lines - first);
    if (line == 1)
      turn(reinterpret_cast<const uint8_t*>(from + first), step, count, depth,
           reinterpret_cast<uint8_t*>(to + first * depth));
    else
      for (index_t i = first; i < first + count; ++i)
        for (index_t k = 0; k < depth; ++k) to[i * depth + k] = from[i * line + k * step];
  });
}

struct Plan {
  bool turns_self, turns_mat2;
};

template <CpuLevel, class A>
Error prepare(Context& context, Plan& plan, AnyView<const A> self, Mat2 mat2, Out) {
  const index_t depth = self.size(1);
  plan.turns_self = depth > 1 && self.stride(1) != 1;
  plan.turns_mat2 = depth > 1 && mat2.stride(0) != 1;
  context.need_scratch(static_cast<size_t>((plan.turns_self ? bytes_of(self.size(0), depth) : 0) +
                                           (plan.turns_mat2 ? bytes_of(mat2.size(1), depth) : 0)));
  return Error::ok;
}

template <CpuLevel level, class A>
Error run(Context& context, const Plan& plan, AnyView<const A> self, Mat2 mat2, Out out) {
  const index_t m = out.size(0), n = out.size(1), depth = self.size(1);
  const A* a = self.data();
  const int8_t* b = mat2.data();
  index_t a_line = self.stride(0), b_line = mat2.stride(1);
  const DotTiles<A>& tiles = dot_tiles<level, A>();
  std::byte* scratch = static_cast<std::byte*>(context.scratch);
  if (plan.turns_self) {
    A* copy = reinterpret_cast<A*>(scratch);
    make_dense(context.threads, tiles.turn, a, a_line, self.stride(1), m, depth, copy);
    a = copy, a_line = depth, scratch += bytes_of(m, depth);
  }
  if (plan.turns_mat2) {
    int8_t* copy = reinterpret_cast<int8_t*>(scratch);
    make_dense(context.threads, tiles.turn, b, b_line, mat2.stride(0), n, depth, copy);
    b = copy, b_line = depth;
  }
  // The columns of a tile stay in the first-level cache while all rows of the block go by. The rows
  // stay in the second-level cache.
  constexpr index_t block = 64;
  const index_t across = ceil_div(n, block);
  parallel_for(context.threads, ceil_div(m, block) * across, [&](index_t task) {
    const index_t row = task / across * block, column = task % across * block;
    for (index_t j = column; j < smaller(n, column + block); j += tiles.columns)
      for (index_t i = row; i < smaller(m, row + block); i += most_dot_rows) {
        const index_t rows = smaller(most_dot_rows, m - i), columns = smaller(tiles.columns, n - j);
        tiles.tile[rows - 1][columns - 1](depth, a + i * a_line, a_line, b + j * b_line, b_line,
                                          out.data() + i * n + j, n);
      }
  });
  return Error::ok;
}

}  // namespace

#define TAPER_INT_MM(variant, A, level)                                                \
  TAPER_RECORD(_int_mm, _int_mm_##variant##_##level, features_of(CpuLevel::level), {}, \
               prepare<CpuLevel::level, A>, run<CpuLevel::level, A>)
TAPER_INT_MM(i8, int8_t, avx2)
TAPER_INT_MM(u8, uint8_t, avx2)
TAPER_INT_MM(i8, int8_t, avx512)
TAPER_INT_MM(u8, uint8_t, avx512)

}  // namespace taper::optimized
#endif
#endif
