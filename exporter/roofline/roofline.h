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

/// Measures the peaks on `threads` (nullptr: on this thread alone), for about 0.2 seconds. Takes
/// the best of many samples, because other programs can only slow them down.
Peaks measure_peaks(const Threads* threads);
/// The first of them alone.
double measure_gflops(const Threads* threads);

/// What bounds the time of work.
enum class Limit { compute, cache, memory };
/// "compute", "cache", "memory"
const char* name_of(Limit limit);

/// What an instruction computes and moves.
struct Work {
  double operations = 0;
  double bytes_read = 0, bytes_written = 0;
  double footprint = 0;  ///< the memory in which these bytes lie; less than their sum if a result
                         ///< takes the place of an argument
};

/// The least time that work can take. All operations run at the peak. All bytes that are read, and
/// all that are read or written, move with the bandwidth for the footprint. The roof is the longest
/// of these times.
struct Roof {
  Limit limit = Limit::compute;
  double us = 0;  ///< 0: the work has no operations and no bytes
};
Roof roof_of(const Peaks& peaks, const Work& work);
/// The roof of one piece of work after the other. Its limit bounds most of the time.
Roof sum_of(const std::vector<Roof>& roofs);

}  // namespace taper::roofline
