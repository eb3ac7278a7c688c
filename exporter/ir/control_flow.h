// Branches and loops: the nodes whose bodies are graphs of their own. They have no kernels: the
// writer makes jumps of them, which is why they stand here and not in kernels/operators.def. Names
// and meaning are those of PyTorch's higher-order operators; what `scan` and `map` do is made of
// `while_loop`.
#pragma once
#include <string_view>

#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir::ops {

/// results = bodies[0](operands) if `predicate`, a boolean of one element, is true, else
/// bodies[1](operands).
inline constexpr Operator cond{"cond", Category::composite,
                               "higher_order::cond(Tensor pred, Tensor[] operands) -> Tensor[]"};

/// while (bodies[0](carried, operands)) carried = bodies[1](carried, operands); the results are
/// what `carried` is then. bodies[0] gives one boolean of one element. Sizes and dtypes of what is
/// carried do not change.
inline constexpr Operator while_loop{
    "while_loop", Category::composite,
    "higher_order::while_loop(Tensor[] carried_inputs, Tensor[] additional_inputs) -> Tensor[]"};

}  // namespace taper::ir::ops

namespace taper::ir {

inline bool is_control(const Node& node) { return !node.bodies.empty(); }

/// The entry of a row of the table, of a user's operator, or of a branch or loop. Throws
/// ExportError for an unknown one.
const eager::OperatorInfo& info_of(const Operator& op);
/// The same by name; nullptr if there is none.
const eager::OperatorInfo* find_operator(std::string_view name);

/// The values beside the inputs of a node's bodies: of a branch its operands, of a loop what is
/// carried and then the operands.
std::vector<Value*> operands_of(const Node& node);

}  // namespace taper::ir
