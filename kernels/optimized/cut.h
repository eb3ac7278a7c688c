// How work is cut into tasks for threads.
#pragma once
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {

/// A way to cut some units: each in so many pieces.
struct Cut {
  index_t pieces;
  double slowest;  ///< the part of all work that the thread with the most has
};

/// The fewest pieces, from `least` to `most`, that give the threads equal parts. A unit consists of
/// `size` things that stay whole.
inline Cut cut_of(index_t units, index_t size, index_t threads, index_t least, index_t most) {
  Cut best{least, 2};
  for (index_t n = least; n <= most && n <= least + 2 * threads; ++n) {
    const double slowest = static_cast<double>(ceil_div(units * n, threads) * ceil_div(size, n)) /
                           static_cast<double>(units * size);
    if (slowest < best.slowest) best = {n, slowest};
  }
  return best;
}

/// More pieces, as long as each has enough of `work`, in multiply-adds: a thread that is faster
/// than others takes theirs.
inline index_t finer(index_t pieces, index_t most, double work) {
  constexpr double enough = 1 << 22;
  index_t times = 4;
  while (times > 1 &&
         (pieces * times > most || static_cast<double>(pieces * times) > work / enough))
    --times;
  return pieces * times;
}

/// The threads that pay: each has at least `least` of the work.
inline index_t threads_for(double work, double least, index_t threads) {
  return work < static_cast<double>(threads) * least ? static_cast<index_t>(work / least) : threads;
}

/// Multiply-adds in the time that one element from another processor's cache takes.
constexpr double work_of_far_read = 10;

}  // namespace taper::optimized
