// A report about quantized weights as a page for a browser.
#pragma once
#include <map>
#include <ostream>
#include <string>

#include "taper/exporter/quantize/report.h"

namespace taper::cli {

/// One file that needs no network. `times`: microseconds of modules (module_times.h), may be empty.
void write_quantize_html(std::ostream& out, const std::string& title,
                         const quantize::Report& report,
                         const std::map<std::string, double>& times);

}  // namespace taper::cli
