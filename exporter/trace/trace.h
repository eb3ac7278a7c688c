// From an eager function to a graph: the function runs once on tensors with symbolic sizes and no
// elements, and every operator that it calls, those of backward() and of the optimizer's step
// included, becomes a node.
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
/// `input("images", {batch, 1, 28, 28})`
inline InputSpec input(std::string name, eager::Dims sizes, DType dtype = DType::f32) {
  return {std::move(name), std::move(sizes), dtype};
}

/// Runs `function` and gives its graph. It runs twice, and must do the same both times: a number
/// that the host counts or draws would be baked into the program, and is an error that names the
/// line.
///
/// A tensor from before the trace that the function reads becomes a state of the graph, under its
/// name ("conv1.weight") or a made-up one; if the function writes it, the graph ends in a write to
/// that state, and it must have a name. `bake_read_only_states` turns states that nobody writes
/// into constants.
///
/// The function's tensors keep their values; gradients of leaves are as before when it returns.
/// Throws EagerError, which names the line: where a number is read from a traced tensor (item(), an
/// `if` on a value), where a nameless tensor is written, where an operator's arguments do not fit.
std::unique_ptr<ir::Graph> trace(
    const std::string& name,
    const std::function<std::vector<eager::Tensor>(const std::vector<eager::Tensor>&)>& function,
    const std::vector<InputSpec>& inputs, const std::vector<std::string>& output_names = {},
    Location here = Location::current());

/// Replaces the states that none of the graphs writes by constants: what a program may map from its
/// file instead of copying.
void bake_read_only_states(const std::vector<ir::Graph*>& graphs);

}  // namespace taper
