#pragma once
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
/// The last four store f32 constants in halves. Kernels see f32, and widen what they read. One
/// exception multiplies bf16 (docs/numerics.md). In
/// panels of bf16, two neighbours along `depth` lie side by side; the second one is zero at the end
/// of an odd depth:
///
///   element (i, k) at 2 * ((i / 16 * ceil(depth / 2) + k / 2) * 16 + i % 16) + k % 2
enum class Layout : uint8_t {
  dense = 0,            ///< where the strides say
  panels_of_first = 1,  ///< across: the first dimension; depth: all others, in their order
  panels_of_last = 2,   ///< across: the last of two dimensions; depth: the first
  winograd_panels = 3,  ///< across: the first dimension; depth: the second
  dense_f16 = 4,        ///< f32 as f16, where the strides say
  dense_bf16 = 5,
  f16_panels_of_first = 6,
  bf16_panels_of_first = 7,
};

inline constexpr int panel_width = 16;

/// A set of one layout.
constexpr unsigned one(Layout layout) { return 1u << static_cast<unsigned>(layout); }

/// Whether elements lie where the strides say: as f32 or as halves.
constexpr bool has_strides(Layout layout) {
  return layout == Layout::dense || layout == Layout::dense_f16 || layout == Layout::dense_bf16;
}
/// Whether an f32 element takes two bytes.
constexpr bool is_in_halves(Layout layout) { return layout >= Layout::dense_f16; }
/// Whether these are f16. For a layout in halves.
constexpr bool is_in_f16(Layout layout) {
  return layout == Layout::dense_f16 || layout == Layout::f16_panels_of_first;
}

}  // namespace taper
