// Runs an exported graph through eager, node by node. It computes results at once. Inside a trace,
// it makes a graph of Taper's.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "taper/exporter/eager/owned_arguments.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/importers/pt2/high_rank.h"
#include "taper/exporter/importers/pt2/layout.h"
#include "taper/exporter/importers/pt2/number.h"
#include "taper/exporter/importers/pt2/program.h"
#include "taper/exporter/importers/pt2/symbols.h"

namespace taper::pt2 {

/// The value of a name in a graph. std::monostate: an absent result.
using GraphValue = std::variant<std::monostate, eager::Tensor, Number, HighRank>;

/// A part of a graph that cannot be run, with all its occurrences.
struct Unsupported {
  std::string what;    ///< "aten::linalg_qr"
  std::string remedy;  ///< what to do about it; may be empty
  int nodes = 0;
  std::string node;    ///< name of the first node
  std::string module;  ///< of the first node
  Location location;   ///< of the first node, in the user's model
  /// Where they are in the outermost graph: the nodes, or those whose bodies hold them.
  std::vector<const Node*> at;
};
/// A line about it, with its place and what to do.
std::string to_string(const Unsupported& part);
/// "2 parts of the model cannot be imported", and the lines.
std::string refusal(const std::vector<std::string>& lines);
/// Every operator and dtype of a graph and its subgraphs that Taper does not have, each once, in
/// the order of occurrence.
std::vector<Unsupported> find_unsupported(const Graph& graph);

/// The operator's name for an argument of a node. The in-place twin calls the first argument
/// `self`, but the row may have another name: dropout_(self, p, train) and dropout(input, p,
/// train).
std::string_view parameter_name(const eager::Overload& overload, std::string_view given);
/// Why an operator does not take an argument: "must be a list of tensors". Empty if it takes the
/// argument, as far as that is known before a run.
std::string refusal_of(const Parameter& parameter, const Argument& argument);

/// Whether an argument is a number, whether its value is known or not.
bool is_number(const Argument& argument);

/// What PyTorch and the caller say about symbols that data decides.
struct Assumptions {
  std::map<std::string, ElementSymbol> elements;  ///< by PyTorch's name
  std::vector<Promise> promises;
};
/// Refuses a call that breaks the promise. In a trace, makes the promise a check of the program.
/// Does nothing as long as one of its symbols is missing in `symbols`.
void require(const Promise& promise, const std::map<std::string, Dim>& symbols);

/// Runs a graph. One run at a time.
class Executor {
 public:
  /// `symbols` has the symbols that are known, by PyTorch's names: those of the inputs, or those
  /// around a body.
  Executor(const Graph& graph, const Assumptions& assumptions, std::map<std::string, Dim> symbols)
      : graph_(graph), assumptions_(assumptions), symbols_(std::move(symbols)) {}

  /// Gets each node's results.
  using Observer = std::function<void(const Node&, const std::vector<GraphValue>&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// Parts of the graph that cannot run. `run` then fails. In a trace, its message has these parts
  /// and the calls that cannot be traced.
  void refuse(const std::vector<Unsupported>& parts);

  /// `inputs` are the values of graph.inputs, in order. Returns the values of graph.outputs. Throws
  /// ExportError, which names the node.
  std::vector<GraphValue> run(std::vector<GraphValue> inputs);

 private:
  void run_node(const Node& node);
  bool try_node(const Node& node, bool doubts);
  std::vector<GraphValue> call_operator(const Node& node);
  std::vector<GraphValue> call_in_full_rank(const Node& node);
  /// Calls an operator that takes or gives values of high rank. Nothing if it is no such call, or
  /// no such operator.
  std::optional<std::vector<GraphValue>> call_in_high_rank(const Node& node);
  eager::Tensor call_fill(const Node& node, const eager::Dims& result);
  std::vector<GraphValue> call_broadcast(const Node& node, const eager::Dims& result);
  std::vector<GraphValue> call_along_dims(const Node& node, const eager::OperatorInfo& info);
  bool touches_high_rank(const Node& node) const;
  HighRank of_any_rank(const TensorName& name) const;
  TensorName hold_joined(const TensorName& name, const eager::Dims& sizes);
  /// The sizes that the file records for a value. Throws if they depend on an unknown symbol.
  eager::Dims recorded_sizes(const TensorName& name) const;
  std::vector<GraphValue> call_number_operator(const Node& node, const eager::OperatorInfo& info,
                                               std::vector<eager::Boxed>& boxed) const;
  std::vector<eager::Boxed> bind(const Node& node, const eager::Overload& overload,
                                 eager::OwnedArguments& owned);
  std::vector<GraphValue> call_higher_order(const Node& node);
  std::vector<GraphValue> call_number_function(const Node& node);
  eager::Boxed box(const eager::OperatorInfo& info, const Parameter& parameter,
                   const Argument& argument, DType follows, eager::OwnedArguments& owned);
  eager::Tensor filled(const eager::OperatorInfo& info, const Node& node,
                       std::complex<double> z) const;
  GraphValue value(const Argument& argument) const;
  const eager::Tensor& tensor(const TensorName& name) const;
  Number number(const Argument& argument) const;
  std::vector<GraphValue> values(const Argument& list) const;
  /// A subgraph as a function. The function does not need this executor any more.
  using Body = std::function<std::vector<GraphValue>(std::vector<GraphValue> inputs)>;
  Body body(const Argument& graph, bool follows_dtypes = false) const;
  std::vector<GraphValue> call_cond(const Node& node) const;
  std::vector<GraphValue> call_while_loop(const Node& node) const;
  std::vector<GraphValue> call_scan(const Node& node, bool carries) const;
  // torch.vmap: see vmap.cpp
  using Levels = std::vector<int64_t>;
  const Levels& levels_of(const std::string& name) const;
  Levels levels_of_operands(const Node& node) const;
  std::vector<GraphValue> call_vmap_function(const Node& node);
  std::vector<GraphValue> call_in_vmap(const Node& node, const Levels& levels);
  std::vector<GraphValue> call_aligned(const Node& node, const Levels& levels, bool looks_up);
  std::vector<GraphValue> call_for_each(const Node& node, const Levels& levels);
  Number read(const std::string& name, const eager::Tensor& tensor) const;
  GraphValue as_number(const std::string& name, GraphValue value) const;
  void follow_dtype(const Node& node, std::vector<eager::Boxed>& boxed,
                    eager::OwnedArguments& owned) const;
  std::optional<Dim> element(const Argument& argument) const;
  void follow_element(const Node& node);
  ElementSymbol element_in(std::string_view expression) const;
  ElementSymbol element_in_results(const Node& node) const;
  bool define_stand_ins(const Node& node);
  [[noreturn]] void fail_with_all() const;
  void learn(const SymInt& expression, Dim value);
  void learn_sizes(const std::string& name, const eager::Tensor& tensor);
  void define(const Node& node, std::vector<GraphValue> results);

  const Graph& graph_;
  const Assumptions& assumptions_;
  std::map<std::string, Dim> symbols_;  ///< those that are known so far, by PyTorch's names
  const std::string modules_ = eager::module_path();  ///< the module path around the whole graph
  Observer observer_;
  /// Set in an autocast region, whose graph holds no casts: floating arguments are cast to the
  /// dtype that the graph says for the result.
  bool follows_dtypes_ = false;
  std::map<std::string, GraphValue, std::less<>> values_;
  std::map<std::string, Dim, std::less<>> elements_;   ///< of tensors whose one element is known
  std::map<std::string, Levels, std::less<>> levels_;  ///< of values inside of torch.vmap
  bool goes_on_ = true;  ///< whether a trace continues after a node that failed; false in bodies
  std::vector<std::string> failures_;
  std::vector<std::string> refusals_;      ///< lines about parts that cannot run
  std::set<const Node*> refused_;          ///< their nodes
  std::vector<std::string> joined_names_;  ///< of values that `hold_joined` made for one call
  Memories copies_;                        ///< the memory of copies that PyTorch returned as views
};

/// Whether `Executor` runs this higher-order operator: "cond" and some others.
bool is_supported_higher_order(std::string_view name);
/// The call inside `with_effects(token, operator, arguments…)`. The tokens only put calls with side
/// effects in order, and the nodes have that order already. Nothing if `node` is another call.
std::optional<Node> effect_of(const Node& node);

/// Whether `Executor` runs this function of torch.vmap:
/// "torch._functorch.predispatch._add_batch_dim" and some others.
bool is_vmap_function(std::string_view target);

/// The line of the user's model that a node comes from: the innermost frame of its stack trace that
/// is outside PyTorch.
Location location_of(const Node& node);

}  // namespace taper::pt2
