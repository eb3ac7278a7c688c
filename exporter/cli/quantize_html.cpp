#include "taper/exporter/cli/quantize_html.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "taper/exporter/inspect/html.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {

/// The page, made of page/ by the build.
extern const std::string_view quantize_page;

namespace {

using nlohmann::json;

/// JSON has no infinity: null stands for a weight without errors.
json decibels(double value) { return std::isfinite(value) ? json(value) : json(); }

json page_weight(const quantize::WeightReport& w) {
  const quantize::Measure& m = w.measure;
  std::vector<std::string> readers;
  for (const std::string& r : w.readers) readers.push_back(io::printable(r));
  std::string remarks;
  if (w.padded_to > 0) remarks += ", rows padded to " + std::to_string(w.padded_to);
  if (w.zero_rows > 0) remarks += ", " + io::counted(w.zero_rows, "row") + " of zeros";
  return {{"path", io::printable(w.path)},
          {"readers", readers},
          {"sizes", w.sizes},
          {"remarks", remarks},
          {"scheme", w.scheme},
          {"why", io::printable(w.why)},
          {"before", w.bytes_before},
          {"after", w.bytes_after},
          {"sqnr_db", decibels(m.sqnr_db())},
          {"has_output", m.has_output()},
          {"output_db", m.has_output() ? decibels(m.output_sqnr_db()) : json()},
          {"harm_db", decibels(m.harm_db())},
          {"cosine", m.cosine()},
          {"most", m.most},
          {"histogram", m.histogram}};
}

}  // namespace

void write_quantize_html(std::ostream& out, const std::string& title,
                         const quantize::Report& report) {
  json weights = json::array(), facts = json::array();
  for (const quantize::WeightReport* w : report.by_harm()) weights.push_back(page_weight(*w));
  std::ostringstream sum;
  quantize::print_sum(sum, report);
  facts.push_back(sum.str().substr(2, sum.str().size() - 3));  // without blanks and end of line
  for (const std::string& note : report.notes) facts.push_back(io::printable(note));
  const json data{{"title", io::printable(title)},
                  {"facts", facts},
                  {"samples", report.samples},
                  {"weights", weights}};
  inspect::write_page(out, quantize_page,
                      data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
