// How long ago memory was touched: what decides in which cache it still lies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace taper::cli {

/// Follows the memory that a program touches, in pages. The stack distance of Mattson and others
/// (1970), counted as Bennett and Kruskal (1975) do.
class Recency {
 public:
  /// At most `touches` pages will be touched, each as often as it is.
  explicit Recency(size_t touches) : counts_(touches + 1, 0) {}

  /// Touches `bytes` from `begin` on. Returns how many bytes were touched since these were touched
  /// before, themselves included: a cache must hold so many to hold these still. It is the mean
  /// over the pages. Pages that were never touched count as if everything had been touched since.
  double touch(const void* begin, double bytes);

  /// The pages of a piece of memory.
  static size_t pages(const void* begin, double bytes);

 private:
  static constexpr uint64_t page_bytes = 4096;

  double touch_page(uint64_t page);
  void add(size_t time, int change);
  int64_t sum_to(size_t time) const;

  std::unordered_map<uint64_t, size_t> last_;  ///< when a page was touched last, counted from 1
  std::vector<int32_t> counts_;  ///< Fenwick's tree over times: 1 where a page was touched last
  size_t now_ = 0;
};

}  // namespace taper::cli
