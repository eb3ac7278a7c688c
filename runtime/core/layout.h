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
enum class Layout : uint8_t {
  dense = 0,            ///< where the strides say
  panels_of_first = 1,  ///< across: the first dimension; depth: all others, in their order
  panels_of_last = 2,   ///< across: the last of two dimensions; depth: the first
  winograd_panels = 3,  ///< across: the first dimension; depth: the second
};

inline constexpr int panel_width = 16;

}  // namespace taper
