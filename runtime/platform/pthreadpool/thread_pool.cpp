#include "taper/runtime/platform/pthreadpool/thread_pool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <cstddef>

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace taper {
namespace {

// The library is not built for the thread sanitizer, which therefore cannot see that a call begins
// before its tasks and ends after them.
#ifdef __SANITIZE_THREAD__
void happens_before(void* what) { __tsan_release(what); }
void happens_after(void* what) { __tsan_acquire(what); }
#else
void happens_before(void*) {}
void happens_after(void*) {}
#endif

struct Call {
  void (*task)(void* context, index_t i);
  void* context;
};

template <Idle idle>
void run(void* pool, void (*task)(void* context, index_t i), void* context, index_t tasks) {
  Call call{task, context};
  happens_before(&call);
  pthreadpool_parallelize_1d(
      static_cast<pthreadpool_t>(pool),
      [](void* c, size_t i) {
        happens_after(c);
        const Call& call = *static_cast<const Call*>(c);
        call.task(call.context, static_cast<index_t>(i));
        happens_before(c);
      },
      &call, static_cast<size_t>(tasks), idle == Idle::sleep ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0);
  happens_after(&call);
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
