// Taper's names for the targets of nodes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "taper/exporter/eager/owned_arguments.h"

namespace taper::pt2 {

/// "torch.ops.aten.add.Tensor" → "add.Tensor", "torch.ops.aten.relu.default" → "relu",
/// "torch.ops.mylib.f.default" → "mylib::f"; nothing for other kinds of targets.
std::optional<std::string> operator_name(std::string_view target);
/// "torch.ops.higher_order.cond" → "cond"; nothing for other kinds of targets.
std::optional<std::string_view> higher_order_name(std::string_view target);

/// The operator, if it can run: it has a kernel, a decomposition, or is a view with a shape rule.
/// Otherwise `info` is nullptr.
eager::Overload find_runnable(std::string_view name);

}  // namespace taper::pt2
