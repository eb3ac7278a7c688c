#include "taper/exporter/cli/quantize_html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "taper/exporter/cli/page_measure.h"
#include "taper/exporter/inspect/html.h"

namespace taper::cli {

/// The page, made of page/ by the build.
extern const std::string_view quantize_page;

namespace {

using nlohmann::json;

/// Of the modules that read a weight, which stand behind the readers in parentheses. null: unknown.
json microseconds(const quantize::WeightReport& w, const std::map<std::string, double>& times) {
  double sum = 0;
  for (const std::string& reader : w.readers) {
    const size_t open = reader.rfind('('), close = reader.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) return nullptr;
    const auto found = times.find(reader.substr(open + 1, close - open - 1));
    if (found == times.end()) return nullptr;
    sum += found->second;
  }
  return w.readers.empty() ? json(nullptr) : json(sum);
}

json page_weight(const quantize::WeightReport& w, const std::map<std::string, double>& times) {
  std::vector<std::string> readers;
  for (const std::string& r : w.readers) readers.push_back(io::printable(r));
  std::string remarks;
  if (w.padded_to > 0) remarks += ", rows padded to " + std::to_string(w.padded_to);
  if (w.zero_rows > 0) remarks += ", " + io::counted(w.zero_rows, "row") + " of zeros";
  json weight = page_measure(w.measure);
  weight.update({{"path", io::printable(w.path)},
                 {"readers", readers},
                 {"sizes", w.sizes},
                 {"remarks", remarks},
                 {"scheme", w.scheme},
                 {"why", io::printable(w.why)},
                 {"before", w.bytes_before},
                 {"after", w.bytes_after},
                 {"us", microseconds(w, times)}});
  return weight;
}

}  // namespace

void write_quantize_html(std::ostream& out, const std::string& title,
                         const quantize::Report& report,
                         const std::map<std::string, double>& times) {
  json weights = json::array();
  for (const quantize::WeightReport* w : report.by_harm())
    weights.push_back(page_weight(*w, times));
  const json data{{"title", io::printable(title)},
                  {"facts", page_facts(report)},
                  {"samples", report.samples},
                  {"weights", weights}};
  inspect::write_page(out, quantize_page,
                      data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
