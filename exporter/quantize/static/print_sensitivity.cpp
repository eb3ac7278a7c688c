#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/static/sensitivity.h"

namespace taper::quantize {
namespace {

std::string text(const char* format, double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, number);
  return buffer;
}

std::string decibel_text(double db) {
  return std::isinf(db) ? (db > 0 ? "   exact" : "    none") : text("%8.1f", db);
}

}  // namespace

void print(std::ostream& out, const Sensitivity& sensitivity, size_t most) {
  const size_t all = sensitivity.nodes.size();
  const size_t count = most == 0 ? all : std::min(most, all);
  out << "outputs: SQNR " << text("%.1f", sensitivity.outputs_db) << " dB, cosine "
      << text("%.5f", sensitivity.outputs_cosine) << '\n'
      << " share  alone dB   here dB   cosine  node\n";
  for (size_t i = 0; i < count; ++i) {
    const NodeError& n = sensitivity.nodes[i];
    out << text("%5.1f", 100 * n.share) << " %  " << decibel_text(n.alone_db) << "  "
        << decibel_text(n.sqnr_db) << "  " << text("%7.5f", n.cosine) << "  %" << n.name << ", "
        << n.node << '\n';
  }
  if (count < all)
    out << "and " << io::counted(static_cast<int64_t>(all - count), "node") << " of less harm\n";
}

}  // namespace taper::quantize
