#include "taper/exporter/eager/threads.h"

#include <memory>

#ifdef TAPER_HAS_THREADS
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#endif

namespace taper::eager {

#ifdef TAPER_HAS_THREADS
namespace {
bool is_alone = false;  // one thread computes; a pool is kept until more are wanted again
std::unique_ptr<ThreadPool>& pool(int count = 0) {
  static std::unique_ptr<ThreadPool> instance = std::make_unique<ThreadPool>(count);
  return instance;
}
}  // namespace
const Threads* threads() { return is_alone ? nullptr : pool()->threads(); }
void set_threads(int count) {
  is_alone = count == 1;
  if (!is_alone && pool(count)->count() != count) pool() = std::make_unique<ThreadPool>(count);
}
#else
const Threads* threads() { return nullptr; }
void set_threads(int) {}
#endif

}  // namespace taper::eager
