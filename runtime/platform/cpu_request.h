// The features that a process must ask its operating system for. Device code.
#pragma once
#include "taper/runtime/platform/cpu.h"

namespace taper {

/// cpu_features(), after this process has asked Linux for tiles (AMX), which it then has until it
/// ends, in all threads. Asks only if the processor has tiles and TAPER_CPU allows them. If Linux
/// refuses, the set lacks amx_int8 and amx_bf16. If Linux grants tiles, it refuses stacks for
/// signals (sigaltstack) that are too small for their registers. So a library of kernels does not
/// ask by itself. Module, eager and the command `taper` do.
CpuFeatures request_cpu_features();

}  // namespace taper
