#include "taper/exporter/quantize/report.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <utility>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/table.h"

namespace taper::quantize {
namespace {

using io::bytes_text;

std::string description(const WeightReport& w) {
  std::string text = io::printable(w.path) + " " + sizes_text(w.sizes);
  if (w.padded_to > 0) text += ", rows padded to " + std::to_string(w.padded_to);
  if (w.zero_rows > 0) text += ", " + io::counted(w.zero_rows, "row") + " of zeros";
  return text;
}

}  // namespace

int64_t Report::bytes_before() const {
  int64_t sum = 0;
  for (const WeightReport& w : weights) sum += w.bytes_before;
  return sum;
}
int64_t Report::bytes_after() const {
  int64_t sum = 0;
  for (const WeightReport& w : weights) sum += w.bytes_after;
  return sum;
}

double Report::bits() const {
  double elements = 0, bytes = 0;
  for (const WeightReport& w : weights) {
    if (!w.is_quantized()) continue;
    double n = 1;
    for (const int64_t s : w.sizes) n *= static_cast<double>(s);
    elements += n, bytes += static_cast<double>(w.bytes_after);
  }
  return elements > 0 ? 8 * bytes / elements : 0;
}

std::vector<const WeightReport*> Report::by_harm() const {
  std::vector<const WeightReport*> list;
  for (const WeightReport& w : weights) list.push_back(&w);
  // those that were left come behind all others
  const auto order = [](const WeightReport* w) {
    return std::pair(!w->is_quantized(), w->is_quantized() ? w->measure.harm_db() : 0);
  };
  std::ranges::stable_sort(list, {}, order);
  return list;
}

std::ostream& operator<<(std::ostream& out, const Report& r) {
  std::vector<std::vector<std::string>> lines = {{"scheme", "before", "after", "SQNR dB"}};
  if (r.samples > 0) lines[0].emplace_back("output dB");
  lines[0].insert(lines[0].end(), {"cosine", "weight, from the most harmed"});
  std::map<std::string, std::pair<int, int64_t>> left;  // by reason: weights, bytes
  for (const WeightReport* w : r.by_harm()) {
    if (!w->is_quantized()) {
      auto& [count, bytes] = left[w->why];
      ++count, bytes += w->bytes_after;
      continue;
    }
    std::vector<std::string>& line = lines.emplace_back();
    line = {w->scheme, bytes_text(w->bytes_before), bytes_text(w->bytes_after),
            number_text(w->measure.sqnr_db(), 1)};
    if (r.samples > 0)
      line.push_back(w->measure.has_output() ? number_text(w->measure.output_sqnr_db(), 1) : "");
    line.insert(line.end(), {number_text(w->measure.cosine(), 5), description(*w)});
  }
  if (lines.size() > 1) write_table(out, lines);
  for (const auto& [why, what] : left)
    out << "  left " << io::counted(what.first, "weight") << ", " << bytes_text(what.second) << ": "
        << io::printable(why) << '\n';
  for (const std::string& note : r.notes) out << "  " << io::printable(note) << '\n';
  print_sum(out, r);
  return out;
}

void print_sum(std::ostream& out, const Report& r) {
  const auto quantized = std::ranges::count_if(r.weights, &WeightReport::is_quantized);
  out << "  " << io::printable(r.recipe) << ": " << io::counted(quantized, "weight") << " of "
      << r.weights.size() << " in " << number_text(r.bits(), 2) << " bits an element, all weights "
      << bytes_text(r.bytes_before()) << " -> " << bytes_text(r.bytes_after());
  if (r.samples > 0) out << ", calibrated with " << io::counted(r.samples, "sample");
  out << '\n';
}

}  // namespace taper::quantize
