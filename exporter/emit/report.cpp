#include "taper/exporter/emit/report.h"

#include <ostream>

#include "taper/exporter/io/format_text.h"

namespace taper::emit {

using io::bytes_text, io::counted, io::joined;

std::ostream& operator<<(std::ostream& out, const Report& r) {
  out << (r.path.empty() ? "program" : r.path) << "   " << bytes_text(r.file_bytes) << "   "
      << counted(static_cast<int64_t>(r.methods.size()), "method") << (r.exact ? ", exact" : "")
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
    out << "\n    memory at the maximum: activations " << bytes_text(m.activation_bytes)
        << " (lower bound " << bytes_text(m.lower_bound_bytes) << "), inputs and outputs "
        << bytes_text(m.io_bytes) << '\n';
    for (const std::string& c : m.checks) out << "    check " << c << '\n';
  }
  return out << "  constants " << bytes_text(r.constant_bytes) << " mapped, states "
             << bytes_text(r.state_bytes) << ", metadata " << bytes_text(r.metadata_bytes)
             << ", debug " << bytes_text(r.debug_bytes) << '\n';
}

}  // namespace taper::emit
