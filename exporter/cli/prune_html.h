// A report about pruned weights as a page for a browser.
#pragma once
#include <ostream>
#include <string>

#include "taper/exporter/quantize/prune.h"

namespace taper::cli {

/// One file that needs no network.
void write_prune_html(std::ostream& out, const std::string& title,
                      const quantize::PruneReport& report);

}  // namespace taper::cli
