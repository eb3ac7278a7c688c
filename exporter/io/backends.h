// The backends of this process: programs that are loaded here may use them.
#pragma once
#include <vector>

#include "taper/runtime/device/backend.h"

namespace taper::io {

/// Adds a backend, which must outlive all programs. Call it before programs are loaded.
void add_backend(Backend& backend);
const std::vector<Backend*>& backends();

}  // namespace taper::io
