#include "taper/exporter/emit/report.h"

#include <algorithm>
#include <ostream>

#include "taper/exporter/io/format_text.h"

namespace taper::emit {

using io::bytes_text, io::counted, io::joined;

namespace {

/// "26 convolution, 25 relu, 3 max_pool2d_with_indices", the most frequent first.
std::string operators_text(const MethodReport& m) {
  std::vector<std::pair<std::string, int>> counts(m.operators.begin(), m.operators.end());
  std::ranges::stable_sort(counts, std::ranges::greater(), &std::pair<std::string, int>::second);
  std::vector<std::string> parts;
  for (const auto& [op, count] : counts) parts.push_back(std::to_string(count) + " " + op);
  constexpr size_t shown = 12;
  if (parts.size() > shown) {
    const size_t rest = parts.size() - shown;
    parts.resize(shown);
    parts.push_back("and " + std::to_string(rest) + " other operators");
  }
  return joined(parts);
}

}  // namespace

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
    if (m.concatenations_in_place > 0)
      out << ", " << m.concatenations_in_place << " concatenations in place";
    if (m.states_in_place + m.states_copied > 0)
      out << ", " << m.states_in_place << " states written in place, " << m.states_copied
          << " copied";
    if (m.border_transposes > 0)
      out << ", " << counted(m.border_transposes, "transpose") << " at borders of delegates";
    if (!m.operators.empty()) out << "\n    operators: " << operators_text(m);
    out << "\n    memory at the maximum: activations " << bytes_text(m.activation_bytes)
        << " (lower bound " << bytes_text(m.lower_bound_bytes) << "), inputs and outputs "
        << bytes_text(m.io_bytes) << '\n';
    for (const std::string& c : m.checks) out << "    check " << c << '\n';
  }
  out << "  constants " << bytes_text(r.constant_bytes) << " mapped, " << counted(r.states, "state")
      << ' ' << bytes_text(r.state_bytes) << ", metadata " << bytes_text(r.metadata_bytes)
      << ", debug " << bytes_text(r.debug_bytes);
  if (r.packed_constants > 0)
    out << ", " << counted(r.packed_constants, "weight") << " packed, "
        << bytes_text(r.packed_bytes);
  if (r.outside_bytes > 0)
    out << ", " << bytes_text(r.outside_bytes) << " in "
        << (r.weights.empty() ? "the model's files" : r.weights);
  if (r.packed_at_load > 0)
    out << ", " << counted(r.packed_at_load, "weight") << " to pack at load";
  if (r.tests > 0) out << ", " << counted(r.tests, "test") << ' ' << bytes_text(r.test_bytes);
  if (r.assets > 0) out << ", " << counted(r.assets, "asset") << ' ' << bytes_text(r.asset_bytes);
  out << '\n';
  for (const std::string& note : r.notes) out << "  " << io::printable(note) << '\n';
  return out;
}

}  // namespace taper::emit
