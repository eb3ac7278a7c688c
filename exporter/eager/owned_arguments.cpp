#include "taper/exporter/eager/owned_arguments.h"

namespace taper::eager {
namespace {

/// In-place operators whose overload name differs from that of the row.
constexpr std::pair<std::string_view, std::string_view> renamed[] = {
    {"transpose", "transpose.int"},
    {"pow.Scalar", "pow.Tensor_Scalar"},
    {"pow.Tensor", "pow.Tensor_Tensor"},
};

}  // namespace

Overload find_overload(std::string_view name) {
  if (const OperatorInfo* info = find_operator(name)) return {info, false};
  const size_t dot = std::min(name.find('.'), name.size());
  if (dot < 2 || name[dot - 1] != '_') return {};
  std::string base = std::string(name.substr(0, dot - 1)) + std::string(name.substr(dot));
  for (const auto& [twin, row] : renamed)
    if (base == twin) base = row;
  return {find_operator(base), true};
}

Boxed OwnedArguments::hold(const Parameter& parameter, Dims list) {
  if (list.size() == 1 && parameter.length > 1) list.resize(parameter.length, list[0]);
  if (parameter.symbolic) return Boxed::of(dims_.emplace_back(std::move(list)));
  Ints& integers = integers_.emplace_back();
  for (const Dim d : list) integers.push_back(d.value());
  return Boxed::of(integers);
}

Boxed OwnedArguments::fallback(const Parameter& parameter) {
  const std::string text(parameter.fallback);
  if (!parameter.has_fallback || text == "None")
    return Boxed::absent(parameter.kind, parameter.list);
  if (parameter.list) {
    Dims list;
    std::string number;
    for (const char c : text + ",") {
      if ((c >= '0' && c <= '9') || c == '-')
        number += c;
      else if (!number.empty())
        list.push_back(Dim(std::stoll(number))), number.clear();
    }
    return hold(parameter, std::move(list));
  }
  switch (parameter.kind) {
    case Kind::boolean:
      return Boxed::of(text == "True");
    case Kind::integer:
      return Boxed::of(Dim(text == "Mean" ? int64_t{1} : std::stoll(text)));
    case Kind::real:
      return Boxed::of(std::stod(text));
    case Kind::scalar:
      return text.find_first_of(".e") == std::string::npos
                 ? Boxed::of(Scalar(static_cast<int64_t>(std::stoll(text))))
                 : Boxed::of(Scalar(std::stod(text)));
    case Kind::string:
      return hold(text.substr(1, text.size() - 2));
    case Kind::dtype:
      return Boxed::of(text == "float" ? DType::f32 : DType::i64);  // else `long`
    default:
      return Boxed::absent(parameter.kind);
  }
}

}  // namespace taper::eager
