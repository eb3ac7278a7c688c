// The bounds check of indices, for every kernel that uses data as addresses.
#pragma once
#include <atomic>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"

namespace taper::portable {

/// Whether all indices lie in [lowest, end), where lowest <= 0 <= end.
template <class I>
bool are_inside(const I* at, index_t count, index_t end, index_t lowest = 0) {
  // For an index outside, one of the two differences is negative, even if they wrap around. Their
  // signs are collected without a branch, so that the loop vectorises.
  const auto low = static_cast<uint64_t>(lowest), last = static_cast<uint64_t>(end) - 1;
  uint64_t signs = 0;
  for (index_t i = 0; i < count; ++i) {
    const auto index = static_cast<uint64_t>(at[i]);
    signs |= (index - low) | (last - index);
  }
  return signs >> 63 == 0;
}

/// Every index must lie in [lowest, end), or equal `allowed`. Otherwise fails with `text`, the
/// first wrong index and the range.
template <class I>
Error check_indices(Context& context, View<const I> index, index_t end, index_t lowest = 0,
                    const char* text = TAPER_TEXT("index {} is outside [{}, {})"),
                    Maybe<int64_t> allowed = {}) {
  constexpr index_t per_task = 32768;
  const I* at = index.data();
  const index_t count = index.numel();
  std::atomic<bool> outside{false};
  parallel_for(context.threads, pieces(count, per_task), [&](index_t task) {
    const index_t first = task * per_task, left = count - first;
    if (!are_inside(at + first, left < per_task ? left : per_task, end, lowest))
      outside.store(true, std::memory_order_relaxed);
  });
  if (!outside) return Error::ok;
  for (index_t i = 0; i < count; ++i)
    if ((at[i] < lowest || at[i] >= end) && !(allowed && at[i] == *allowed))
      return context.fail(Error::invalid_argument, text, at[i], lowest, end);
  return Error::ok;
}

}  // namespace taper::portable
