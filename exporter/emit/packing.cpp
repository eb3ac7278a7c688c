#include "taper/exporter/emit/packing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace taper::emit {
namespace {

/// The number of pairs of blocks that live at the same time.
int64_t count_pairs(const std::vector<Life>& lives) {
  std::vector<int> firsts, lasts;
  for (const Life& life : lives) firsts.push_back(life.first), lasts.push_back(life.last);
  std::ranges::sort(firsts);
  std::ranges::sort(lasts);
  int64_t meetings = 0;  // counts each pair twice, and each block with itself
  for (const Life& life : lives)
    meetings += (std::ranges::upper_bound(firsts, life.last) - firsts.begin()) -
                (std::ranges::lower_bound(lasts, life.first) - lasts.begin());
  return (meetings - static_cast<int64_t>(lives.size())) / 2;
}

/// Memory without an upper end, of which some is taken. Two gaps never touch.
class FreeSpace {
 public:
  /// Everything below `top` is taken.
  explicit FreeSpace(int64_t top) : top_(top) {}

  /// Takes `bytes` from the tightest gap (the lowest of equal ones), or on top. Returns the place.
  int64_t take(int64_t bytes) {
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest == by_size_.end()) return std::exchange(top_, top_ + bytes);
    const auto [size, place] = *tightest;
    remove(gaps_.find(place));
    if (size > bytes) add(place + bytes, size - bytes);
    return place;
  }

  void give_back(int64_t place, int64_t bytes) {
    const auto above = gaps_.find(place + bytes);
    if (above != gaps_.end()) bytes += above->second, remove(above);
    const auto next = gaps_.lower_bound(place);
    if (next != gaps_.begin()) {
      const auto below = std::prev(next);
      if (below->first + below->second == place)
        place = below->first, bytes += below->second, remove(below);
    }
    if (place + bytes == top_)
      top_ = place;
    else
      add(place, bytes);
  }

 private:
  using Gaps = std::map<int64_t, int64_t>;  // size of a gap by its place

  void add(int64_t place, int64_t bytes) { gaps_[place] = bytes, by_size_.emplace(bytes, place); }
  void remove(Gaps::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    gaps_.erase(gap);
  }

  Gaps gaps_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t top_;
};

}  // namespace

Packer::Packer(std::vector<Life> lives) : lives_(std::move(lives)), pairs_(count_pairs(lives_)) {}

Places Packer::sweep(const Sizes& sizes, int start, const Sequence& sequence) {
  Places places(lives_.size(), 0);
  Sequence stacked, later, earlier;
  int64_t top = 0;
  for (const int i : sequence) {
    if (sizes[i] == 0) continue;  // it may lie anywhere
    if (lives_[i].first > start) {
      later.push_back(i);
    } else if (lives_[i].last < start) {
      earlier.push_back(i);
    } else {
      stacked.push_back(i);
      places[i] = std::exchange(top, top + sizes[i]);
    }
  }
  swept_ += static_cast<int64_t>(sequence.size());
  sweep_onwards(sizes, stacked, later, false, places);
  sweep_onwards(sizes, stacked, earlier, true, places);
  return places;
}

void Packer::sweep_onwards(const Sizes& sizes, const Sequence& stacked, const Sequence& arriving,
                           bool backward, Places& places) {
  const auto begin = [&](int i) { return backward ? -lives_[i].last : lives_[i].first; };
  const auto end = [&](int i) { return backward ? -lives_[i].first : lives_[i].last; };
  Sequence by_begin = arriving;
  std::ranges::stable_sort(by_begin, {}, [&](int i) { return std::tuple(begin(i), -sizes[i]); });

  using Leaving = std::pair<int, int>;  // the end of a block, and the block
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> living;
  int64_t top = 0;
  for (const int i : stacked) living.emplace(end(i), i), top = places[i] + sizes[i];
  FreeSpace free(top);
  for (const int i : by_begin) {
    for (; !living.empty() && living.top().first < begin(i); living.pop()) {
      const int gone = living.top().second;
      free.give_back(places[gone], sizes[gone]);
      ++swept_;
    }
    places[i] = free.take(sizes[i]);
    living.emplace(end(i), i);
    ++swept_;
  }
}

void Packer::find_neighbours() {
  Sequence by_first(lives_.size());
  for (size_t i = 0; i < by_first.size(); ++i) by_first[i] = static_cast<int>(i);
  std::ranges::stable_sort(by_first, {}, [&](int i) { return lives_[i].first; });
  neighbours_.resize(lives_.size());
  Sequence living;
  for (const int i : by_first) {
    std::erase_if(living, [&](int j) { return lives_[j].last < lives_[i].first; });
    for (const int j : living) neighbours_[i].push_back(j), neighbours_[j].push_back(i);
    living.push_back(i);
  }
}

Places Packer::search(const Sizes& sizes, const Sequence& sequence, bool tightest) {
  constexpr int64_t not_yet = -1;
  if (neighbours_.empty()) find_neighbours();
  searched_ += search_steps();
  Places places(lives_.size(), not_yet);
  std::vector<int> conflicts;
  for (const int i : sequence) {
    conflicts.clear();
    for (const int j : neighbours_[i])
      if (places[j] != not_yet) conflicts.push_back(j);
    std::ranges::sort(conflicts, {}, [&](int j) { return places[j]; });
    int64_t at = 0, best_gap = std::numeric_limits<int64_t>::max(), best = not_yet;
    for (const int j : conflicts) {
      const int64_t gap = places[j] - at;
      if (gap >= sizes[i] && gap < best_gap) {
        best = at, best_gap = gap;
        if (!tightest) break;
      }
      at = std::max(at, places[j] + sizes[j]);
    }
    places[i] = best != not_yet ? best : at;
  }
  return places;
}

}  // namespace taper::emit
