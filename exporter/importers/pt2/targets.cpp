#include "taper/exporter/importers/pt2/targets.h"

#include "taper/kernels/operators.h"

namespace taper::pt2 {
namespace {

constexpr std::string_view operators = "torch.ops.", higher_order = "torch.ops.higher_order.";

bool runs(const eager::OperatorInfo& info) {
  return !info.kernels.empty() || info.decomposition != nullptr || info.number != nullptr ||
         (info.op->category == Category::view && info.symbolic_rule != nullptr);
}

}  // namespace

std::optional<std::string> operator_name(std::string_view target) {
  if (!target.starts_with(operators) || target.starts_with(higher_order)) return std::nullopt;
  const std::string_view rest = target.substr(operators.size());
  const size_t space = rest.find('.'), overload = rest.rfind('.');
  if (space == rest.npos || overload <= space + 1 || overload + 1 == rest.size())
    return std::nullopt;
  const std::string_view ns = rest.substr(0, space),
                         name = rest.substr(space + 1, overload - space - 1);
  std::string result = ns == "aten" ? "" : std::string(ns) + "::";
  result += name;
  if (rest.substr(overload + 1) != "default") result += rest.substr(overload);
  return result;
}

std::optional<std::string_view> higher_order_name(std::string_view target) {
  if (!target.starts_with(higher_order)) return std::nullopt;
  return target.substr(higher_order.size());
}

eager::Overload find_runnable(std::string_view name) {
  const eager::Overload found = eager::find_overload(name);
  return found.info != nullptr && runs(*found.info) ? found : eager::Overload{};
}

}  // namespace taper::pt2
