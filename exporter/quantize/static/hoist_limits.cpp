#include "taper/exporter/quantize/static/hoist_limits.h"

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/roles.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

/// The node that gives `value`, if nothing but one node reads it.
Node* only_source_of(const ir::Graph& graph, const Value* value) {
  return passes::has_one_reader(graph, value) ? value->node : nullptr;
}

/// The max pool before the limit, if a product or a sum is in front of it.
Node* pool_before(const ir::Graph& graph, const Node& limit) {
  Node* pool = only_source_of(graph, std::get<Value*>(limit.arguments[0]));
  if (pool == nullptr || (pool->op != &ops::max_pool2d && pool->op != &ops::max_pool1d))
    return nullptr;
  const Node* source = only_source_of(graph, std::get<Value*>(pool->arguments[0]));
  if (source == nullptr) return nullptr;
  const Role role = role_of(*source->op);
  return role == Role::product || role == Role::arithmetic ? pool : nullptr;
}

}  // namespace

int hoist_limits(ir::Graph& graph) {
  int moved = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    Node& limit = *at++;
    if (role_of(*limit.op) != Role::limit) continue;
    Node* pool = pool_before(graph, limit);
    if (pool == nullptr) continue;
    std::vector<ir::Argument> arguments = limit.arguments;
    arguments[0] = pool->arguments[0];
    const Node* early = ir::insert_before(graph, pool, *limit.op, std::move(arguments),
                                          limit.location, limit.module);
    graph.set_argument(pool, 0, early->result());
    graph.replace_uses(limit.result(), pool->result());
    graph.erase(&limit);
    ++moved;
  }
  return moved;
}

}  // namespace taper::quantize
