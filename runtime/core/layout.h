#pragma once
#include <cstddef>
#include <cstdint>

namespace taper {

/// How the elements of a constant lie in memory. A kernel record says which layout it can read of
/// which argument (`Packing`); everything else reads dense elements. Stored in programs: never
/// change a value.
///
/// In a layout of panels the constant is a matrix (across, depth). Sixteen neighbours along
/// `across` are a panel. Their elements lie side by side for each place along `depth`. Zeros fill
/// up the last panel. Panels follow each other without gaps:
///
///   element (i, k) at (i / 16 * depth + k) * 16 + i % 16
///
/// `winograd_panels` are filters (n, c, 3, 3) as G g Gᵀ: sixteen matrices (n, c) in panels, one
/// behind the other, for the elements of the 4 x 4 results in row-major order.
///
/// No layout depends on the machine: a vector of any width up to 16 lies within one panel.
///
/// The next four store f32 constants in halves. Kernels see f32, and widen what they read. One
/// exception multiplies bf16 (docs/numerics.md). In
/// panels of bf16, two neighbours along `depth` lie side by side; the second one is zero at the end
/// of an odd depth:
///
///   element (i, k) at 2 * ((i / 16 * ceil(depth / 2) + k / 2) * 16 + i % 16) + k % 2
///
/// All others store f32 constants in blocks: some neighbours along the last dimension share a
/// scale, and lie in a few bits each. The formats are those of ggml, NF4 of QLoRA, the MX
/// formats of the Open Compute Project, and two of Taper. In panels of blocks, the blocks of
/// sixteen rows lie together, in an order that kernels read faster.
enum class Layout : uint8_t {
  dense = 0,            ///< where the strides say
  panels_of_first = 1,  ///< across: the first dimension; depth: all others, in their order
  panels_of_last = 2,   ///< across: the last of two dimensions; depth: the first
  winograd_panels = 3,  ///< across: the first dimension; depth: the second
  dense_f16 = 4,        ///< f32 as f16, where the strides say
  dense_bf16 = 5,
  f16_panels_of_first = 6,
  bf16_panels_of_first = 7,
  q4_0 = 8,  ///< the first of those in blocks
  q4_1 = 9,
  q5_0 = 10,
  q5_1 = 11,
  q8_0 = 12,
  q2_k = 13,
  q3_k = 14,
  q4_k = 15,
  q5_k = 16,
  q6_k = 17,
  iq2_xxs = 18,
  iq2_xs = 19,
  iq2_s = 20,
  iq3_xxs = 21,
  iq3_s = 22,
  iq1_s = 23,
  iq1_m = 24,
  iq4_nl = 25,
  iq4_xs = 26,
  tq1_0 = 27,
  tq2_0 = 28,
  mxfp4 = 29,
  nvfp4 = 30,
  q4_0_panels = 31,  ///< the first of those in panels of blocks
  q4_1_panels = 32,
  q8_0_panels = 33,
  q4_k_panels = 34,
  q6_k_panels = 35,  ///< the last one
  nf4 = 36,          ///< the first of blocks whose elements are no integers
  mxfp6_e2m3 = 37,
  mxfp6_e3m2 = 38,
  mxfp8_e4m3 = 39,
  mxfp8_e5m2 = 40,  ///< the last one whose elements are floats
  q2_z = 41,        ///< blocks of integers with a zero point, not of ggml
  q3_z = 42,
};
inline constexpr unsigned layout_count = 43;

inline constexpr int panel_width = 16;

/// A set of layouts has a bit for each of them.
using LayoutSet = uint64_t;
/// A set of one layout.
constexpr LayoutSet one(Layout layout) { return LayoutSet{1} << static_cast<unsigned>(layout); }

/// Whether elements lie where the strides say: as f32 or as halves.
constexpr bool has_strides(Layout layout) {
  return layout == Layout::dense || layout == Layout::dense_f16 || layout == Layout::dense_bf16;
}
/// Whether an f32 element takes two bytes.
constexpr bool is_in_halves(Layout layout) {
  return layout >= Layout::dense_f16 && layout <= Layout::bf16_panels_of_first;
}
/// Whether these are f16. For a layout in halves.
constexpr bool is_in_f16(Layout layout) {
  return layout == Layout::dense_f16 || layout == Layout::f16_panels_of_first;
}
/// Whether elements lie in blocks, one behind the other or in panels.
constexpr bool is_in_blocks(Layout layout) { return layout >= Layout::q4_0; }
constexpr bool is_in_block_panels(Layout layout) {
  return layout >= Layout::q4_0_panels && layout <= Layout::q6_k_panels;
}
/// Whether the elements of blocks are small integers, with scales and offsets.
constexpr bool holds_integers(Layout layout) {
  return is_in_blocks(layout) && (layout < Layout::nf4 || layout > Layout::mxfp8_e5m2);
}
/// Whether the bytes of a constant follow from its sizes alone. Panels fill up their last one.
constexpr bool has_exact_size(Layout layout) {
  return has_strides(layout) || (is_in_blocks(layout) && !is_in_block_panels(layout));
}

/// A block: elements that lie together along the last dimension, and their bytes. In panels, they
/// are those of one of the sixteen rows.
struct BlockSize {
  uint16_t elements, bytes;
};
/// Of all layouts. Not within the function: each source would have a copy.
inline constexpr BlockSize block_sizes[] = {
    {1, 4},    {1, 4},     {1, 4},     {1, 4},                                        // f32
    {1, 2},    {1, 2},     {1, 2},     {2, 4},                                        // halves
    {32, 18},  {32, 20},   {32, 22},   {32, 24},   {32, 34},                          // q4_0 …
    {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210},                        // q2_k …
    {256, 66}, {256, 74},  {256, 82},  {256, 98},  {256, 110}, {256, 50}, {256, 56},  // iq2_xxs …
    {32, 18},  {256, 136}, {256, 54},  {256, 66},  {32, 17},   {64, 36},              // iq4_nl …
    {32, 18},  {32, 20},   {32, 34},   {256, 148}, {256, 210},  // panels of blocks
    {64, 34},  {32, 25},   {32, 25},   {32, 33},   {32, 33},    // nf4, mxfp6 …
    {32, 10},  {32, 14}};                                       // q2_z, q3_z
static_assert(sizeof(block_sizes) / sizeof(BlockSize) == layout_count, "one for each layout");
/// The block of f32 elements in a layout.
constexpr BlockSize block_of(Layout layout) { return block_sizes[static_cast<unsigned>(layout)]; }
/// The bytes of a constant that has `f32_bytes` as f32, and an exact size.
constexpr size_t stored_bytes(size_t f32_bytes, Layout layout) {
  const BlockSize b = block_of(layout);
  return layout == Layout::dense ? f32_bytes : f32_bytes / 4 / b.elements * b.bytes;
}

}  // namespace taper
