// A report about quantized weights as a page for a browser.
#pragma once
#include <ostream>
#include <string>

#include "taper/exporter/quantize/report.h"

namespace taper::cli {

/// One file that needs no network.
void write_quantize_html(std::ostream& out, const std::string& title,
                         const quantize::Report& report);

}  // namespace taper::cli
