#include <algorithm>
#include <cmath>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;
using Convolution = ir::Call<ops::taper_convolution>;

bool are_all(const std::vector<Dim>& list, int64_t n) {
  return std::ranges::all_of(list, [&](const Dim& d) { return same(d, n); });
}

/// Whether kernels of the target read transformed filters. The others would transform them in each
/// call.
bool has_kernels(const target::KernelTable& kernels) {
  return std::ranges::any_of(kernels.all(), [](const Kernel* k) {
    return k->op == &ops::taper_winograd_convolution && k->packs();
  });
}

bool is_by_3x3(const Node& node) {
  const Convolution conv(node);
  const ir::Type& weight = conv.get<"weight">()->type;
  return same(weight.sizes[2], 3) && same(weight.sizes[3], 3) && same(conv.get<"groups">(), 1) &&
         are_all(conv.get<"stride">(), 1) && are_all(conv.get<"dilation">(), 1);
}

/// Why the plain convolution is faster; empty: it is not. Measured on AMD Zen 4 (AVX-512):
/// docs/performance.md, "Winograd".
std::string why_slower(const Node& node) {
  const ir::Type& weight = Convolution(node).get<"weight">()->type;
  constexpr int64_t least_channels = 16;
  for (const int d : {0, 1})
    if (weight.sizes[d].value() < least_channels)
      return "it has fewer than " + std::to_string(least_channels) + " channels";
  const ir::Type& out = node.result()->type;
  double waste = 1;  // what tiles of 2 x 2 compute beyond the image
  for (const int d : {1, 2}) {
    const double size = static_cast<double>(out.sizes[d].upper());
    waste *= 2 * std::ceil(size / 2) / size;
  }
  return waste > 1.4 ? "its image is small" : "";
}

}  // namespace

int winograd(ir::Graph& graph, PassContext& context) {
  if (!has_kernels(context.kernels)) return 0;
  int replaced = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    Node& node = *at++;
    if (node.op != &ops::taper_convolution || !is_by_3x3(node)) continue;
    const Convolution conv(node);
    const Value* weight = conv.get<"weight">();
    if (weight->origin != Value::Origin::constant || weight->users.size() > 1) {
      context.declined(node, "its weight is no whole constant, or has other users");
      continue;
    }
    if (const std::string why = why_slower(node); !why.empty()) {
      context.declined(node, why);
      continue;
    }
    const auto& arguments = node.arguments;
    Value* result =
        ir::insert_before(
            graph, &node, ops::taper_winograd_convolution,
            {conv.get<"input">(), conv.get<"weight">(), arguments[Convolution::position<"bias">],
             conv.get<"padding">(), arguments[Convolution::position<"others">],
             arguments[Convolution::position<"program">],
             arguments[Convolution::position<"constants">]},
            node.location, node.module)
            ->result();
    graph.replace_uses(node.result(), result);
    graph.swap_names(node.result(), result);
    graph.erase(&node);
    ++replaced;
  }
  return replaced;
}

}  // namespace taper::passes
