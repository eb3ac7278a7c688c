#include "taper/delegates/xnnpack/compile/delegate.h"

#include <algorithm>
#include <set>

#include "taper/delegates/xnnpack/compile/rounded.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::delegates::xnnpack {

std::string XnnpackDelegate::name() const { return backend_name; }
uint32_t XnnpackDelegate::version() const { return blob_version; }

void XnnpackDelegate::prepare(ir::Graph& graph) const { number_masks(graph); }

std::string XnnpackDelegate::refuses(const ir::Node& node) const { return refusal(node); }

std::vector<partition::Group> XnnpackDelegate::groups(ir::Graph& graph) const {
  passes::ConstantValues constants(graph);
  std::vector<partition::Group> groups;
  std::set<const ir::Node*> grouped;
  // the largest group of a product ends last
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (grouped.contains(&*node)) continue;
    const auto product = rounded_product(*node, constants);
    if (!product) continue;
    groups.push_back(product->nodes);
    grouped.insert(product->nodes.begin(), product->nodes.end());
  }
  return groups;
}

bool XnnpackDelegate::pays(const std::vector<const ir::Node*>& part) const {
  return std::ranges::any_of(part, [](const ir::Node* n) { return find_row(*n->op)->is_heavy; });
}

void XnnpackDelegate::Observer::ran(const Node* nodes, size_t count) {
  std::vector<partition::NodeTime> times;
  for (size_t i = 0; i < count; ++i)
    times.push_back({nodes[i].name, nodes[i].source, static_cast<double>(nodes[i].us)});
  take(times);
}

void XnnpackDelegate::time_nodes(partition::TakeNodeTimes take) const {
  if (backend_ == nullptr) return;
  observer_.take = std::move(take);
  backend_->observe(observer_.take ? &observer_ : nullptr);
}

partition::Compiled XnnpackDelegate::compile(const ir::Graph& body) const {
  Lowering out(body);
  for (const ir::Node& node : body.nodes()) {
    const bool shows_constant = node.op->category == Category::view && is_constant(node.result());
    if (shows_constant) continue;
    out.set_source(
        ir::describe(ir::is_delegate(node) ? *node.bodies[0]->outputs()[0].value->node : node));
    find_row(*node.op)->lower(out, node);
  }
  return out.finish();
}

}  // namespace taper::delegates::xnnpack
