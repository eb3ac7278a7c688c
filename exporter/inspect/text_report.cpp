#include <algorithm>
#include <iomanip>
#include <sstream>

#include "taper/exporter/inspect/summary.h"
#include "taper/exporter/io/format_text.h"

namespace taper::inspect {
namespace {

constexpr int label_width = 12;

// Prints "    inputs      images: f32[…]", with further lines below the first.
void section(std::ostream& out, const std::string& label, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    out << "  " << std::left << std::setw(label_width) << (i == 0 ? label : "")
        << io::printable(lines[i]) << '\n';
}

// Makes columns. Each is as wide as its widest entry; the last one is not padded.
std::vector<std::string> in_columns(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    std::ranges::transform(row, row.begin(), io::printable);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> operators_text(const MethodSummary& m) {
  std::vector<std::pair<std::string, int>> counts(m.operators.begin(), m.operators.end());
  std::ranges::stable_sort(counts, std::ranges::greater(), &std::pair<std::string, int>::second);
  std::vector<std::string> parts, lines{io::counted(m.instructions, "instruction")};
  for (const auto& [op, count] : counts) parts.push_back(std::to_string(count) + " " + op);
  // four operators in a line
  for (size_t i = 0; i < parts.size(); i += 4)
    lines.push_back("  " + io::joined({parts.begin() + static_cast<std::ptrdiff_t>(i),
                                       parts.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(i + 4, parts.size()))}));
  return lines;
}

std::vector<std::string> memory_text(const MethodSummary& m) {
  const auto bytes = [](size_t n) { return io::bytes_text(static_cast<int64_t>(n)); };
  std::vector<std::vector<std::string>> rows{{"activations", bytes(m.memory.activations),
                                              "lower bound " + io::bytes_text(m.lower_bound_bytes)},
                                             {"inputs and outputs", bytes(m.memory.io)},
                                             {"scratch", bytes(m.memory.scratch)},
                                             {"tables", bytes(m.memory.metadata)},
                                             {"total", bytes(m.memory.total())}};
  if (!m.symbols.empty()) rows.back().push_back("with every symbol at its maximum");
  for (int i = 1; i < max_spaces; ++i)
    if (m.memory.device[i] > 0)
      rows.push_back({"on device " + std::to_string(i), bytes(m.memory.device[i])});
  return in_columns(rows);
}

void print_method(std::ostream& out, const MethodSummary& m) {
  out << "\nmethod " << io::printable(m.name) << '\n';
  section(out, "inputs", m.inputs);
  section(out, "outputs", m.outputs);
  std::vector<std::string> symbols;
  for (const SymbolSummary& s : m.symbols)
    symbols.push_back(s.name + " in " + std::to_string(s.minimum) + ".." +
                      std::to_string(s.maximum) + "  (" + s.source + ")");
  section(out, "symbols", symbols);
  section(out, "checks", m.checks);
  section(out, "operators", operators_text(m));
  if (!m.states_written.empty())
    section(out, "writes", {io::counted(static_cast<int64_t>(m.states_written.size()), "state")});
  section(out, "memory", memory_text(m));
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Summary& s) {
  out << io::printable(s.path) << "   " << io::bytes_text(s.file_bytes) << "   format "
      << s.format_version;
  if (!s.producer.empty()) out << ", by " << io::printable(s.producer);
  if (!s.targets.empty()) out << ", for " << io::printable(io::joined(s.targets));
  if (s.exact) out << ", exact";
  out << '\n';
  for (const MethodSummary& m : s.methods) print_method(out, m);

  std::vector<std::vector<std::string>> rows;
  if (!s.states.empty()) {
    out << "\nstates   " << s.states.size() << ", in each session "
        << io::bytes_text(s.session_bytes) << '\n';
    for (const StateSummary& state : s.states)
      rows.push_back({"  " + state.path, state.kind, io::bytes_text(state.size_bytes), state.type});
    for (const std::string& line : in_columns(rows)) out << line << '\n';
  }

  out << "\nkernels   " << s.kernels.size() << "; on the right: the record for this machine\n";
  rows.clear();
  for (const KernelSummary& k : s.kernels)
    rows.push_back({"  " + k.signature, io::counted(k.instructions, "use"), k.record->name});
  for (const std::string& line : in_columns(rows)) out << line << '\n';

  if (s.packed_bytes > 0)
    out << "\npacked weights   " << io::bytes_text(s.packed_bytes)
        << ", which a load on this machine fills\n";

  rows.clear();
  for (const TestSummary& t : s.tests) {
    std::ostringstream tolerance;
    tolerance << "within " << t.relative_tolerance;
    rows.push_back({"  " + t.method, t.name, io::bytes_text(t.size_bytes), tolerance.str()});
  }
  if (!rows.empty()) out << "\ntests   " << rows.size() << ", which `taper check` runs\n";
  for (const std::string& line : in_columns(rows)) out << line << '\n';

  rows.clear();
  for (const AssetSummary& a : s.assets)
    rows.push_back({"  " + a.name, a.media_type, io::bytes_text(a.size_bytes)});
  if (!rows.empty()) out << "\nassets   " << rows.size() << '\n';
  for (const std::string& line : in_columns(rows)) out << line << '\n';

  out << "\nsize   " << io::bytes_text(s.file_bytes) << '\n';
  rows.clear();
  for (const PartSummary& p : s.parts)
    rows.push_back(
        {"  " + p.name, io::bytes_text(p.size_bytes),
         io::percent_text(static_cast<double>(p.size_bytes), static_cast<double>(s.file_bytes))});
  for (const std::string& line : in_columns(rows)) out << line << '\n';

  rows.clear();
  for (const ConstantSummary& c : s.constants)
    rows.push_back({"    " + (c.path.empty() ? "(no name)" : c.path), io::bytes_text(c.size_bytes),
                    c.type, io::printable(c.outside) + c.layout});
  constexpr size_t shown = 20;
  std::vector<std::string> lines = in_columns(rows);
  if (!lines.empty()) out << "  constants:\n";
  for (size_t i = 0; i < std::min(shown, lines.size()); ++i) out << lines[i] << '\n';
  if (lines.size() > shown)
    out << "    and " << lines.size() - shown << " more; --json lists them\n";
  return out;
}

}  // namespace taper::inspect
