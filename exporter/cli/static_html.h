// A report about static integers as a page for a browser.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "taper/exporter/quantize/static/static.h"

namespace taper::cli {

/// `facts` are lines above the tables. One file that needs no network.
void write_static_html(std::ostream& out, const std::string& title,
                       const std::vector<std::string>& facts, const quantize::Ranges& ranges,
                       const quantize::Sensitivity& sensitivity,
                       const std::vector<quantize::Decision>& decisions);

}  // namespace taper::cli
