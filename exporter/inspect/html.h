// Pages for a browser: one file that holds its data and needs no network.
#pragma once
#include <iosfwd>
#include <string>
#include <string_view>

namespace taper::inspect {

/// Writes `page` with `json` in the place of "{{data}}", which stands in a script element. Whatever
/// the texts in `json` are, they cannot end this element. The page's scripts must show them as text
/// nodes and attribute values only.
void write_page(std::ostream& out, std::string_view page, const std::string& json);

}  // namespace taper::inspect
