// Half precision, for smaller programs: weights in f16 or bf16, and arithmetic on them.
#pragma once
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

/// Turns f32 into the dtype of `context`, which is f16 or bf16: weights, states, and the results of
/// operators that have a kernel of the target for it. f64 and integers stay. Inputs and outputs
/// keep their dtypes; casts convert them. An operator without a kernel for `half` runs in f32
/// between casts, as in eager. If several such operators follow each other, also with elementwise
/// operators between them, f32 is passed on without casts.
///
/// Some values stay f32, because halves cannot hold them:
///   - what follows from integers and constants beside them alone, up to where it meets the model's
///     data: positions, masks, dequantized weights;
///   - what becomes an integer: the arithmetic that quantizes;
///   - powers, exponentials and sums, up to where they meet data: norms;
///   - what is computed with a number beyond the range of the dtype, such as -3.4e38 or 1e-12;
///   - constants of one dimension that f32 kernels read: biases, which are small.
/// A finite number that does not fit becomes the largest finite number, never an infinity. An
/// operator that takes or replaces a part of an f32 value does so in f32, and only the part is
/// cast.
///
/// Each body of a branch or loop is converted alone. Its inputs and results stay f32, so weights
/// that a body reads are f32 while it runs. Returns how many values became halves. Throws
/// ExportError if a method of the program writes weights: training stays f32.
int to_half(ir::Graph& graph, PassContext& context);

}  // namespace taper::passes
