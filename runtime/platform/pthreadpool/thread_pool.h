#pragma once
#include "taper/runtime/platform/threads.h"

struct pthreadpool;

namespace taper {

/// What a pool's threads do between two calls.
enum class Idle {
  sleep,  ///< nothing: waking takes some microseconds, and others have the processors meanwhile
  /// Look for work for some milliseconds first: about a tenth faster where the processors serve
  /// this pool alone, many times slower where another program keeps one of them busy.
  spin,
};

/// The largest pool: a mistaken number must not stop the machine.
inline constexpr int max_threads = 256;

/// Threads of the pthreadpool library, kept for the object's life and handed to whoever computes:
///
///   ThreadPool pool(2);
///   … pool.threads() …
///
/// Several objects may share one pool, and calls of several threads wait for each other. A task
/// must not start tasks.
class ThreadPool {
 public:
  /// `count` threads, the caller's included, at most `max_threads`; 0: one for each processor. If
  /// the system refuses to give them, the pool runs everything on the caller's thread.
  explicit ThreadPool(int count = 0, Idle idle = Idle::sleep);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  const Threads* threads() const { return &threads_; }
  int count() const { return threads_.count; }

 private:
  pthreadpool* pool_;
  Threads threads_;
};

}  // namespace taper
