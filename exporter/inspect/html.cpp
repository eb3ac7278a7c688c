#include "taper/exporter/inspect/html.h"

#include <ostream>

namespace taper::inspect {
namespace {

/// JSON without "<", which means the same. So it cannot end the script element around it.
std::string inside_script(const std::string& json) {
  std::string text;
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

}  // namespace

void write_page(std::ostream& out, std::string_view page, const std::string& json) {
  constexpr std::string_view place = "{{data}}";
  const size_t at = page.find(place);
  out << page.substr(0, at) << inside_script(json) << page.substr(at + place.size());
}

}  // namespace taper::inspect
