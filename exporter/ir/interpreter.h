// Runs a graph through eager, node by node. Tests compare programs with it. It also serves
// calibration, the comparison of nodes and, inside a trace, recording the same function again.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir {

struct Interpretation {
  std::vector<eager::Tensor> outputs;                   ///< in order; a number's is undefined
  std::vector<Dim> numbers;                             ///< beside them
  std::map<std::string, eager::Tensor> written_states;  ///< the new elements of states by path
};

/// Makes a node's results dense, as the graph says. Eager's results of a composite may be views
/// that its parts made.
void make_results_dense(const Node& node, std::vector<eager::Tensor>& results);

class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph) {}
  /// For a body: the numbers of the symbols that belong to the graphs around it.
  Interpreter(const Graph& body, Dim::Substitution symbols)
      : graph_(body), outer_symbols_(std::move(symbols)) {}

  /// Sets the elements that a state starts with. Without this, a state starts with its first value.
  void set_state(const std::string& path, eager::Tensor tensor) {
    states_[path] = std::move(tensor);
  }
  /// Calls `observer` with each value as soon as it is computed.
  void observe(std::function<void(const Value&, const eager::Tensor&)> observer) {
    observer_ = std::move(observer);
  }

  /// `inputs` has one tensor for each input, in order; a number is a 0-dim i64 tensor. Inputs may
  /// be traced. The graph's checks are tested as soon as their symbols are bound. In a trace, a
  /// check that only a run decides becomes a check of the new trace. Throws ExportError, which
  /// names the node and the reason.
  Interpretation run(const std::vector<eager::Tensor>& inputs);

 private:
  void bind_symbols(const std::vector<eager::Tensor>& inputs);
  /// Binds the symbols that are elements of the results of `node`. nullptr: those of inputs, states
  /// and constants.
  void bind_elements(const Node* node);
  void bind(Dim symbol, Dim number);
  /// Tests the checks. Returns those that cannot be decided yet.
  std::vector<Check> test_checks() const;
  void run_node(const Node& node);
  std::vector<eager::Tensor> call(const Node& node) const;
  std::vector<eager::Tensor> call_control(const Node& node) const;
  Argument with_numbers(const Argument& argument) const;
  eager::Tensor value(const Value* v) const;
  void define(const Value* v, eager::Tensor tensor);

  const Graph& graph_;
  std::map<std::string, eager::Tensor> states_;
  std::function<void(const Value&, const eager::Tensor&)> observer_;
  std::map<const Value*, eager::Tensor> values_;
  std::map<const Value*, int> uses_left_;
  Dim::Substitution outer_symbols_, symbols_;
};

/// A tensor on the elements of a constant or a state, without a copy. It must not be written.
eager::Tensor tensor_of(const std::shared_ptr<const Payload>& payload);
/// A copy of a tensor's elements, in row-major order.
std::shared_ptr<const Payload> payload_of(const eager::Tensor& tensor);

}  // namespace taper::ir
