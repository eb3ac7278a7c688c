// Runs a graph through eager, node by node: the reference of a program, calibration, per-node
// comparison, and, while something records, a new trace of the same function.
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

/// Results are dense in a graph. Eager's of a composite may be views that its parts made.
void make_results_dense(const Node& node, std::vector<eager::Tensor>& results);

class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph) {}
  /// For a body: the numbers of the symbols that belong to the graphs around it.
  Interpreter(const Graph& body, Dim::Substitution symbols)
      : graph_(body), outer_symbols_(std::move(symbols)) {}

  /// The elements of a state to start from, by path; without one, its first value.
  void set_state(const std::string& path, eager::Tensor tensor) {
    states_[path] = std::move(tensor);
  }
  /// Sees each value once it is computed.
  void observe(std::function<void(const Value&, const eager::Tensor&)> observer) {
    observer_ = std::move(observer);
  }

  /// One tensor an input, in order; of number inputs a 0-dim i64 tensor. Inputs may be traced.
  /// Tests the graph's checks as soon as their symbols are bound; those that only a run of the new
  /// trace decides are checks of that, too. Throws ExportError naming the node and what does not
  /// fit.
  Interpretation run(const std::vector<eager::Tensor>& inputs);

 private:
  void bind_symbols(const std::vector<eager::Tensor>& inputs);
  /// Those that lie in results of `node`; nullptr: in inputs, states and constants.
  void bind_elements(const Node* node);
  void bind(Dim symbol, Dim number);
  /// Gives those that nothing decides yet.
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

/// A tensor over a constant's or a state's elements, not copied. It must not be written.
eager::Tensor tensor_of(const std::shared_ptr<const Payload>& payload);
/// The elements of a tensor, copied to row-major order.
std::shared_ptr<const Payload> payload_of(const eager::Tensor& tensor);

}  // namespace taper::ir
