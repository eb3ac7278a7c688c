// Half precision for who wants a smaller program: weights in f16 or bf16, and arithmetic on them.
#pragma once
#include <functional>

#include "taper/exporter/ir/graph.h"

namespace taper::passes {

/// Whether the target has a kernel for a call, by the dtypes of its arguments and results.
using HasKernel = std::function<bool(const ir::Node& call)>;

/// Turns f32 into `half`, which is f16 or bf16: weights, states, and the results of operators that
/// have a kernel for it. f64 and integers stay, and so do inputs and outputs: casts stand at the
/// boundary. An operator without such a kernel runs in f32 between casts, as in eager; where one
/// follows the other, f32 is handed on, through what lies between them element by element.
///
/// Some values stay f32, because halves cannot hold them:
///   - what follows from integers and constants beside them alone, up to where it meets the model's
///     data: positions, masks, dequantized weights;
///   - what becomes an integer: the arithmetic that quantizes;
///   - powers, exponentials and sums, up to where they meet data: norms;
///   - what is computed with a number beyond the range of `half`, such as -3.4e38 or 1e-12;
///   - constants of one dimension that f32 kernels read: biases, which are small.
/// A finite number that does not fit becomes the largest that does, never an infinity. What takes
/// or replaces a part of an f32 value does so in f32, and casts the part alone.
///
/// Bodies of branches and loops are converted each for itself: f32 goes in and comes out, so
/// weights that a body reads are f32 while it runs. Returns how many values became halves. Throws
/// ExportError if a method of the program writes weights: training stays f32.
int to_half(ir::Graph& graph, DType half, const HasKernel& has_kernel);

}  // namespace taper::passes
