#include "taper/runtime/platform/thread_pool/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "taper/runtime/platform/thread_pool/bell.h"

namespace taper {
namespace {

/// Neighbouring tasks of one call that nobody has taken yet, in one word: the number of the call,
/// the first task, and the one behind the last.
struct Open {
  static constexpr int bits = 16;
  static constexpr index_t most_tasks = (index_t{1} << bits) - 1;

  uint64_t word;

  static Open of(uint32_t call, index_t begin, index_t end) {
    return {uint64_t{call} << 2 * bits | static_cast<uint64_t>(begin) << bits |
            static_cast<uint64_t>(end)};
  }
  uint32_t call() const { return static_cast<uint32_t>(word >> 2 * bits); }
  index_t begin() const { return static_cast<index_t>(word >> bits) & most_tasks; }
  index_t end() const { return static_cast<index_t>(word) & most_tasks; }
  bool is_empty() const { return begin() == end(); }
  Open without_first() const { return {word + (uint64_t{1} << bits)}; }
  Open without_last() const { return {word - 1}; }
};

}  // namespace

// Each thread of a call has a range of its tasks. It takes them from the front, then those of the
// other threads from the back. The same thread thus gets the same part of each call, and finds in
// its cache what it wrote in the one before. A thread that comes late finds nothing left, and
// nobody waits for it.
class ThreadPool::Workers {
 public:
  explicit Workers(int count) {
    workers_.emplace_back();  // the caller
    try {
      while (static_cast<int>(workers_.size()) < count) add_worker();
    } catch (const std::exception&) {  // no more threads: the pool has those before
    }
  }

  ~Workers() {
    stops_ = true;
    for (Worker& worker : workers_) {
      worker.published.ring();
      if (worker.thread.joinable()) worker.thread.join();
    }
  }

  int count() const { return static_cast<int>(workers_.size()); }

  void run(Threads::Task task, void* context, index_t tasks) {
    const std::lock_guard<std::mutex> lock(caller_);
    for (index_t first = 0; first < tasks; first += Open::most_tasks)
      run_part(task, context, first, std::min(tasks - first, Open::most_tasks));
  }

 private:
  struct alignas(64) Worker {
    std::atomic<uint64_t> open{0};  // an Open
    internal::Bell published;
    std::thread thread;
  };

  void add_worker() {
    const int index = count();
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([this, index, &worker] { work(index, worker); });
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  }

  void run_part(Threads::Task task, void* context, index_t first, index_t tasks) {
    const index_t threads = std::min<index_t>(count(), tasks);
    task_.store(task, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    first_.store(first, std::memory_order_relaxed);
    threads_.store(threads, std::memory_order_relaxed);
    unfinished_.store(tasks, std::memory_order_relaxed);
    ++call_;
    for (index_t t = 0; t < threads; ++t)
      workers_[static_cast<size_t>(t)].open =
          Open::of(call_, tasks * t / threads, tasks * (t + 1) / threads).word;
    for (index_t t = 1; t < threads; ++t) workers_[static_cast<size_t>(t)].published.ring();
    take_tasks(call_, 0);
    finished_.wait([&] { return unfinished_ == 0; });
  }

  // Runs a task of the range, if there is one left of this call.
  bool take_task(uint32_t call, int thread, std::atomic<uint64_t>& range, bool is_own) {
    Open open{range};
    while (open.call() == call && !open.is_empty()) {
      // If the exchange succeeds, this task was open all the time. Then the call has not ended, and
      // these are its values; otherwise they may be the next call's.
      const Threads::Task task = task_.load(std::memory_order_relaxed);
      void* const context = context_.load(std::memory_order_relaxed);
      const index_t first = first_.load(std::memory_order_relaxed);
      const Open rest = is_own ? open.without_first() : open.without_last();
      if (!range.compare_exchange_weak(open.word, rest.word)) continue;
      task(context, first + (is_own ? open.begin() : rest.end()), thread);
      return true;
    }
    return false;
  }

  void take_tasks(uint32_t call, int thread) {
    const int threads = static_cast<int>(threads_.load(std::memory_order_relaxed));
    index_t finished = 0;
    for (int t = thread; t < thread + threads; ++t) {
      std::atomic<uint64_t>& range = workers_[static_cast<size_t>(t % threads)].open;
      while (take_task(call, thread, range, t == thread)) ++finished;
    }
    if (finished > 0 && unfinished_.fetch_sub(finished) == finished) finished_.ring();
  }

  void work(int index, Worker& worker) {
    for (uint32_t last = 0;;) {
      worker.published.wait([&] { return stops_ || Open{worker.open}.call() != last; });
      if (stops_) return;
      last = Open{worker.open}.call();
      take_tasks(last, index);
    }
  }

  std::mutex caller_;           // one call at a time
  std::deque<Worker> workers_;  // the caller first
  internal::Bell finished_;
  std::atomic<bool> stops_{false};
  uint32_t call_ = 0;

  alignas(64) std::atomic<Threads::Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<index_t> first_{0}, threads_{1};
  alignas(64) std::atomic<index_t> unfinished_{0};
};

ThreadPool::ThreadPool(int count) {
  const int wanted = count == 0 ? static_cast<int>(std::thread::hardware_concurrency()) : count;
  workers_ = std::make_unique<Workers>(std::clamp(wanted, 1, max_threads));
  threads_.count = workers_->count();
  threads_.pool = workers_.get();
  threads_.run = [](void* pool, Threads::Task task, void* context, index_t tasks) {
    static_cast<Workers*>(pool)->run(task, context, tasks);
  };
}

ThreadPool::~ThreadPool() = default;

}  // namespace taper
