// Looks at short intervals where the threads of this process are.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace taper::cli {

/// A look at a thread.
struct Sample {
  uint64_t ns;        ///< of a steady clock
  const void* place;  ///< the instruction of the processor that came next
  int thread;         ///< a number of the system; Sampler::this_thread() is the caller's
};

/// Takes samples of all threads that exist when it is made, until it ends: one of each thread every
/// 50 microseconds. What is sampled needs no change, and takes a few percent longer. Uses the
/// signal SIGPROF. There may be one Sampler at a time.
class Sampler {
 public:
  /// Whether this system can do it: Linux on x86-64 and on 64-bit Arm.
  static bool is_supported();
  static int this_thread();

  /// Has room for `capacity` samples. Throws ExportError if the system refuses.
  explicit Sampler(size_t capacity);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Ends the sampling. Returns all samples, each thread's in the order of time.
  std::vector<Sample> take();

 private:
  class Timers;
  std::unique_ptr<Timers> timers_;
};

}  // namespace taper::cli
