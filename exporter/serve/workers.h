// Threads for connections: as many as there are at once, up to a limit.
#pragma once
#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace taper::serve {

class Workers : public httplib::TaskQueue {
 public:
  explicit Workers(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_ && threads_.size() < most_ && add_thread()) return;
    came_.notify_one();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    came_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  /// False: the system gives no more threads, so the task waits for one of those that are there.
  bool add_thread() {
    try {
      threads_.emplace_back([this] { run(); });
      return true;
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      return false;
    }
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      came_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ends_ = false;
};

}  // namespace taper::serve
