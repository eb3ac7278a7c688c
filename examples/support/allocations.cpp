#include "taper/examples/support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<size_t> count{0};
}

namespace taper {
size_t allocation_count() { return count.load(); }
}  // namespace taper

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAPER_OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TAPER_OWN_MALLOC 0
#endif
#endif

#if !defined(TAPER_OWN_MALLOC) && defined(__GLIBC__)
// The C library's own, under its other names.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) { return ++count, __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return ++count, __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return ++count, __libc_realloc(p, n); }
void* aligned_alloc(size_t alignment, size_t n) { return ++count, __libc_memalign(alignment, n); }
}
#else
void* operator new(size_t n) {
  ++count;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t n) { return operator new(n); }
// std::stable_sort asks in this way
void* operator new(size_t n, const std::nothrow_t&) noexcept { return ++count, std::malloc(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
#endif
