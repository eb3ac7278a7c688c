#include "taper/exporter/inspect/graph_html.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "taper/exporter/inspect/graph_page.h"
#include "taper/exporter/inspect/html.h"
#include "taper/exporter/inspect/module_tree.h"
#include "taper/exporter/io/format_text.h"

namespace taper::inspect {
namespace {

using nlohmann::json;

json texts(const std::vector<std::string>& lines) {
  json list = json::array();
  for (const std::string& line : lines) list.push_back(io::printable(line));
  return list;
}

/// Nodes are numbered in the order of the tree, as page/layout.js expects.
json as_json(const MethodGraph& graph) {
  constexpr const char* kinds[] = {"input", "output", "instruction", "delegated"};
  const ModuleTree tree = module_tree(graph);
  std::vector<int> number(graph.nodes.size());
  json nodes = json::array(), edges = json::array(), groups = json::array();
  for (const int n : tree.order) {
    const GraphNode& node = graph.nodes[n];
    number[n] = static_cast<int>(nodes.size());
    nodes.push_back({{"kind", kinds[static_cast<int>(node.kind)]},
                     {"title", io::printable(node.title)},
                     {"types", texts(node.types)},
                     {"lines", texts(node.lines)},
                     {"source", io::printable(node.source)},
                     {"module", io::printable(node.module)},
                     {"group", tree.group_of[n]}});
  }
  for (const auto* list : {&graph.edges, &graph.control})
    for (const GraphEdge& e : *list)
      edges.push_back({number[e.from], number[e.to], texts(e.types)});
  for (const ModuleGroup& g : tree.groups)
    groups.push_back(
        {{"parent", g.parent}, {"title", io::printable(g.title)}, {"path", io::printable(g.path)}});
  return {{"name", io::printable(graph.name)},
          {"nodes", std::move(nodes)},
          {"edges", std::move(edges)},
          {"groups", std::move(groups)}};
}

}  // namespace

void write_html(std::ostream& out, const std::string& title,
                const std::vector<MethodGraph>& graphs) {
  json data = {{"title", io::printable(title)}, {"graphs", json::array()}};
  for (const MethodGraph& g : graphs) data["graphs"].push_back(as_json(g));
  write_page(out, graph_page, data.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace taper::inspect
