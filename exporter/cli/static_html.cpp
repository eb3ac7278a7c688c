#include "taper/exporter/cli/static_html.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "taper/exporter/inspect/html.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/static/histogram.h"

namespace taper::cli {

/// The page, made of page/ by the build.
extern const std::string_view static_page;

namespace {

using nlohmann::json;

constexpr size_t bars = 48;

/// JSON has no infinity: null stands for a result without errors.
json finite(double value) { return std::isfinite(value) ? json(value) : json(); }

/// Counts of what was seen, in a few bars of one width. Zeros are left out: most results of a relu
/// are zeros, and nothing else would show.
std::vector<int64_t> bars_of(const quantize::Histogram& histogram) {
  std::vector<int64_t> counts(bars, 0);
  const size_t bins = histogram.counts().size();
  for (size_t i = 0; i < bins; ++i) counts[i * bars / bins] += histogram.counts()[i];
  return counts;
}

json page_range(const quantize::Range& range) {
  json r = {{"low", range.grid.low()},
            {"high", range.grid.high()},
            {"scale", range.grid.scale},
            {"zero_point", range.grid.zero_point}};
  if (range.histogram == nullptr || range.histogram->counts().empty()) return r;
  const quantize::Histogram& h = *range.histogram;
  r["counts"] = bars_of(h);
  r["first"] = h.edge(0), r["last"] = h.edge(h.counts().size());
  r["clipped"] = h.part_outside(std::min(range.grid.low(), 0.0), std::max(range.grid.high(), 0.0));
  return r;
}

}  // namespace

void write_static_html(std::ostream& out, const std::string& title,
                       const std::vector<std::string>& facts, const quantize::Ranges& ranges,
                       const quantize::Sensitivity& sensitivity,
                       const std::vector<quantize::Decision>& decisions) {
  json nodes = json::array(), floats = json::array(), lines = json::array();
  for (const quantize::NodeError& n : sensitivity.nodes) {
    json node = {{"name", io::printable(n.name)},  {"node", io::printable(n.node)},
                 {"here_db", finite(n.sqnr_db)},   {"cosine", finite(n.cosine)},
                 {"alone_db", finite(n.alone_db)}, {"share", finite(n.share)}};
    if (const auto found = ranges.values.find(n.name); found != ranges.values.end())
      node["range"] = page_range(found->second);
    nodes.push_back(std::move(node));
  }
  for (const quantize::Decision& d : decisions)
    if (!d.quantized)
      floats.push_back({{"node", io::printable(d.node)}, {"why", io::printable(d.why)}});
  for (const std::string& fact : facts) lines.push_back(io::printable(fact));
  const json data{{"title", io::printable(title)},
                  {"facts", lines},
                  {"outputs_db", finite(sensitivity.outputs_db)},
                  {"outputs_cosine", sensitivity.outputs_cosine},
                  {"nodes", nodes},
                  {"floats", floats}};
  inspect::write_page(out, static_page, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::cli
