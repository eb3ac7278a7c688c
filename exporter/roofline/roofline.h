// What this machine can do at most, and how long work must take there: the roofline model of
// Williams, Waterman and Patterson (2009).
#pragma once
#include <vector>

#include "taper/runtime/platform/threads.h"

namespace taper::roofline {

/// How fast operands move that take together at most `up_to_bytes`.
struct Bandwidth {
  double up_to_bytes;            ///< infinite for memory, the last of the list
  double read_gbps;              ///< of reading alone
  double read_and_written_gbps;  ///< of numbers that change in their place; both ways are counted
};

/// The peaks of the machine, with some number of threads.
struct Peaks {
  double gflops;  ///< f32 multiply-adds in registers; each counts as two operations
  std::vector<Bandwidth> bandwidths;  ///< of the caches, if their sizes are known, and of memory
};

/// Measures the peaks on `threads` (nullptr: on this thread alone), for about 0.25 seconds. Takes
/// the best of many samples, because other programs can only slow them down.
Peaks measure_peaks(const Threads* threads);
/// The first of them alone.
double measure_gflops(const Threads* threads);

/// What bounds the time of work.
enum class Limit { compute, cache, memory };
/// "compute", "cache", "memory"
const char* name_of(Limit limit);

/// A tensor that is read or written.
struct Operand {
  double bytes = 0;
  bool is_written = false;
  double footprint = 0;  ///< a cache must hold so many bytes for the operand to lie in it: those
                         ///< that the program touches from one use of its memory to the next
};

/// What an instruction computes and moves.
struct Work {
  double operations = 0;
  std::vector<Operand> operands;

  double bytes() const;
};

/// The least time that work can take. All operations run at the peak. All bytes that are read, and
/// all that are read or written, move with the bandwidth for their footprint. The roof is the
/// longest of these times. Its limit is memory if at least half of the time for bytes goes there.
struct Roof {
  Limit limit = Limit::compute;
  double us = 0;  ///< 0: the work has no operations and no bytes
};
Roof roof_of(const Peaks& peaks, const Work& work);
/// The roof of one piece of work after the other. Its limit bounds most of the time.
Roof sum_of(const std::vector<Roof>& roofs);

}  // namespace taper::roofline
