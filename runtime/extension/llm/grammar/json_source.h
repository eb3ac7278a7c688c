#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace taper::llm::json_text {

// Parts of a text of JSON that ends somewhere in its middle.

/// The item of the innermost array with which the text ends.
nlohmann::json last_item(const std::string& text);
/// The string that ends with the text.
std::string last_string(const std::string& text);

}  // namespace taper::llm::json_text
