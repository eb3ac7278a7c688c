// Checkpoints: less memory for more time. Chen et al., "Training deep nets with sublinear memory
// cost", arXiv:1604.06174.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// Calls `function(inputs)` without keeping the values inside it for backward. `backward` calls the
/// function once more and gets the values there:
///
///   x = checkpoint([&](const Tensor& x) { return block(x); }, x);
///
/// Gradients have the same bits as without a checkpoint, also those of tensors that the function
/// captures, such as parameters. Random numbers are drawn again with the same state of their
/// generators. Checkpoints may be nested, `create_graph` works, and a traced training step computes
/// the values again in the program.
///
/// The function must do the same both times. It is copied, and what it captures by reference must
/// live until backward. The second call ends by an exception as soon as backward has what it needs.
/// So the function must let exceptions pass. What it does besides computing happens twice, but
/// running statistics of batch norms are updated once. Inputs, and tensors that the function
/// captures, stay in memory.
///
/// `backward` throws EagerError if the second call keeps other tensors than the first, or if an
/// input was overwritten in between.
std::vector<Tensor> checkpoint(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs, Location here = Location::current());
/// The same for one input and one result.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input,
                  Location here = Location::current());

/// Whether this thread runs a checkpoint's function for the second time. What counts calls, such as
/// running statistics, does nothing then.
bool computes_again();

/// Tells the checkpoints that run on this thread that a generator with this state is about to draw.
void before_draw(const Tensor& state);

/// The part of a module path behind which values are computed again: "layers.3.(again).fc1".
inline constexpr std::string_view again_mark = "(again)";
/// Whether a node with this module path computes something again. Such a node must not be merged
/// with the first computation, or the first result would be kept.
inline bool is_computed_again(std::string_view module_path) {
  return module_path.find(again_mark) != std::string_view::npos;
}

}  // namespace taper::eager
