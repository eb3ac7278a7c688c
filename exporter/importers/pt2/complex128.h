// complex128 in a model. Complex numbers here have two f32 (c64), so a node that reads or gives
// complex128 computes in f32: f64 beside it is rounded, and its real results become f64 again.
#pragma once
#include <span>

#include "taper/exporter/eager/owned_arguments.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// Whether an argument or a result of the node is complex128.
bool touches_complex128(const Graph& graph, const Node& node);
/// How many nodes of the graph and of the graphs inside it do so.
int count_complex128(const Graph& graph);

/// Casts f64 tensors to f32.
void narrow_arguments(std::span<eager::Boxed> arguments, eager::OwnedArguments& owned);
/// Casts results back that the graph records as f64.
void widen_results(const Graph& graph, const Node& node, std::span<eager::Tensor> results);

}  // namespace taper::pt2
