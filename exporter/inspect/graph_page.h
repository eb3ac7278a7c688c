// The page that shows graphs: the HTML, style and scripts of `page/` in one text.
#pragma once
#include <string_view>

namespace taper::inspect {

/// Contains "{{data}}" in the place of the data. The build generates its .cpp.
extern const std::string_view graph_page;

}  // namespace taper::inspect
