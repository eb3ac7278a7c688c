#pragma once
#include "taper/runtime/platform/threads.h"

namespace taper::eager {

/// The pool that eager kernels use. nullptr means that only the caller's thread computes. The
/// default is one thread for each core of the machine. Results do not depend on the number of
/// threads.
const Threads* threads();

/// Sets the number of threads, including the caller's. Do not call it while operators run.
void set_threads(int count);

}  // namespace taper::eager
