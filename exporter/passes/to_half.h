// Half precision, for smaller programs: weights and arithmetic in f16 or bf16.
#pragma once
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

/// Turns f32 into the dtype of `context`, which is f16 or bf16: weights, states, and the results of
/// operators for which the target has a kernel in that dtype. f64 and integers stay. Inputs and
/// outputs keep their dtypes; casts convert them. An operator without such a kernel runs in f32
/// between casts, as in eager. If several of them follow each other, also with elementwise
/// operators between them, f32 is passed on without casts.
///
/// Some values stay f32, because halves cannot hold them:
///   - values that follow only from integers and constants, until they meet the model's data:
///     positions, masks, dequantized weights;
///   - values that become integers: the arithmetic that quantizes;
///   - powers, exponentials and sums, until they meet data: norms;
///   - results of a computation with a number beyond the range of the dtype, such as 1e-12;
///   - 1-dim constants that f32 kernels read: biases, which are small.
/// A finite number that does not fit becomes the largest finite number, never an infinity. An
/// operator that takes or replaces a part of an f32 value does so in f32, and only the part is
/// cast.
///
/// Each body of a branch or loop is converted by itself. Its inputs and results stay f32, so
/// weights that a body reads are f32 while it runs. Returns how many values became halves. Throws
/// ExportError if a method of the program writes weights: training stays f32.
int to_half(ir::Graph& graph, PassContext& context);

}  // namespace taper::passes
