#pragma once
#include <memory>

#include "taper/runtime/platform/threads.h"

namespace taper {

/// The largest pool: a mistaken number must not stop the machine.
inline constexpr int max_threads = 256;

/// Threads that are kept for the object's life and handed to whoever computes:
///
///   ThreadPool pool(2);
///   … pool.threads() …
///
/// Several objects may share one pool, and calls of several threads wait for each other. A task
/// must not start tasks.
///
/// A thread without work looks for some for 50 microseconds, then sleeps. A call does not wait for
/// threads that sleep, or whose processor serves another program: its caller takes their tasks.
class ThreadPool {
 public:
  /// `count` threads, the caller's included, at most `max_threads`; 0: one for each processor. If
  /// the system refuses to give them, the pool has fewer.
  explicit ThreadPool(int count = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  const Threads* threads() const { return &threads_; }
  int count() const { return threads_.count; }

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
  Threads threads_;
};

}  // namespace taper
