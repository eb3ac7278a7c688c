#include "taper/exporter/importers/pt2/complex_scalars.h"

#include <algorithm>
#include <string>

#include "taper/exporter/eager/complex_number.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

/// Overloads whose names do not follow the rule "Scalar" -> "Tensor".
constexpr std::pair<std::string_view, std::string_view> renamed[] = {
    {"pow.Scalar", "pow.Tensor_Tensor"},
    {"where.ScalarOther", "where.self"},
    {"where.ScalarSelf", "where.self"},
};

std::string overload_with_tensors(std::string_view name) {
  for (const auto& [scalar, tensor] : renamed)
    if (name == scalar) return std::string(tensor);
  std::string text(name);
  constexpr std::string_view scalar = "Scalar";
  if (const size_t at = text.rfind(scalar); at != text.npos)
    text.replace(at, scalar.size(), "Tensor");
  return text;
}

}  // namespace

eager::Tensor tensor_of(std::complex<double> z) {
  return eager::Tensor::from(std::vector{std::complex<float>(z)}, {});
}

eager::Overload for_complex_scalars(const Node& node, const eager::Overload& overload) {
  if (overload.info == nullptr) return overload;
  const bool takes_complex = std::ranges::any_of(node.inputs, [&](const NamedArgument& input) {
    const int at = overload.info->schema.find(input.name);
    return std::holds_alternative<std::complex<double>>(input.value) && at >= 0 &&
           overload.info->schema.parameters[at].kind == Kind::scalar;
  });
  if (!takes_complex) return overload;
  const eager::Overload found = find_runnable(overload_with_tensors(overload.info->name));
  return found.info == nullptr ? overload : eager::Overload{found.info, overload.in_place};
}

const std::complex<double>* filled_with(const Node& node) {
  const auto name = operator_name(node.target);
  if (!name) return nullptr;
  const std::string_view number = *name == "scalar_tensor" ? "s" : "fill_value";
  for (const std::string_view fills : {"full", "full_like", "new_full", "scalar_tensor"})
    if (*name == fills)
      for (const NamedArgument& input : node.inputs)
        if (input.name == number) return std::get_if<std::complex<double>>(&input.value);
  return nullptr;
}

}  // namespace taper::pt2
