#pragma once
#include "taper/runtime/platform/threads.h"

namespace taper::eager {

/// The pool that eager kernels use; nullptr: the caller's thread alone. By default as many threads
/// as the machine has cores. Results do not depend on it.
const Threads* threads();

/// Sets the number of threads, the caller's included. Not while operators run.
void set_threads(int count);

}  // namespace taper::eager
