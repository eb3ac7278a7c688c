// XNNPACK for applications: the backend with memory of the heap.
#pragma once
#include <cstddef>

#include "taper/delegates/xnnpack/runtime/backend.h"

namespace taper::delegates::xnnpack {

/// The backend of this process. It needs no setup:
///
///   ModuleOptions options;
///   options.backends = {&delegates::xnnpack::backend()};
XnnpackBackend& backend();

/// What XNNPACK has allocated now, and the calls of its allocator so far.
struct MemoryUse {
  size_t bytes, allocations;
};
MemoryUse memory_use();

}  // namespace taper::delegates::xnnpack
