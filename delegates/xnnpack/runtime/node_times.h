// What the library says of the nodes of a runtime that it timed.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/delegates/xnnpack/runtime/node_observer.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/precision.h"

namespace taper::delegates::xnnpack {

/// Tells the observer about the last run. The runtime was made with XNN_FLAG_BASIC_PROFILING, of
/// the part in this precision. Says nothing if there is no memory.
void tell_node_times(xnn_runtime_t runtime, const Part& part, Precision precision, Memory& memory,
                     NodeObserver& observer);

}  // namespace taper::delegates::xnnpack
