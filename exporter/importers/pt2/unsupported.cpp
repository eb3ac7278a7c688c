#include <algorithm>

#include "taper/exporter/importers/pt2/complex_scalars.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"
#include "taper/exporter/io/format_text.h"

namespace taper::pt2 {
namespace {

constexpr std::string_view decomposable[] = {
#include "taper/exporter/importers/pt2/decomposable.def"
};
static_assert(std::ranges::is_sorted(decomposable));

/// What to do about an operator that Taper does not have.
std::string remedy_for_operator(bool comes_apart) {
  if (comes_apart) return "call run_decompositions() on the exported program before you save it";
  return "write it with other operators in the model, or give it a kernel: see "
         "examples/custom_operator";
}

/// What to do about a higher-order operator.
std::string remedy_for(std::string_view name) {
  if (name.starts_with("auto_functionalized"))
    return "your own operator writes its arguments; let it return new tensors instead";
  if (name.starts_with("triton_kernel"))
    return "a Triton kernel runs only under Python; write it with ordinary operators";
  if (name == "call_torchbind") return "it calls a method of a script object; pass tensors instead";
  if (name == "flex_attention") return "use scaled_dot_product_attention with a mask";
  if (name == "associative_scan") return "use scan";
  return "leave it out of the model; Taper has cond, while_loop, scan and map";
}

/// What to do about a dtype that Taper does not have.
std::string remedy_for_dtype(const std::string& name) {
  if (name.starts_with("complex"))
    return "complex numbers have two f32: use complex64 in the model, or torch.float32 before they "
           "are made";
  return "Taper has no such dtype";
}

class Search {
 public:
  void graph(const Graph& g, const Node* around = nullptr) {
    for (const Node& node : g.nodes) {
      outermost_ = around == nullptr ? &node : around;
      target(g, node);
      for (const Argument& output : node.outputs) types(g, node, output);
      for (const NamedArgument& input : node.inputs)
        if (const auto* sub = std::get_if<GraphArgument>(&input.value))
          graph(*sub->graph, outermost_);
    }
  }
  std::vector<Unsupported> take() { return std::move(found_); }

 private:
  void add(const Node& node, const std::string& what, const std::string& remedy) {
    auto at = std::ranges::find(found_, what, &Unsupported::what);
    if (at == found_.end()) {
      found_.push_back({what, remedy, 0, node.name, node.module, location_of(node), {}});
      at = std::prev(found_.end());
    }
    ++at->nodes;
    at->at.push_back(outermost_);
  }

  void target(const Graph& g, const Node& node) {
    if (find_number_function(node.target) != nullptr || is_vmap_function(node.target)) return;
    if (const auto call = effect_of(node)) return target(g, *call);
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
    if (filled_with(node) != nullptr) return;
    const eager::Overload overload = for_complex_scalars(node, find_runnable(*name));
    const bool comes_apart =
        std::ranges::binary_search(decomposable, *name) && !reads_other_dtypes(g, node);
    if (overload.info == nullptr)
      add(node, node.target, remedy_for_operator(comes_apart));
    else if (has_wrong_logsumexp(g, node))
      add(node, node.target + " with the weights in place of their logsumexp",
          "PyTorch's joint export gives wrong gradients here; export inside of `with "
          "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`");
    else
      arguments(g, node, overload);
  }

  /// PyTorch takes the forward operator apart into one that gives the weights, which have a
  /// dimension more.
  static bool has_wrong_logsumexp(const Graph& g, const Node& node) {
    if (!node.target.ends_with("_scaled_dot_product_flash_attention_for_cpu_backward.default"))
      return false;
    return std::ranges::any_of(node.inputs, [&](const NamedArgument& input) {
      const auto* tensor = std::get_if<TensorName>(&input.value);
      const auto at =
          tensor == nullptr ? g.tensor_values.end() : g.tensor_values.find(tensor->name);
      return input.name == "logsumexp" && at != g.tensor_values.end() &&
             at->second.sizes.size() == 4;
    });
  }

  /// Arguments that the operator does not have, and values that it does not take.
  void arguments(const Graph& g, const Node& node, const eager::Overload& overload) {
    for (const NamedArgument& input : node.inputs) {
      const int at = overload.info->schema.find(parameter_name(overload, input.name));
      const std::string what =
          at < 0 ? "is not known" : refusal_of(overload.info->schema.parameters[at], input.value);
      if (what.empty() || is_dtype_of_result(g, node, input.value)) continue;
      add(node, node.target + ", argument " + input.name + " " + what,
          std::holds_alternative<ScalarType>(input.value) ? "use another dtype in the model"
          : std::holds_alternative<std::complex<double>>(input.value)
              ? "give a complex tensor instead, where the operator takes one"
              : "leave the argument out, or give it another value");
    }
  }

  /// Whether the argument is a dtype that a result has, too.
  static bool is_dtype_of_result(const Graph& g, const Node& node, const Argument& argument) {
    const auto* type = std::get_if<ScalarType>(&argument);
    return type != nullptr && std::ranges::any_of(node.outputs, [&](const Argument& output) {
             const auto* tensor = std::get_if<TensorName>(&output);
             const auto at =
                 tensor == nullptr ? g.tensor_values.end() : g.tensor_values.find(tensor->name);
             return at != g.tensor_values.end() && at->second.dtype == *type;
           });
  }

  /// Whether the node reads a tensor of a dtype that Taper does not have.
  static bool reads_other_dtypes(const Graph& g, const Node& node) {
    return std::ranges::any_of(node.inputs, [&](const NamedArgument& input) {
      const auto* tensor = std::get_if<TensorName>(&input.value);
      const auto at =
          tensor == nullptr ? g.tensor_values.end() : g.tensor_values.find(tensor->name);
      return at != g.tensor_values.end() && !at->second.dtype.dtype();
    });
  }

  void types(const Graph& g, const Node& node, const Argument& output) {
    const auto check = [&](const TensorName& t) {
      const auto at = g.tensor_values.find(t.name);
      if (at != g.tensor_values.end() && !at->second.dtype.dtype())
        add(node, "dtype " + at->second.dtype.name(), remedy_for_dtype(at->second.dtype.name()));
    };
    if (const auto* one = std::get_if<TensorName>(&output)) check(*one);
    if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName& t : *many) check(t);
  }

  std::vector<Unsupported> found_;
  const Node* outermost_ = nullptr;  ///< the node of the outermost graph that is looked at
};

}  // namespace

std::string to_string(const Unsupported& part) {
  std::string line =
      io::printable(part.what) + "  " + io::counted(static_cast<int64_t>(part.nodes), "node");
  if (!part.module.empty()) line += "  " + io::printable(part.module);
  line += part.location.known() ? " (" + io::printable(part.location.to_string()) + ")"
                                : " (node " + io::printable(part.node) + ")";
  return line + (part.remedy.empty() ? "" : ": " + part.remedy);
}

std::string refusal(const std::vector<std::string>& lines) {
  std::string message =
      io::counted(static_cast<int64_t>(lines.size()), "part") + " of the model cannot be imported";
  for (const std::string& line : lines) message += "\n" + line;
  return message;
}

std::vector<Unsupported> find_unsupported(const Graph& graph) {
  Search search;
  search.graph(graph);
  return search.take();
}

}  // namespace taper::pt2
