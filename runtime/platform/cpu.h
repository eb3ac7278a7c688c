#pragma once
#include "taper/kernels/kernel.h"

namespace taper {

/// Whether this machine, and its operating system, run kernels of a level. Asks the processor each
/// time (on a virtual machine that may take some microseconds): for loading a program, not for a
/// loop. Beyond `portable` only x86-64 has levels.
bool cpu_has(CpuLevel level);

}  // namespace taper
