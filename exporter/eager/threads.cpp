#include "taper/exporter/eager/threads.h"

#include <memory>
#include <thread>

#ifdef TAPER_HAS_THREADS
#include "taper/runtime/platform/pthreadpool/thread_pool.h"
#endif

namespace taper::eager {

#ifdef TAPER_HAS_THREADS
namespace {
std::unique_ptr<ThreadPool>& pool() {
  static std::unique_ptr<ThreadPool> instance =
      std::make_unique<ThreadPool>(static_cast<int>(std::thread::hardware_concurrency()));
  return instance;
}
}  // namespace
const Threads* threads() { return pool()->threads(); }
void set_threads(int count) { pool() = std::make_unique<ThreadPool>(count); }
#else
const Threads* threads() { return nullptr; }
void set_threads(int) {}
#endif

}  // namespace taper::eager
