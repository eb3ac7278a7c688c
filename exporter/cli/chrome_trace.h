// Profiles as trace files: open them in https://ui.perfetto.dev or chrome://tracing.
#pragma once
#include <iosfwd>
#include <string>

#include "taper/exporter/cli/timing.h"

namespace taper::cli {

/// Writes every event of a timing in the Trace Event Format, as "complete" events. Times are
/// microseconds since the first event. Each queue is a track.
void write_chrome_trace(std::ostream& out, const Timing& timing, const std::string& method);

}  // namespace taper::cli
