// Branches and loops: nodes whose bodies are graphs of their own. They have no kernels, because the
// writer turns them into jumps. So they stand here and not in kernels/operators.def. Names and
// meaning are those of PyTorch's higher-order operators. `scan` and `map` are made of `while_loop`.
#pragma once
#include <string_view>

#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir::ops {

/// results = bodies[0](operands) if `predicate` is true, else bodies[1](operands). `predicate` is a
/// boolean of one element.
inline constexpr Operator cond{"cond", Category::composite,
                               "higher_order::cond(Tensor pred, Tensor[] operands) -> Tensor[]"};

/// while (bodies[0](carried, operands)) carried = bodies[1](carried, operands). The results are the
/// last `carried`. bodies[0] gives one boolean of one element. The sizes and dtypes of carried
/// tensors do not change.
inline constexpr Operator while_loop{
    "while_loop", Category::composite,
    "higher_order::while_loop(Tensor[] carried_inputs, Tensor[] additional_inputs) -> Tensor[]"};

}  // namespace taper::ir::ops

namespace taper::ir {

inline bool is_control(const Node& node) { return !node.bodies.empty(); }

/// The entry of a row of the table, of a user's operator, or of a branch or loop. Throws
/// ExportError for an unknown operator.
const eager::OperatorInfo& info_of(const Operator& op);
/// The same by name; nullptr if there is none.
const eager::OperatorInfo* find_operator(std::string_view name);

/// The values that a node's bodies get, in the order of the bodies' inputs. For a branch: its
/// operands. For a loop: the carried values, then the operands.
std::vector<Value*> operands_of(const Node& node);

}  // namespace taper::ir
