// Blocks of sixteen rows together (docs/format.md, "Panels of blocks"). A vector of sixteen lanes
// holds four neighbours of each row: the operand of an instruction that sums products of bytes.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized {

/// A panel has the values of all units, and then the scales of all blocks. It begins at a multiple
/// of 64 bytes.
struct PanelFormat {
  int units;        ///< of a block
  int value_bytes;  ///< of a unit: a multiple of 64
  int scale_bytes;  ///< of a block: the f16 scales of the sixteen rows come first
  int small;        ///< where in them the integer scales of units begin; 0: there are none
};
constexpr PanelFormat panel_format(Layout panels) {
  switch (panels) {
    case Layout::q4_0_panels:
      return {1, 256, 32, 0};
    case Layout::q4_1_panels:
      return {1, 256, 64, 0};
    case Layout::q8_0_panels:
      return {1, 512, 32, 0};
    case Layout::q4_k_panels:
      return {8, 256, 320, 64};
    default:  // q6_k_panels
      return {8, 384, 288, 32};
  }
}

/// Whether there are panels of these blocks.
constexpr bool has_panels(Layout blocks) {
  constexpr LayoutSet set = one(Layout::q4_0) | one(Layout::q4_1) | one(Layout::q8_0) |
                            one(Layout::q4_k) | one(Layout::q6_k);
  return (set & one(blocks)) != 0;
}
/// Their layout. For blocks that have panels.
Layout panels_of(Layout blocks);
/// The bytes of one panel.
constexpr index_t panel_bytes(Layout panels, index_t depth) {
  const PanelFormat f = panel_format(panels);
  return (depth / block_of(panels).elements * (f.units * f.value_bytes + f.scale_bytes) + 63) / 64 *
         64;
}
/// Packs rows 16 panel to 16 panel + 15 of a matrix in blocks. Zeros take the place of rows behind
/// the last one.
void pack_panel(const BlockMatrix& m, index_t panel, std::byte* to);

/// Where the values of the units of a panel begin, and the scales of its blocks.
inline const std::byte* values_of(const BlockMatrix& m, index_t panel) {
  return m.data + panel * panel_bytes(m.layout, m.depth);
}
inline const std::byte* scales_of(const BlockMatrix& m, index_t panel) {
  return values_of(m, panel) + m.units() * panel_format(m.layout).value_bytes;
}

/// A Packing's `bytes` and `pack`. A tensor of rank 3 is packed only if each of its matrices fills
/// whole panels.
size_t bytes_of_panels(const TensorRef& source);
void pack_panels(const TensorRef& source, void* packed);

namespace internal {
void decode_panel(const BlockMatrix& m, index_t row, index_t unit, Unit& to);
}  // namespace internal
}  // namespace taper::quantized
