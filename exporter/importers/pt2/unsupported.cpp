#include <algorithm>

#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

/// What to do about a higher-order operator.
std::string remedy_for(std::string_view name) {
  if (name.starts_with("auto_functionalized"))
    return "an operator of your own writes its arguments; let it give new tensors instead";
  if (name.starts_with("triton_kernel"))
    return "a Triton kernel runs only under Python; write it with ordinary operators";
  if (name == "call_torchbind") return "a script object's method is called; pass tensors instead";
  if (name == "flex_attention") return "use scaled_dot_product_attention with a mask";
  if (name == "associative_scan") return "use scan";
  return "leave it out of the model; cond, while_loop, scan and map are known";
}

class Search {
 public:
  void graph(const Graph& g) {
    for (const Node& node : g.nodes) {
      target(node);
      for (const Argument& output : node.outputs) types(g, node, output);
      for (const NamedArgument& input : node.inputs)
        if (const auto* sub = std::get_if<GraphArgument>(&input.value)) graph(*sub->graph);
    }
  }
  std::vector<Unsupported> take() { return std::move(found_); }

 private:
  void add(const Node& node, const std::string& what, const std::string& remedy) {
    auto at = std::ranges::find(found_, what, &Unsupported::what);
    if (at == found_.end()) {
      found_.push_back({what, remedy, 0, node.name, node.module, location_of(node)});
      at = std::prev(found_.end());
    }
    ++at->nodes;
  }

  void target(const Node& node) {
    if (find_number_function(node.target) != nullptr) return;
    if (const auto call = effect_of(node)) return target(*call);
    if (const auto name = higher_order_name(node.target)) {
      if (!is_supported_higher_order(*name) || name == "with_effects")
        add(node, "higher-order operator " + std::string(*name), remedy_for(*name));
      return;
    }
    const auto name = operator_name(node.target);
    if (!name) {
      add(node, node.target,
          node.target.starts_with("torch._functorch")
              ? "call run_decompositions() on the exported program before saving it"
              : "only operators of torch.ops can be imported");
      return;
    }
    const eager::Overload overload = find_runnable(*name);
    if (overload.info == nullptr && is_refused(*name)) {
      add(node, node.target, "complex numbers are not supported");
      return;
    }
    if (overload.info == nullptr) {
      add(node, node.target,
          name->find("::") != name->npos ? "give it a kernel: see examples/custom_operator"
          : eager::find_operator(name->substr(0, name->find('.'))) != nullptr
              ? "this overload is not known; run_decompositions() in Python may take it apart"
              : "run_decompositions() in Python may take it apart; else give it a kernel, "
                "see examples/custom_operator");
      return;
    }
  }

  static bool is_refused(const std::string& name) {
    const eager::OperatorInfo* info = eager::find_operator(name);
    return name.starts_with("fft_") || (info != nullptr && info->op->category == Category::refused);
  }

  void types(const Graph& g, const Node& node, const Argument& output) {
    const auto check = [&](const TensorName& t) {
      const auto at = g.tensor_values.find(t.name);
      if (at != g.tensor_values.end() && !at->second.dtype.dtype())
        add(node, "dtype " + at->second.dtype.name(), "Taper has no such dtype");
    };
    if (const auto* one = std::get_if<TensorName>(&output)) check(*one);
    if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName& t : *many) check(t);
  }

  std::vector<Unsupported> found_;
};

}  // namespace

std::vector<Unsupported> find_unsupported(const Graph& graph) {
  Search search;
  search.graph(graph);
  return search.take();
}

}  // namespace taper::pt2
