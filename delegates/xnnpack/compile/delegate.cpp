#include "taper/delegates/xnnpack/compile/delegate.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "taper/delegates/xnnpack/compile/rounded.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::delegates::xnnpack {
namespace {

/// Throws if the runtime would refuse the part. The sizes are known if the body has no symbols.
void require_sound(const partition::Compiled& compiled, const ir::Graph& body) {
  const Span<const std::byte> blob(compiled.blob.data(),
                                   static_cast<index_t>(compiled.blob.size()));
  const auto refuse = [](const std::string& what) {
    throw ExportError("xnnpack: " + what +
                      ". This is an error of the delegate: export without --backend xnnpack");
  };
  if (!Part::is_valid(blob))
    refuse("it cannot run the part that begins with " + ir::describe(body.nodes().front()));
  const Part part(blob);
  std::vector<Shape> shapes(static_cast<size_t>(part.values()));
  auto shape = shapes.begin();
  for (const ir::Input& input : body.inputs()) {
    const ir::Type& type = input.value->type;
    shape->rank = type.rank;
    for (int d = 0; d < type.rank; ++d) {
      if (!type.sizes[d].is_constant()) return;
      shape->sizes[d] = static_cast<index_t>(type.sizes[d].value());
    }
    ++shape;
  }
  for (const partition::Compiled::Constant& constant : compiled.constants) {
    shape->rank = static_cast<int32_t>(constant.payload->sizes.size());
    std::ranges::copy(constant.payload->sizes, shape->sizes);
    ++shape;
  }
  const index_t wrong = part.infer(shapes.data());
  if (wrong >= 0) refuse(std::string("it cannot run ") + part.node(wrong).source);
}

}  // namespace

std::string XnnpackDelegate::name() const { return name_of(precision_); }
uint32_t XnnpackDelegate::version() const { return blob_version; }
DType XnnpackDelegate::rounds_to() const {
  return precision_ == Precision::f16 ? DType::f16 : DType::f32;
}

void XnnpackDelegate::prepare(ir::Graph& graph) const { number_masks(graph); }

std::string XnnpackDelegate::refuses(const ir::Node& node) const {
  // one such node would keep its whole part in f32
  const bool has_kernel = node.op != &ops::exp && node.op != &ops::gelu && node.op != &ops::log;
  if (precision_ == Precision::f16 && !has_kernel) return "the library has no such kernel in f16";
  return refusal(node);
}

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

bool XnnpackDelegate::stands_alone(const ir::Node& node) const {
  return node.op == &ops::_grouped_mm;
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

uint64_t XnnpackDelegate::Observer::now_us() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
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
  partition::Compiled compiled = out.finish();
  require_sound(compiled, body);
  return compiled;
}

}  // namespace taper::delegates::xnnpack
