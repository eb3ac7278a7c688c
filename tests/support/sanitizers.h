#pragma once

// Which sanitizer a test is compiled with: TAPER_ADDRESS_SANITIZER, TAPER_THREAD_SANITIZER. gcc 12
// has a macro for each, and clang 14 has __has_feature.
#if defined(__SANITIZE_ADDRESS__)
#define TAPER_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define TAPER_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPER_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define TAPER_THREAD_SANITIZER
#endif
#endif
