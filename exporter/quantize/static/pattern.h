#pragma once
#include <string_view>

namespace taper::quantize {

/// Whether `text` has the form of `pattern`, with `*` for any characters and `?` for one.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace taper::quantize
