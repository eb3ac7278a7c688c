// Profiles as trace files: open them in https://ui.perfetto.dev or chrome://tracing.
#pragma once
#include <iosfwd>
#include <string>

#include "taper/exporter/cli/timing.h"

namespace taper::cli {

/// Every event of a timing in the Trace Event Format, as "complete" events in microseconds since
/// the first one. One track a queue.
void write_chrome_trace(std::ostream& out, const Timing& timing, const std::string& method);

}  // namespace taper::cli
