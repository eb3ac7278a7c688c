// Boxes a node's arguments for eager's dispatch and for shape rules.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir {

/// Owns the lists that boxed arguments point to. `arguments` must outlive it.
class BoxedArguments {
 public:
  /// The tensor that stands for a value. It has elements when a graph runs, and only a type when
  /// shapes are inferred.
  using Lookup = std::function<eager::Tensor(Value*)>;

  BoxedArguments(const eager::OperatorInfo& info, const std::vector<Argument>& arguments,
                 const Lookup& tensor_of);
  BoxedArguments(const BoxedArguments&) = delete;
  BoxedArguments& operator=(const BoxedArguments&) = delete;

  eager::Boxed* data() { return boxed_.data(); }

 private:
  eager::Boxed box(const Parameter& parameter, const Argument& argument, const Lookup& tensor_of);

  std::vector<eager::Boxed> boxed_;
  std::deque<eager::Tensor> tensors_;
  std::deque<std::vector<eager::Tensor>> tensor_lists_;
  std::deque<eager::Dims> dims_;
  std::deque<eager::Ints> integers_;
};

/// The types of a call's results, by the operator's shape rule. They are dense; a view has strides
/// and an offset in its base's storage. Assumptions that the rule could not prove are added to
/// `checks`. Throws ExportError if the rule refuses.
std::vector<Type> infer(const Operator& op, const std::vector<Argument>& arguments,
                        std::vector<Check>& checks);

/// Infers the result types of a call and appends the call. Its checks become checks of the graph.
Node* append(Graph& graph, const Operator& op, std::vector<Argument> arguments,
             Location location = {}, std::string module = {});
/// The same, with the call before a node.
Node* insert_before(Graph& graph, Node* before, const Operator& op, std::vector<Argument> arguments,
                    Location location = {}, std::string module = {});

}  // namespace taper::ir
