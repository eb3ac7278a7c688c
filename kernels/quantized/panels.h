// Blocks of sixteen rows together (docs/format.md, "Panels of blocks"). A vector of sixteen lanes
// holds four neighbours of each row: the operand of an instruction that sums products of bytes.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized {

/// Where the parts of a panel lie, in bytes from the start of its piece for one block of elements.
/// Each piece begins with the f16 scales of the sixteen rows.
struct PanelFormat {
  int units;         ///< in one piece
  int small_scales;  ///< integers of the units; 0: there are none
  int values;        ///< of the first unit
  int unit_bytes;    ///< of values
  int piece_bytes;
};
constexpr PanelFormat panel_format(Layout layout) {
  switch (layout) {
    case Layout::q4_0_panels:
      return {1, 0, 32, 256, 288};
    case Layout::q4_1_panels:
      return {1, 0, 64, 256, 320};
    case Layout::q8_0_panels:
      return {1, 0, 32, 512, 544};
    case Layout::q4_k_panels:
      return {8, 64, 320, 256, 2368};
    default:  // q6_k_panels
      return {8, 32, 288, 384, 3360};
  }
}

/// The piece of a panel with a unit.
inline const std::byte* piece_of(const BlockMatrix& m, index_t panel, index_t unit) {
  const PanelFormat f = panel_format(m.layout);
  return m.data + (panel * (m.units() / f.units) + unit / f.units) * f.piece_bytes;
}

/// Whether there are panels of these blocks, their layout, and the bytes of one panel.
constexpr bool has_panels(Layout blocks) {
  constexpr LayoutSet set = one(Layout::q4_0) | one(Layout::q4_1) | one(Layout::q8_0) |
                            one(Layout::q4_k) | one(Layout::q6_k);
  return (set & one(blocks)) != 0;
}
Layout panels_of(Layout blocks);
inline index_t panel_bytes(Layout panels, index_t depth) {
  return depth / block_of(panels).elements * panel_format(panels).piece_bytes;
}
/// Packs rows 16 panel to 16 panel + 15 of a matrix in blocks. Zeros take the place of rows behind
/// the last one.
void pack_panel(const BlockMatrix& m, index_t panel, std::byte* to);

/// A Packing's `bytes` and `pack`.
size_t bytes_of_panels(const TensorRef& source);
void pack_panels(const TensorRef& source, void* packed);

namespace internal {
void decode_panel(const BlockMatrix& m, index_t row, index_t unit, Unit& to);
}  // namespace internal
}  // namespace taper::quantized
