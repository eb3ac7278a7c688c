// Branches and loops that a run decides: PyTorch's higher-order operators. Outside a trace they are
// `if`, `while` and `for` over the given functions, and every operator that runs goes on the tape.
// In a trace the functions become bodies of the program, of which a run takes what it needs:
//
//   Tensor y = cond(x.sum() > 0, [](auto& in) { return std::vector{relu(in[0])}; },
//                   [](auto& in) { return std::vector{in[0] * 0.1}; }, {x})[0];
//
// Functions get their operands as arguments, and may use any other tensor too. They must be
// functions in the strict sense: in a trace, one that writes a tensor from outside in place is an
// error that says so. An operand that comes back as a result is a copy, and so is a tensor that
// comes back twice; give a clone() of other tensors from outside if they or the result are written
// later. In a trace derivatives call the functions once more: what they capture by reference must
// still be there when backward() runs. What a branch assumes of symbolic sizes is an assumption of
// the program, which holds also where the other branch is taken.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// A body: from tensors to tensors.
using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// then(operands) if the only element of `pred` is not 0, else otherwise(operands). In a trace both
/// must give tensors of the same dtypes and sizes; the derivative is the branch of derivatives,
/// which compute the branch taken once more.
std::vector<Tensor> cond(const Tensor& pred, const Body& then, const Body& otherwise,
                         const std::vector<Tensor>& operands, Location here = Location::current());

/// while (condition(carried)) carried = body(carried). `condition` gives a tensor of one element.
/// Dtypes and sizes of what is carried must not change. In a trace it has no derivative: backward()
/// through it is an error.
std::vector<Tensor> while_loop(
    const std::function<Tensor(const std::vector<Tensor>& carried)>& condition, const Body& body,
    const std::vector<Tensor>& carried, Location here = Location::current());

/// What one step of `scan` gives, and all of them together.
struct Scanned {
  std::vector<Tensor> carried;  ///< of a step: for the next one; of all: after the last one
  std::vector<Tensor> results;  ///< of a step; of all: stacked along a new first dimension
};

/// Goes over the slices of `xs` along their first dimension, which all have in common, and hands
/// each step what the one before carried: carried, y = step(carried, slices). `reverse` goes from
/// the last slice to the first; results stand at the place of their slice. In a trace there must be
/// at least one slice if results are to be stacked; what a step of the derivative needs it computes
/// once more.
Scanned scan(const std::function<Scanned(const std::vector<Tensor>& carried,
                                         const std::vector<Tensor>& slices)>& step,
             const std::vector<Tensor>& initial, const std::vector<Tensor>& xs,
             bool reverse = false, Location here = Location::current());

/// body(slices) for the slices of `xs` along their first dimension, results stacked.
std::vector<Tensor> map(const Body& body, const std::vector<Tensor>& xs,
                        Location here = Location::current());

}  // namespace taper::eager
