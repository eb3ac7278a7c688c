// XNNPACK for applications: the backend with memory of the heap.
#pragma once
#include <cstddef>
#include <string>

#include "taper/delegates/xnnpack/runtime/backend.h"

namespace taper::delegates::xnnpack {

/// The backend of this process. It needs no setup:
///
///   ModuleOptions options;
///   options.backends = {&delegates::xnnpack::backend()};
XnnpackBackend& backend();
/// The backend of programs that were exported with `--backend xnnpack-f16`.
XnnpackBackend& f16_backend();

/// Keeps packed weights of 64 KiB or more in files of this folder, from now on; "": in memory. The
/// processes that do so share their memory. The folder may be that of ModuleOptions::pack_store.
/// What cannot be written stays in memory. Only those who may change the model should be able to
/// write to the folder. Call it once, before programs are loaded.
void keep_packed_weights(const std::string& folder);

/// What XNNPACK has allocated now, without mapped files, and the calls of its allocator so far.
struct MemoryUse {
  size_t bytes, allocations;
};
MemoryUse memory_use();

}  // namespace taper::delegates::xnnpack
