// Traces an eager function to a graph. The function runs on tensors with symbolic sizes and without
// elements. Every operator that it calls becomes a node, including those of backward() and of the
// optimizer's step.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"

namespace taper {

/// An input of a method: its name, sizes (numbers or symbols) and dtype.
struct InputSpec {
  std::string name;
  eager::Dims sizes;
  DType dtype = DType::f32;
};
/// Describes an input: `input("images", {batch, 1, 28, 28})`
inline InputSpec input(std::string name, eager::Dims sizes, DType dtype = DType::f32) {
  return {std::move(name), std::move(sizes), dtype};
}

/// Runs `function` and returns its graph. `function` runs twice and must do the same both times. A
/// number that the host counts or draws would become a constant of the program, so it is an error
/// that names the line.
///
/// If the function reads a tensor from before the trace, the tensor becomes a state of the graph.
/// The state has the tensor's name ("conv1.weight") or a generated one. If the function writes the
/// tensor, the tensor must have a name, and the graph ends with a write to the state.
/// `bake_read_only_states` turns states that nobody writes into constants.
///
/// The function's tensors keep their values. When `trace` returns, gradients of leaves are as
/// before. Throws EagerError, which names the line: a number is read from a traced tensor (item(),
/// an `if` on a value), a tensor without a name is written, or the arguments of an operator do not
/// fit.
std::unique_ptr<ir::Graph> trace(
    const std::string& name,
    const std::function<std::vector<eager::Tensor>(const std::vector<eager::Tensor>&)>& function,
    const std::vector<InputSpec>& inputs, const std::vector<std::string>& output_names = {},
    Location here = Location::current());

/// Records the decomposition of a node's operator before the node. Returns the values that replace
/// the node's results; nullptr for a result that is not computed. Throws EagerError, which names
/// the line.
std::vector<ir::Value*> trace_parts(ir::Graph& graph, const ir::Node& node);

/// Turns states that none of the graphs writes into constants. A program maps constants from its
/// file instead of copying them.
/// Those with the paths `slots` stay states. Throws ExportError for a slot that is no state or is
/// written.
void bake_read_only_states(const std::vector<ir::Graph*>& graphs,
                           const std::vector<std::string>& slots = {});

}  // namespace taper
