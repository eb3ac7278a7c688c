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

json page_weight(const quantize::WeightReport& w) {
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
                 {"after", w.bytes_after}});
  return weight;
}

}  // namespace

void write_quantize_html(std::ostream& out, const std::string& title,
                         const quantize::Report& report) {
  json weights = json::array();
  for (const quantize::WeightReport* w : report.by_harm()) weights.push_back(page_weight(*w));
  const json data{{"title", io::printable(title)},
                  {"facts", page_facts(report)},
                  {"samples", report.samples},
                  {"weights", weights}};
  inspect::write_page(out, quantize_page,
                      data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
