// Places for blocks of memory whose sizes and lives are known. These are guesses; the memory plan
// takes the best of them (memory_plan.h). Blocks that live at the same time never overlap.
#pragma once
#include <cstdint>
#include <vector>

namespace taper::emit {

/// The times from which and until which a block is needed, inclusive.
struct Life {
  int first, last;

  int64_t length() const { return int64_t{last} - first + 1; }
};

/// One entry for each block: its bytes, or where it begins.
using Sizes = std::vector<int64_t>;
using Places = std::vector<int64_t>;
/// The indices of some or all blocks, in the order in which they are placed.
using Sequence = std::vector<int>;

class Packer {
 public:
  explicit Packer(std::vector<Life> lives);

  /// Stacks the blocks that live at `start`, in the order of `sequence`, which has all blocks. Then
  /// goes forward in time, and from `start` backward. Each block that begins on the way lies in the
  /// tightest gap that is free then. Takes n log n steps.
  Places sweep(const Sizes& sizes, int start, const Sequence& sequence);

  /// Places the blocks in the order of `sequence`, which has all blocks. Each lies in the lowest or
  /// in the tightest gap between the placed blocks that live at the same time. Takes a step for
  /// each such pair: call it only if `may_search()`.
  Places search(const Sizes& sizes, const Sequence& sequence, bool tightest);

  /// Whether one more search stays within the limit of steps. Without the limit, steps would grow
  /// with the square of the blocks that live at the same time.
  bool may_search() const {
    return pairs_ <= most_pairs && searched_ + search_steps() <= most_searched;
  }

  /// Blocks and gaps that were looked at so far.
  int64_t steps() const { return swept_ + searched_; }

  static constexpr int64_t most_pairs = 2'000'000, most_searched = 40'000'000;

 private:
  void sweep_onwards(const Sizes& sizes, const Sequence& stacked, const Sequence& arriving,
                     bool backward, Places& places);
  void find_neighbours();
  /// Steps of one search: the neighbours, and the cost of judging the places.
  int64_t search_steps() const { return 2 * pairs_ + 8 * static_cast<int64_t>(lives_.size()); }

  std::vector<Life> lives_;
  int64_t pairs_ = 0;  // pairs of blocks that live at the same time
  // for each block, those that live at the same time; made when first needed
  std::vector<std::vector<int>> neighbours_;
  int64_t swept_ = 0, searched_ = 0;
};

}  // namespace taper::emit
