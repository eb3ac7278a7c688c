#include "taper/runtime/platform/thread_pool/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "taper/runtime/platform/thread_pool/bell.h"

namespace taper {
namespace {

/// Neighbouring tasks of one call, in one word: the number of the call, the first task, and the one
/// behind the last.
struct Range {
  static constexpr int bits = 16;
  static constexpr index_t most_tasks = (index_t{1} << bits) - 1;

  uint64_t word;

  static Range of(uint32_t call, index_t begin, index_t end) {
    return {uint64_t{call} << 2 * bits | static_cast<uint64_t>(begin) << bits |
            static_cast<uint64_t>(end)};
  }
  uint32_t call() const { return static_cast<uint32_t>(word >> 2 * bits); }
  index_t begin() const { return static_cast<index_t>(word >> bits) & most_tasks; }
  index_t end() const { return static_cast<index_t>(word) & most_tasks; }
  bool is_empty() const { return begin() == end(); }
  bool is_before(uint32_t other) const { return static_cast<int32_t>(call() - other) < 0; }
  Range without_first() const { return {word + (uint64_t{1} << bits)}; }
  Range without_last() const { return {word - 1}; }
};

/// What one thread writes often and others read has a line of memory of its own.
constexpr size_t line_bytes = 64;

/// So long a thread without work waits before it takes tasks of others, because they may just end.
/// Its look at their ranges would hold them up.
constexpr std::chrono::nanoseconds courtesy{500};

}  // namespace

// Each thread of a call has a range of its tasks. It takes them from the front, then those of the
// other threads from the back. The same thread thus gets the same part of each call, and finds in
// its cache what it wrote in the one before. A thread that comes late finds nothing left, and
// nobody waits for it.
//
// A line of memory takes up to 0.2 microseconds from one core to another, as long as a small task.
// So a call moves few of them. The caller writes one, the call. Each thread derives its range from
// it. What is left of a range stays in the cache of its thread, unless others take tasks there. At
// the end each thread adds its tasks to one number.
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
    publish(Range::of(number_ + 1, 0, count()));
    for (Worker& worker : workers_)
      if (worker.thread.joinable()) worker.thread.join();
  }

  int count() const { return static_cast<int>(workers_.size()); }

  void run(Threads::Task task, void* context, index_t tasks) {
    const std::lock_guard<std::mutex> lock(caller_);
    for (index_t first = 0; first < tasks; first += Range::most_tasks)
      run_part({task, context, first}, std::min(tasks - first, Range::most_tasks));
  }

 private:
  struct alignas(line_bytes) Worker {
    // What is left of the thread's Range, in the last call in which somebody took a task of it.
    std::atomic<uint64_t> left{0};
    alignas(line_bytes) internal::Bell published;
    std::thread thread;
  };

  struct Work {
    Threads::Task task;
    void* context;
    index_t first;  // the number of the first task
  };

  struct alignas(line_bytes) Call {
    std::atomic<uint64_t> tasks{0};  // a Range
    std::atomic<Threads::Task> task{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<index_t> first{0};

    Range range() const { return {tasks}; }
    // A thread that then gets a task of the call has read what belongs to it, because the call has
    // not ended. Otherwise it may have read the next call's.
    Work work() const {
      return {task.load(std::memory_order_relaxed), context.load(std::memory_order_relaxed),
              first.load(std::memory_order_relaxed)};
    }
    void set(const Work& work) {
      task.store(work.task, std::memory_order_relaxed);
      context.store(work.context, std::memory_order_relaxed);
      first.store(work.first, std::memory_order_relaxed);
    }
  };

  void add_worker() {
    const int index = count();
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([this, index, &worker] { serve(index, worker); });
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  }

  Worker& worker(int thread) { return workers_[static_cast<size_t>(thread)]; }

  int threads_of(Range call) const {
    return static_cast<int>(std::min<index_t>(count(), call.end()));
  }
  Range part_of(Range call, int thread) const {
    const index_t tasks = call.end(), threads = threads_of(call);
    return Range::of(call.call(), tasks * thread / threads, tasks * (thread + 1) / threads);
  }

  void publish(Range call) {
    call_.tasks = call.word;
    for (int t = 1; t < threads_of(call); ++t) worker(t).published.ring();
  }

  void run_part(const Work& work, index_t tasks) {
    if (++number_ % renewal == 0) renew();
    const uint64_t before = helped_;
    const Range call = Range::of(number_, 0, tasks);
    call_.set(work);
    publish(call);
    auto mine = static_cast<uint64_t>(take_tasks(call, work, 0, 0));
    const auto is_done = [&] { return helped_ - before + mine == static_cast<uint64_t>(tasks); };
    if (!is_done() && (anybody_sleeps(call) || !internal::spin(is_done, courtesy)))
      mine += static_cast<uint64_t>(take_tasks_of_others(call, work, 0));
    finished_.wait(is_done);
  }

  bool anybody_sleeps(Range call) {
    for (int t = 1; t < threads_of(call); ++t)
      if (worker(t).published.is_asleep()) return true;
    return false;
  }

  // A range of long ago would seem to be of a call to come.
  static constexpr uint32_t renewal = 1 << 16;
  void renew() {
    for (Worker& worker : workers_) worker.left = Range::of(number_ - 1, 0, 0).word;
  }

  // Runs a task of the range of thread `of`, if there is one left in this call.
  bool take_task(Range call, const Work& work, int thread, int of) {
    std::atomic<uint64_t>& place = worker(of).left;
    for (Range seen{place};;) {
      const bool is_new = seen.is_before(call.call());
      const Range left = is_new ? part_of(call, of) : seen;
      if (left.call() != call.call() || left.is_empty()) return false;
      const Range rest = thread == of ? left.without_first() : left.without_last();
      if (!place.compare_exchange_weak(seen.word, rest.word)) continue;
      work.task(work.context, work.first + (thread == of ? left.begin() : rest.end()), thread);
      return true;
    }
  }
  index_t take_tasks(Range call, const Work& work, int thread, int of) {
    index_t taken = 0;
    while (take_task(call, work, thread, of)) ++taken;
    return taken;
  }
  index_t take_tasks_of_others(Range call, const Work& work, int thread) {
    const int threads = threads_of(call);
    index_t taken = 0;
    for (int i = 1; i < threads; ++i)
      taken += take_tasks(call, work, thread, (thread + i) % threads);
    return taken;
  }

  void tell_finished(index_t tasks) {
    if (tasks == 0) return;
    helped_ += static_cast<uint64_t>(tasks);
    finished_.ring();
  }

  void serve(int thread, Worker& worker) {
    for (Range call{0};;) {
      const auto is_called = [&, last = call.call()] {
        call = call_.range();
        return call.call() != last && thread < threads_of(call);
      };
      worker.published.wait(is_called);
      if (stops_) return;
      const Work work = call_.work();
      tell_finished(take_tasks(call, work, thread, thread));
      if (internal::spin([&] { return call_.range().word != call.word; }, courtesy)) continue;
      tell_finished(take_tasks_of_others(call, work, thread));
    }
  }

  // Written by the caller
  std::mutex caller_;  // one call at a time
  uint32_t number_ = 0;
  Call call_;

  // Written by threads that have finished tasks: how many, in all calls
  alignas(line_bytes) std::atomic<uint64_t> helped_{0};

  // Seldom written
  alignas(line_bytes) std::deque<Worker> workers_;  // the caller first
  internal::Bell finished_;
  std::atomic<bool> stops_{false};
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
