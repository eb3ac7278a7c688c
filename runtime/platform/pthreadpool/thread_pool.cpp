#include "taper/runtime/platform/pthreadpool/thread_pool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <cstddef>

namespace taper {
namespace {

struct Call {
  void (*task)(void* context, index_t i);
  void* context;
};

template <Idle idle>
void run(void* pool, void (*task)(void* context, index_t i), void* context, index_t tasks) {
  Call call{task, context};
  pthreadpool_parallelize_1d(
      static_cast<pthreadpool_t>(pool),
      [](void* c, size_t i) {
        const Call& call = *static_cast<const Call*>(c);
        call.task(call.context, static_cast<index_t>(i));
      },
      &call, static_cast<size_t>(tasks), idle == Idle::sleep ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0);
}

}  // namespace

ThreadPool::ThreadPool(int count, Idle idle)
    : pool_(pthreadpool_create(static_cast<size_t>(std::clamp(count, 0, max_threads)))) {
  threads_.count = static_cast<int>(pthreadpool_get_threads_count(pool_));  // 1 without a pool
  threads_.pool = pool_;
  threads_.run = idle == Idle::sleep ? run<Idle::sleep> : run<Idle::spin>;
}

ThreadPool::~ThreadPool() { pthreadpool_destroy(pool_); }

}  // namespace taper
