#include "taper/runtime/platform/pthreadpool/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace taper {
namespace {

TEST(thread_pool, runs_every_task_once) {
  const ThreadPool pool(3);
  std::atomic<index_t> sum = 0;
  const Threads& threads = *pool.threads();
  threads.run(
      threads.pool, [](void* sum, index_t i) { *static_cast<std::atomic<index_t>*>(sum) += i; },
      &sum, 1000);
  EXPECT_EQ(sum, 499500);
}

TEST(thread_pool, serves_calls_of_two_threads) {
  const ThreadPool pool(2);
  std::atomic<index_t> sum = 0;
  const auto call_often = [&] {
    for (int i = 0; i < 200; ++i) parallel_for(pool.threads(), 10, [&](index_t k) { sum += k; });
  };
  std::thread a(call_often), b(call_often);
  a.join(), b.join();
  EXPECT_EQ(sum, 2 * 200 * 45);
}

TEST(thread_pool, has_at_least_the_callers_thread) {
  EXPECT_GE(ThreadPool(0).count(), 1);
  EXPECT_GE(ThreadPool(-1).count(), 1);
}

TEST(thread_pool, has_no_more_threads_than_a_machine_bears) {
  EXPECT_LE(ThreadPool(max_threads + 1).count(), max_threads);
}

}  // namespace
}  // namespace taper
