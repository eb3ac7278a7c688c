// Prints a comparison for people.
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/io/format_text.h"

namespace taper::compare {
namespace {

constexpr int number_width = 11;

// ---- parts of lines

std::string number_text(double x, int precision = 1) {
  if (x == 0) return "0";
  std::ostringstream text;
  text << std::scientific << std::setprecision(precision) << x;
  return text.str();
}

std::string ulp_text(double ulp) {
  constexpr double readable = 1e7;
  return ulp < readable ? std::to_string(static_cast<int64_t>(ulp)) : number_text(ulp, 0);
}

std::string cosine_text(double cosine) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(6) << cosine;
  return text.str();
}

/// The text of the run that has one.
const std::string& known(const std::string& want, const std::string& got) {
  return want.empty() ? got : want;
}
const std::string& module_of(const Pair& p) { return known(p.want->module, p.got->module); }
const std::string& source_of(const Pair& p) { return known(p.want->source, p.got->source); }

/// The operator of a pair: "conv2d", "relu as taper::pointwise".
std::string operator_text(const Pair& p) {
  const std::string &want = p.want->op, &got = p.got->op;
  return want.empty() || got.empty() || want == got ? known(want, got) : want + " as " + got;
}

/// What the numbers do not show.
std::string remark(const Measure& m) {
  const io::Difference& d = m.difference;
  if (!d.other.empty()) return d.other;
  if (!std::isinf(d.absolute)) return "";
  std::ostringstream text;
  text << "element " << d.element << " is " << d.got << ", not " << d.want;
  return text.str();
}

// ---- tables

/// Name, operator, line, module and remark.
using Texts = std::array<std::string, 5>;
struct Row {
  const Measure* measure;
  Texts texts;
};

Row row_of_output(const Pair& p) { return {&p.measure, {p.name, "", "", "", remark(p.measure)}}; }
Row row_of_node(const Pair& p) {
  return {&p.measure, {p.name, operator_text(p), source_of(p), module_of(p), remark(p.measure)}};
}

void print_heading(std::ostream& out, const std::string& what) {
  for (const char* title : {"max |diff|", "relative", "ULP", "cosine"})
    out << std::setw(number_width) << title;
  out << "  " << what << '\n';
}

void print_rows(std::ostream& out, std::vector<Row> rows) {
  std::array<size_t, std::tuple_size_v<Texts>> widths{};
  for (Row& row : rows)
    for (size_t i = 0; i < widths.size(); ++i) {
      row.texts[i] = io::printable(row.texts[i]);
      widths[i] = std::max(widths[i], row.texts[i].size());
    }
  for (const Row& row : rows) {
    const Measure& m = *row.measure;
    const bool has_numbers = m.difference.other.empty();
    const std::string numbers[] = {
        has_numbers ? number_text(m.difference.absolute) : "-",
        has_numbers ? number_text(m.difference.relative) : "-",
        m.ulp ? ulp_text(*m.ulp) : "-",
        m.cosine ? cosine_text(*m.cosine) : "-",
    };
    for (const std::string& number : numbers) out << std::setw(number_width) << number;
    std::string texts;
    for (size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > 0)
        texts += "  " + row.texts[i] + std::string(widths[i] - row.texts[i].size(), ' ');
    out << texts.substr(0, texts.find_last_not_of(' ') + 1) << '\n';
  }
}

std::vector<Row> rows_of(const std::vector<const Pair*>& nodes) {
  std::vector<Row> rows;
  for (const Pair* p : nodes) rows.push_back(row_of_node(*p));
  return rows;
}

/// "features.3.conv.1.0 (conv2d, mobilenetv2.py:62)   max |difference| 2.4e-06, cosine 1.000000"
std::string line_of(const Pair& p) {
  const std::string& module = module_of(p);
  std::vector<std::string> inside{operator_text(p)};
  if (!source_of(p).empty()) inside.push_back(source_of(p));
  std::string text = (module.empty() ? p.name : module) + " (" + io::joined(inside) + ")   ";
  const Measure& m = p.measure;
  if (!m.difference.other.empty()) return io::printable(text + m.difference.other);
  text += "max |difference| " + number_text(m.difference.absolute);
  if (m.cosine) text += ", cosine " + cosine_text(*m.cosine);
  return io::printable(text);
}

}  // namespace

void print(std::ostream& out, const Comparison& c, const PrintOptions& options) {
  std::vector<const Pair*> worst = c.worst(options.worst);
  std::erase_if(worst, [](const Pair* p) { return p->measure.difference.absolute == 0; });
  if (!worst.empty())
    out << "worst: " << line_of(*worst.front()) << '\n';
  else if (!c.nodes.empty())
    out << "every node gives the same results\n";

  out << '\n';
  print_heading(out, "output");
  std::vector<Row> outputs;
  for (const Pair& p : c.outputs) outputs.push_back(row_of_output(p));
  print_rows(out, outputs);

  std::vector<const Pair*> shown = worst;
  if (options.all) {
    shown.clear();
    for (const Pair& p : c.nodes) shown.push_back(&p);
  }
  if (!shown.empty()) {
    out << '\n';
    print_heading(out, options.all ? "node" : "worst nodes");
    print_rows(out, rows_of(shown));
  }

  if (const Pair* first = c.first_beyond()) {
    std::ostringstream heading;
    heading << "first node beyond " << c.tolerance;
    out << '\n';
    print_heading(out, heading.str());
    print_rows(out, rows_of({first}));
  }

  if (c.nodes.empty()) {
    out << "\nonly outputs are compared: the files have no node in common\n";
    return;
  }
  out << '\n' << io::counted(static_cast<int64_t>(c.nodes.size()), "node") << " compared";
  if (c.first_beyond() == nullptr) out << ", all within " << c.tolerance;
  out << "; without a counterpart (views, fused, folded): " << c.only_in_want << " of "
      << io::printable(c.want) << ", " << c.only_in_got << " of " << io::printable(c.got) << '\n';
}

}  // namespace taper::compare
