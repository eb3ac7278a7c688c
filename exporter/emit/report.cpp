#include "taper/exporter/emit/report.h"

#include <cstdio>
#include <ostream>

namespace taper::emit {
namespace {

std::string size_text(int64_t bytes) {
  char text[32];
  if (bytes < 10000)
    std::snprintf(text, sizeof text, "%d B", static_cast<int>(bytes));
  else if (bytes < 10000000)
    std::snprintf(text, sizeof text, "%.1f kB", static_cast<double>(bytes) / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts) s += (s.empty() ? "" : ", ") + p;
  return s;
}

std::string counted(int n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Report& r) {
  out << (r.path.empty() ? "program" : r.path) << "   " << size_text(r.file_bytes) << "   "
      << counted(static_cast<int>(r.methods.size()), "method") << (r.exact ? ", exact" : "")
      << '\n';
  for (const MethodReport& m : r.methods) {
    out << "  " << m.name << '(' << joined(m.inputs) << ") -> " << joined(m.outputs);
    for (const auto& s : m.symbols)
      out << "   " << s.name << " in " << s.minimum << ".." << s.maximum;
    out << "\n    " << counted(m.instructions, "instruction") << ", " << counted(m.views, "view")
        << ", " << m.clones << " copies inserted, " << m.reused_buffers << " results in place";
    if (m.states_in_place + m.states_copied > 0)
      out << ", " << m.states_in_place << " states written in place, " << m.states_copied
          << " copied";
    out << "\n    memory at the maximum: activations " << size_text(m.activation_bytes)
        << " (lower bound " << size_text(m.lower_bound_bytes) << "), inputs and outputs "
        << size_text(m.io_bytes) << '\n';
    for (const std::string& c : m.checks) out << "    check " << c << '\n';
  }
  return out << "  constants " << size_text(r.constant_bytes) << " mapped, states "
             << size_text(r.state_bytes) << ", metadata " << size_text(r.metadata_bytes)
             << ", debug " << size_text(r.debug_bytes) << '\n';
}

}  // namespace taper::emit
