// Runs a graph over examples. Internal.
#pragma once
#include <functional>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

/// Sees the values of one run.
using See = std::function<void(const ir::Value&, const eager::Tensor&)>;

/// Runs `graph` over the example `i` without gradients. Errors begin with the example's number.
ir::Interpretation run_example(const ir::Graph& graph, const Examples& examples, size_t i,
                               const See& see = {});

/// A graph of its own with the same names. Constants share their elements.
std::unique_ptr<ir::Graph> copy_of(const ir::Graph& graph);

}  // namespace taper::quantize
