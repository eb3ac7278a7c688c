#include "taper/runtime/platform/thread_pool/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "taper/runtime/platform/thread_pool/bell.h"

namespace taper {

// A call publishes its tasks. The caller and the workers then take one after the other, from a
// counter that also holds the number of the call. A worker that comes late finds nothing left, and
// nobody waits for it.
class ThreadPool::Workers {
 public:
  explicit Workers(int count) {
    threads_.reserve(static_cast<size_t>(count));
    try {
      for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads: the pool has those before
    }
  }

  ~Workers() {
    stops_ = true;
    published_.ring(max_threads);
    for (std::thread& thread : threads_) thread.join();
  }

  int count() const { return static_cast<int>(threads_.size()); }

  void run(void (*task)(void* context, index_t i), void* context, index_t tasks) {
    const std::lock_guard<std::mutex> lock(caller_);
    for (index_t first = 0; first < tasks; first += most_tasks)
      run_part(task, context, first, std::min(tasks - first, most_tasks));
  }

 private:
  // `open_`: the number of the call above, the tasks that nobody has taken below.
  static constexpr int number_shift = 32;
  static constexpr index_t most_tasks = (index_t{1} << number_shift) - 1;
  static uint64_t tasks_of(uint64_t open) { return open & static_cast<uint64_t>(most_tasks); }
  static uint64_t call_of(uint64_t open) { return open >> number_shift; }

  void run_part(void (*task)(void* context, index_t i), void* context, index_t first,
                index_t tasks) {
    task_.store(task, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    end_.store(first + tasks, std::memory_order_relaxed);
    unfinished_.store(tasks, std::memory_order_relaxed);
    open_ = (call_of(open_) + 1) << number_shift | static_cast<uint64_t>(tasks);
    published_.ring(static_cast<int>(std::min<index_t>(tasks - 1, max_threads)));
    take_tasks();
    finished_.wait([&] { return unfinished_ == 0; });
  }

  void take_tasks() {
    index_t finished = 0;
    for (uint64_t open = open_; tasks_of(open) > 0;) {
      // If the exchange succeeds, this task was open all the time. Then the call has not ended, and
      // these are its values; otherwise they may be the next call's.
      const auto task = task_.load(std::memory_order_relaxed);
      void* const context = context_.load(std::memory_order_relaxed);
      const index_t end = end_.load(std::memory_order_relaxed);
      if (!open_.compare_exchange_weak(open, open - 1)) continue;
      task(context, end - static_cast<index_t>(tasks_of(open)));
      ++finished;
      open = open_;
    }
    // A call ends only after this, so all tasks counted here belong to one call.
    if (finished > 0 && unfinished_.fetch_sub(finished) == finished) finished_.ring(1);
  }

  void work() {
    for (uint64_t last = 0;;) {
      published_.wait([&] { return stops_ || call_of(open_) != last; });
      if (stops_) return;
      last = call_of(open_);
      take_tasks();
    }
  }

  std::mutex caller_;  // one call at a time
  std::vector<std::thread> threads_;
  internal::Bell published_, finished_;
  std::atomic<bool> stops_{false};

  alignas(64) std::atomic<uint64_t> open_{0};
  std::atomic<void (*)(void* context, index_t i)> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<index_t> end_{0};  // behind the last task
  alignas(64) std::atomic<index_t> unfinished_{0};
};

ThreadPool::ThreadPool(int count) {
  const int wanted = count == 0 ? static_cast<int>(std::thread::hardware_concurrency()) : count;
  workers_ = std::make_unique<Workers>(std::clamp(wanted, 1, max_threads) - 1);
  threads_.count = workers_->count() + 1;
  threads_.pool = workers_.get();
  threads_.run = [](void* pool, void (*task)(void* context, index_t i), void* context,
                    index_t tasks) { static_cast<Workers*>(pool)->run(task, context, tasks); };
}

ThreadPool::~ThreadPool() = default;

}  // namespace taper
