#include "taper/exporter/quantize/static/decision.h"

#include <algorithm>
#include <ostream>

#include "taper/exporter/io/format_text.h"

namespace taper::quantize {

void print(std::ostream& out, const std::vector<Decision>& decisions) {
  const auto quantized = std::ranges::count_if(decisions, &Decision::quantized);
  const auto all = static_cast<int64_t>(decisions.size());
  out << quantized << " of " << io::counted(all, "node") << " in int8";
  if (quantized < all) out << "; float are:";
  out << '\n';
  for (const Decision& d : decisions)
    if (!d.quantized) out << "  %" << d.name << ", " << d.node << ": " << d.why << '\n';
}

}  // namespace taper::quantize
