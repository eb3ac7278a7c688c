#include "taper/exporter/importers/pt2/complex128.h"

#include <algorithm>

#include "taper/exporter/eager/promotion.h"

namespace taper::pt2 {
namespace {

using eager::Boxed;
using eager::Tensor;

Tensor narrowed(const Tensor& t) {
  return t.defined() && t.dtype() == DType::f64 ? eager::cast(t, DType::f32) : t;
}

}  // namespace

bool touches_complex128(const Graph& graph, const Node& node) {
  const auto is_one = [&](const Argument& argument) {
    if (const auto* dtype = std::get_if<ScalarType>(&argument)) return dtype->is_complex128();
    return std::ranges::any_of(tensors_in(argument), [&](const TensorName& t) {
      const auto at = graph.tensor_values.find(t.name);
      return at != graph.tensor_values.end() && at->second.dtype.is_complex128();
    });
  };
  return std::ranges::any_of(node.outputs, is_one) ||
         std::ranges::any_of(node.inputs, is_one, &NamedArgument::value);
}

int count_complex128(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes) {
    count += touches_complex128(graph, node);
    for (const NamedArgument& input : node.inputs)
      if (const auto* inner = std::get_if<GraphArgument>(&input.value))
        count += count_complex128(*inner->graph);
  }
  return count;
}

void narrow_arguments(std::span<Boxed> arguments, eager::OwnedArguments& owned) {
  for (Boxed& b : arguments) {
    if (b.kind != Kind::tensor || !b.present) continue;
    if (!b.list) {
      b = owned.hold(narrowed(b.tensor()));
      continue;
    }
    std::vector<Tensor> list;
    for (uint32_t i = 0; i < b.size; ++i) list.push_back(narrowed(b.tensors[i]));
    b = owned.hold(std::move(list));
  }
}

void widen_results(const Graph& graph, const Node& node, std::span<Tensor> results) {
  size_t next = 0;
  for (const Argument& output : node.outputs)
    for (const TensorName& name : tensors_in(output)) {
      if (next == results.size()) return;
      Tensor& t = results[next++];
      const auto at = graph.tensor_values.find(name.name);
      if (t.defined() && t.dtype() == DType::f32 && at != graph.tensor_values.end() &&
          at->second.dtype.dtype() == DType::f64)
        t = eager::cast(t, DType::f64);
    }
}

}  // namespace taper::pt2
