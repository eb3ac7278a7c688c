// The functions of tile_registers.h in plain C++, from the definitions of their instructions: Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 2 (LDTILECFG, TILERELEASE,
// TILEZERO, TILELOADD, TILESTORED, TDPBSSD). What a processor would refuse (#GP, #UD) ends the
// test.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taper::quantized::tiles {

struct Registers {
  bool is_configured = false;
  int64_t products = 0;  ///< of two registers, so far
  Shapes shapes;
  uint8_t bytes[count][most_rows][most_row_bytes];

  int rows(int tile) const { return shapes.rows[tile]; }
  int row_bytes(int tile) const { return shapes.row_bytes[tile]; }
};
inline thread_local Registers registers;  // each thread has its own

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a processor would refuse this: %s\n", what);
  std::abort();
}
inline void require_used(int tile) {
  require(registers.is_configured, "the registers have no shapes");
  require(registers.rows(tile) > 0 && registers.row_bytes(tile) > 0, "a register without rows");
}

inline void set_shapes(const Shapes& shapes) {
  require(shapes.palette == 1 && shapes.start_row == 0, "the palette or the first row");
  for (const uint8_t byte : shapes.unused) require(byte == 0, "an unused byte is not zero");
  for (int i = 0; i < 2 * count; ++i) {
    const int rows = shapes.rows[i], bytes = shapes.row_bytes[i];
    require(rows <= most_rows && bytes <= most_row_bytes, "a register that is too large");
    require((rows == 0) == (bytes == 0), "rows without bytes, or bytes without rows");
    require(i < count || rows == 0, "more than eight registers");
  }
  registers.is_configured = true, registers.shapes = shapes;
  std::memset(registers.bytes, 0, sizeof registers.bytes);
}
inline void release() {
  registers.is_configured = false;
  std::memset(registers.bytes, 99, sizeof registers.bytes);  // nobody may count on them
}

template <int tile>
void set_zero() {
  require_used(tile);
  std::memset(registers.bytes[tile], 0, sizeof registers.bytes[tile]);
}
template <int tile>
void load(const void* from, index_t row_step) {
  require_used(tile);
  std::memset(registers.bytes[tile], 0, sizeof registers.bytes[tile]);
  for (int r = 0; r < registers.rows(tile); ++r)
    std::memcpy(registers.bytes[tile][r], static_cast<const char*>(from) + r * row_step,
                static_cast<size_t>(registers.row_bytes(tile)));
}
template <int tile>
void store(void* to, index_t row_step) {
  require_used(tile);
  for (int r = 0; r < registers.rows(tile); ++r)
    std::memcpy(static_cast<char*>(to) + r * row_step, registers.bytes[tile][r],
                static_cast<size_t>(registers.row_bytes(tile)));
}
template <int to, int a, int b>
void add_products() {
  for (const int tile : {to, a, b}) {
    require_used(tile);
    require(registers.row_bytes(tile) % 4 == 0, "rows that are not a multiple of four bytes");
  }
  require(to != a && to != b && a != b, "a register that is used twice");
  require(registers.rows(a) == registers.rows(to), "rows of the first matrix");
  require(registers.row_bytes(b) == registers.row_bytes(to), "columns of the second matrix");
  require(registers.row_bytes(a) == 4 * registers.rows(b), "columns times rows");
  ++registers.products;
  for (int m = 0; m < registers.rows(to); ++m)
    for (int k = 0; k < registers.row_bytes(a) / 4; ++k)
      for (int n = 0; n < registers.row_bytes(to) / 4; ++n) {
        uint32_t sum;
        std::memcpy(&sum, &registers.bytes[to][m][4 * n], sizeof sum);
        for (int i = 0; i < 4; ++i)
          sum += static_cast<uint32_t>(static_cast<int8_t>(registers.bytes[a][m][4 * k + i]) *
                                       static_cast<int8_t>(registers.bytes[b][k][4 * n + i]));
        std::memcpy(&registers.bytes[to][m][4 * n], &sum, sizeof sum);
      }
}

}  // namespace taper::quantized::tiles
