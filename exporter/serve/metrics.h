#pragma once
#include <string>

#include "taper/exporter/serve/engine.h"

namespace taper::serve {

/// The counts in the text format of Prometheus.
std::string metrics_text(const EngineCounts& counts);

}  // namespace taper::serve
