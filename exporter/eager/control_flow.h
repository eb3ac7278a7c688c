// Branches and loops that are decided at run time: PyTorch's higher-order operators. Outside a
// trace they are `if`, `while` and `for` over the given functions, and the tape records every
// operator that runs. In a trace the functions become bodies of the program, and a run executes
// only the bodies that it needs:
//
//   Tensor y = cond(x.sum() > 0, [](auto& in) { return std::vector{relu(in[0])}; },
//                   [](auto& in) { return std::vector{in[0] * 0.1}; }, {x})[0];
//
// The functions get their operands as arguments. They may also use any other tensor, under these
// rules:
//
//   - In a trace, a function must not write a tensor from outside in place. That is an error.
//   - If an operand is also a result, the result is a copy. The same holds for a tensor that is a
//     result twice. If another tensor from outside is a result, and either of the two is written
//     later, return a clone().
//   - In a trace, derivatives call the functions again. Whatever the functions capture by reference
//     must still exist when backward() runs.
//   - If a branch assumes something about symbolic sizes, the program assumes it, even when the
//     other branch is taken.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// A function from tensors to tensors.
using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// then(operands) if the only element of `pred` is not 0, else otherwise(operands). In a trace both
/// functions must return tensors of the same dtypes and sizes. The derivative computes the taken
/// branch again.
std::vector<Tensor> cond(const Tensor& pred, const Body& then, const Body& otherwise,
                         const std::vector<Tensor>& operands, Location here = Location::current());

/// while (condition(carried)) carried = body(carried). `condition` returns a tensor of one element.
/// The dtypes and sizes of the carried tensors must not change. In a trace there is no derivative:
/// backward() through the loop is an error.
std::vector<Tensor> while_loop(
    const std::function<Tensor(const std::vector<Tensor>& carried)>& condition, const Body& body,
    const std::vector<Tensor>& carried, Location here = Location::current());

/// What one step of `scan` gives, and all of them together.
struct Scanned {
  std::vector<Tensor> carried;  ///< of a step: for the next one; of all: after the last one
  std::vector<Tensor> results;  ///< of a step; of all: stacked along a new first dimension
};

/// Runs `carried, y = step(carried, slices)` for each slice of `xs` along the first dimension. All
/// `xs` must have the same extent there. Each step gets what the step before it carried. `reverse`
/// goes from the last slice to the first; each result still stands at the place of its slice. In a
/// trace that stacks results there must be at least one slice. The derivative computes each step
/// again.
Scanned scan(const std::function<Scanned(const std::vector<Tensor>& carried,
                                         const std::vector<Tensor>& slices)>& step,
             const std::vector<Tensor>& initial, const std::vector<Tensor>& xs,
             bool reverse = false, Location here = Location::current());

/// Calls body(slices) for each slice of `xs` along the first dimension, and stacks the results.
std::vector<Tensor> map(const Body& body, const std::vector<Tensor>& xs,
                        Location here = Location::current());

}  // namespace taper::eager
