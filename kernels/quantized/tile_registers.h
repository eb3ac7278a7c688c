// The tile registers of AMX: eight matrices of up to 16 rows of 64 bytes. Their instructions: Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 2. Each thread has registers of
// its own. Few machines have any, so tests compile the same kernels with an emulation of these
// functions: TAPER_TILE_REGISTERS is then its header.
#pragma once
#include <cstdint>

#include "taper/runtime/core/span.h"

namespace taper::quantized::tiles {

inline constexpr int count = 8, most_rows = 16, most_row_bytes = 64;

/// How large each register is. A register without rows is not used.
struct alignas(64) Shapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t unused[14] = {};
  uint16_t row_bytes[2 * count] = {};
  uint8_t rows[2 * count] = {};

  constexpr void set(int tile, index_t tile_rows, index_t bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows), row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(Shapes) == 64);

}  // namespace taper::quantized::tiles

#ifdef TAPER_TILE_REGISTERS
#include TAPER_TILE_REGISTERS
#else
namespace taper::quantized::tiles {

// GCC 12 may drop stores that only an intrinsic for tiles reads: it does not know of the memory.

/// Sets the shapes of all registers, and their elements to zero.
inline void set_shapes(const Shapes& shapes) {
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}
/// Gives the registers back: threads that have none switch faster.
inline void release() { __asm__ volatile("tilerelease"); }

template <int tile>
inline void set_zero() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
}
/// Rows lie `row_step` bytes apart.
template <int tile>
inline void load(const void* from, index_t row_step) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(from), "r"(row_step), "i"(tile)
                   : "memory");
}
template <int tile>
inline void store(void* to, index_t row_step) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(to), "r"(row_step), "i"(tile)
                   : "memory");
}
/// Adds products of signed bytes to i32: to[m][n] += sum over k and i < 4 of
/// a[m][4 k + i] b[k][4 n + i], modulo 2^32.
template <int to, int a, int b>
inline void add_products() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(to), "i"(a), "i"(b));
}

}  // namespace taper::quantized::tiles
#endif
