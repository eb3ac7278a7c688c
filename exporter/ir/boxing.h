// A node's arguments as eager's dispatch and shape rules take them.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir {

/// Owns what the boxed lists point to. `arguments` must outlive it.
class BoxedArguments {
 public:
  /// The tensor that stands for a value: elements when a graph is run, a type only when shapes are
  /// inferred.
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

/// The results' types of a call by the operator's shape rule: dense, or for a view strides and
/// offset in its base's storage. What the rule could not prove is added to `checks`. Throws
/// ExportError where the rule refuses.
std::vector<Type> infer(const Operator& op, const std::vector<Argument>& arguments,
                        std::vector<Check>& checks);

/// Appends a call whose result types are inferred and whose checks become the graph's.
Node* append(Graph& graph, const Operator& op, std::vector<Argument> arguments,
             Location location = {}, std::string module = {});
/// The same, before a node.
Node* insert_before(Graph& graph, Node* before, const Operator& op, std::vector<Argument> arguments,
                    Location location = {}, std::string module = {});

}  // namespace taper::ir
