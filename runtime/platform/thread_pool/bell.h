// How one thread waits for another one's change.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace taper::internal {

/// Tells the processor that this thread runs in a circle.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Looks at ready() again and again for so long. Returns whether it became true.
template <class Ready>
bool spin(const Ready& ready, std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < 8; ++i, relax())
      if (ready()) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// One thread waits here until something that others change becomes true. It looks for it for a
/// while, because a sleeping thread takes longer to wake than most calls of kernels last. Then it
/// sleeps.
class Bell {
 public:
  static constexpr std::chrono::microseconds patience{50};

  /// Returns when ready(). It reads atomic values in the order of all threads (seq_cst).
  template <class Ready>
  void wait(const Ready& ready) {
    if (spin(ready, patience)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    // before ready() looks again: whoever makes it true afterwards sees the sleeper
    sleeps_ = true;
    changed_.wait(lock, ready);
    sleeps_ = false;
  }

  bool is_asleep() const { return sleeps_; }

  /// Wakes the thread. Called after an atomic change in the order of all threads.
  void ring() {
    if (!sleeps_) return;
    { const std::lock_guard<std::mutex> lock(mutex_); }  // a thread that has just looked now sleeps
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> sleeps_{false};
};

}  // namespace taper::internal
