#include "taper/runtime/platform/thread_pool/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace taper {
namespace {

TEST(thread_pool, runs_every_task_once) {
  const ThreadPool pool(3);
  std::atomic<index_t> sum = 0;
  const Threads& threads = *pool.threads();
  threads.run(
      threads.pool,
      [](void* sum, index_t i, int) { *static_cast<std::atomic<index_t>*>(sum) += i; }, &sum, 1000);
  EXPECT_EQ(sum, 499500);
}

// Calls that follow at once meet threads that look for work; calls after a pause wake them. With
// more threads than processors, some come late.
TEST(thread_pool, runs_every_task_of_every_call_once) {
  const ThreadPool pool(16);
  std::vector<int> calls(40, 0);  // of each task; no two threads touch one element at a time
  for (int call = 0; call < 2000; ++call) {
    if (call % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const index_t tasks = 2 + call % 39;
    parallel_for(pool.threads(), tasks, [&](index_t i) { ++calls[static_cast<size_t>(i)]; });
  }
  for (int i = 0; i < 40; ++i) {
    int expected = 0;
    for (int call = 0; call < 2000; ++call) expected += i < 2 + call % 39;
    EXPECT_EQ(calls[static_cast<size_t>(i)], expected) << i;
  }
}

// Ranges of threads that no call needed for long are renewed every 65536 calls.
TEST(thread_pool, finds_threads_again_that_no_call_needed_for_long) {
  const ThreadPool pool(4);
  std::vector<int> calls(40, 0);
  for (int call = 0; call < 140000; ++call) {
    const index_t tasks = call % 70000 < 69900 ? 2 : 40;
    parallel_for(pool.threads(), tasks, [&](index_t i) { ++calls[static_cast<size_t>(i)]; });
  }
  EXPECT_EQ(std::count(calls.begin(), calls.begin() + 2, 140000), 2);
  EXPECT_EQ(std::count(calls.begin() + 2, calls.end(), 200), 38);
}

TEST(thread_pool, gives_tasks_at_the_same_time_different_threads) {
  const ThreadPool pool(8);
  for (int call = 0; call < 500; ++call) {
    const index_t tasks = 1 + call % 20;
    std::atomic<int> inside[8] = {};
    std::atomic<bool> is_right = true;
    parallel_for_threads(pool.threads(), tasks, [&](index_t, int thread) {
      if (thread >= std::min<index_t>(8, tasks) || ++inside[thread] != 1) is_right = false;
      std::this_thread::yield();
      --inside[thread];
    });
    EXPECT_TRUE(is_right) << call;
  }
}

TEST(thread_pool, takes_any_number_of_tasks) {
  const ThreadPool pool(3);
  for (const index_t tasks : {index_t{65535}, index_t{65536}, index_t{200000}}) {
    std::vector<uint8_t> runs(static_cast<size_t>(tasks), 0);
    parallel_for(pool.threads(), tasks, [&](index_t i) { ++runs[static_cast<size_t>(i)]; });
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), tasks);
  }
}

TEST(thread_pool, waits_for_the_last_task) {
  const ThreadPool pool(2);
  for (int call = 0; call < 5; ++call) {
    std::atomic<int> finished = 0;
    parallel_for(pool.threads(), 2, [&](index_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than anybody looks
      ++finished;
    });
    EXPECT_EQ(finished, 2);
  }
}

TEST(thread_pool, shares_the_work) {
  const ThreadPool pool(2);
  std::atomic<int> begun = 0;
  std::thread::id ids[2];
  parallel_for(pool.threads(), 2, [&](index_t i) {
    ids[i] = std::this_thread::get_id();
    ++begun;
    while (begun < 2) std::this_thread::yield();  // each task waits for the other to begin
  });
  EXPECT_NE(ids[0], ids[1]);
}

TEST(thread_pool, has_no_tasks_to_run) {
  const ThreadPool pool(2);
  pool.threads()->run(
      pool.threads()->pool, [](void*, index_t, int) { FAIL(); }, nullptr, 0);
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
