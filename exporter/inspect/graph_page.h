// The page that shows graphs, as `page/` has it: HTML, style and scripts in one text.
#pragma once
#include <string_view>

namespace taper::inspect {

/// Has "{{graphs}}" where the data goes. The build makes its .cpp.
extern const std::string_view graph_page;

}  // namespace taper::inspect
