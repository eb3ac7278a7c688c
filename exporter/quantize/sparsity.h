// Which elements of a matrix become zero. It knows nothing of graphs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace taper::quantize {

/// A pattern of zeros. Either `keep` of each `of` neighbours in a row stay, or a part of all blocks
/// goes, wherever they are.
struct Sparsity {
  int keep = 2, of = 4;
  double part = 0;            ///< of the blocks that goes; 0: the neighbours count
  int rows = 1, columns = 1;  ///< of a block

  bool has_blocks() const { return rows != 1 || columns != 1; }
  /// How many of `n` that compete stay.
  size_t stay(size_t n) const;
};

/// "2:4" keeps two of four neighbours. "0.5" sets half of the elements to zero, and "0.5:4x8" half
/// of the blocks of 4 rows and 8 columns. Throws ExportError, as for patterns that keep nothing or
/// everything.
Sparsity parse_sparsity(const std::string& text);
std::string to_text(const Sparsity& pattern);
/// Throws ExportError for a pattern that keeps nothing or everything.
void require_possible(const Sparsity& pattern);

/// Which of those that compete go: the smallest scores, the first of equal ones.
std::vector<bool> losers(std::span<const float> scores, size_t stay);

/// Sets elements of `w` (rows, depth) to zero whose size times importance[column] is small. Blocks
/// count by the sum of squares, and compete with all others or, with `each_row`, with those of the
/// same rows. Neighbours compete with each other alone.
void zero_smallest(std::span<float> w, int64_t rows, std::span<const float> importance,
                   const Sparsity& pattern, bool each_row);

}  // namespace taper::quantize
