// Runs an exported graph through eager, node by node: its results at once, or, inside a trace, a
// graph of Taper's.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "taper/exporter/eager/owned_arguments.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/importers/pt2/layout.h"
#include "taper/exporter/importers/pt2/number.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// What a name in a graph stands for; an absent result is std::monostate.
using GraphValue = std::variant<std::monostate, eager::Tensor, Number>;

/// Something in a graph that cannot be run, wherever it occurs.
struct Unsupported {
  std::string what;    ///< "aten::linalg_qr"
  std::string remedy;  ///< what to do about it; may be empty
  int nodes = 0;
  std::string node;    ///< the first
  std::string module;  ///< of the first node
  Location location;   ///< of the first node, in the user's model
};
/// Every operator and dtype of a graph and its subgraphs that has no counterpart, each once, in the
/// order of occurrence.
std::vector<Unsupported> find_unsupported(const Graph& graph);

/// Whether an argument is a number, known or not.
bool is_number(const Argument& argument);

/// Bounds of symbols by name.
using Ranges = std::map<std::string, Range>;

/// Runs a graph whose operators are all supported. One run at a time.
class Executor {
 public:
  /// `ranges` are those of symbols that get their values from elements of tensors.
  Executor(const Graph& graph, const Ranges& ranges) : graph_(graph), ranges_(ranges) {}

  /// Sees each node's results.
  using Observer = std::function<void(const Node&, const std::vector<GraphValue>&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// `inputs` beside graph.inputs; gives what stands beside graph.outputs. Throws ExportError that
  /// names the node.
  std::vector<GraphValue> run(std::vector<GraphValue> inputs);

 private:
  void run_node(const Node& node);
  std::vector<GraphValue> call_operator(const Node& node, Location here);
  std::vector<GraphValue> call_number_operator(const Node& node, const eager::OperatorInfo& info,
                                               std::vector<eager::Boxed>& boxed,
                                               Location here) const;
  std::vector<eager::Boxed> bind(const Node& node, const eager::Overload& overload,
                                 eager::OwnedArguments& owned, Location here);
  std::vector<GraphValue> call_higher_order(const Node& node, Location here);
  std::vector<GraphValue> call_number_function(const Node& node, Location here);
  eager::Boxed box(const eager::OperatorInfo& info, const Parameter& parameter,
                   const Argument& argument, DType follows, eager::OwnedArguments& owned,
                   Location here);
  GraphValue value(const Argument& argument) const;
  const eager::Tensor& tensor(const TensorName& name) const;
  Number number(const Argument& argument) const;
  std::vector<GraphValue> values(const Argument& list) const;
  /// A subgraph as a function, which needs this executor no more.
  using Body = std::function<std::vector<GraphValue>(std::vector<GraphValue> inputs)>;
  Body body(const Argument& graph, bool follows_dtypes = false) const;
  std::vector<GraphValue> call_cond(const Node& node, Location here) const;
  std::vector<GraphValue> call_while_loop(const Node& node, Location here) const;
  std::vector<GraphValue> call_scan(const Node& node, bool carries, Location here) const;
  Number read(const std::string& name, const eager::Tensor& tensor, Location here) const;
  GraphValue as_number(const std::string& name, GraphValue value, Location here) const;
  void follow_dtype(const Node& node, std::vector<eager::Boxed>& boxed,
                    eager::OwnedArguments& owned, Location here) const;
  Range range_of(const std::string& expression) const;
  Range range_of_results(const Node& node) const;
  void define(const Node& node, std::vector<GraphValue> results, Location here);

  const Graph& graph_;
  const Ranges& ranges_;
  const std::string modules_ = eager::module_path();  ///< around the whole graph
  Observer observer_;
  /// In an autocast region, whose graph holds no casts: floating arguments are brought to the dtype
  /// that the graph says of the result.
  bool follows_dtypes_ = false;
  std::map<std::string, GraphValue, std::less<>> values_;
  Memories copies_;  ///< the memory of what PyTorch could give as a view
};

/// "cond" and the others that `Executor` runs.
bool is_supported_higher_order(std::string_view name);
/// The call that stands in `with_effects(token, operator, arguments…)`: tokens put calls that do
/// something besides in an order, and the nodes stand in it. Nothing if `node` is none of these.
std::optional<Node> effect_of(const Node& node);

/// The line of the user's model that a node comes from, by its stack trace: the innermost frame
/// outside PyTorch.
Location location_of(const Node& node);

}  // namespace taper::pt2
