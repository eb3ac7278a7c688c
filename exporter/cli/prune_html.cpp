#include "taper/exporter/cli/prune_html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "taper/exporter/cli/page_measure.h"
#include "taper/exporter/inspect/html.h"

namespace taper::cli {

/// The page, made of page/ by the build.
extern const std::string_view prune_page;

namespace {

using nlohmann::json;

json page_weight(const quantize::PrunedWeight& w) {
  json weight = page_measure(w.measure);
  weight.update({{"path", io::printable(w.path)},
                 {"sizes", w.sizes},
                 {"why", io::printable(w.why)},
                 {"elements", w.elements},
                 {"zeros", w.zeros},
                 {"zero_rows", w.zero_rows},
                 {"after", w.bytes}});
  return weight;
}

}  // namespace

void write_prune_html(std::ostream& out, const std::string& title,
                      const quantize::PruneReport& report) {
  json weights = json::array();
  for (const quantize::PrunedWeight* w : report.by_harm()) weights.push_back(page_weight(*w));
  const json data{{"title", io::printable(title)},
                  {"facts", page_facts(report)},
                  {"method", report.how.substr(0, report.how.find(' '))},
                  {"weights", weights}};
  inspect::write_page(out, prune_page, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
