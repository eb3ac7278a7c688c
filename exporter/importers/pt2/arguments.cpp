// Arguments of a node as the row of its operator takes them.
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/pt2/executor.h"

namespace taper::pt2 {
namespace {

using eager::Boxed;
using eager::OperatorInfo;
using eager::Tensor;

[[noreturn]] void refuse(const Parameter& parameter, const std::string& wanted) {
  throw ExportError("argument " + std::string(parameter.name) + " must be " + wanted);
}

/// In PyTorch a number in a tensor's place decides the dtype only if it is of a higher category
/// than the tensors beside it.
DType dtype_for(const Number& n, DType beside) {
  if (is_floating(beside)) return beside;
  if (n.kind == Kind::real) return DType::f32;
  if (n.kind == Kind::integer && beside == DType::boolean) return DType::i64;
  return beside;
}

}  // namespace

bool is_number(const Argument& a) {
  return std::holds_alternative<int64_t>(a) || std::holds_alternative<double>(a) ||
         std::holds_alternative<bool>(a) || std::holds_alternative<NumberName>(a);
}

Boxed Executor::box(const OperatorInfo& info, const Parameter& p, const Argument& a, DType beside,
                    eager::OwnedArguments& owned, Location here) {
  if (std::holds_alternative<std::monostate>(a)) return Boxed::absent(p.kind, p.list);
  if (p.kind == Kind::tensor && p.list) {
    const auto* names = std::get_if<std::vector<TensorName>>(&a);
    if (names == nullptr) refuse(p, "a list of tensors");
    std::vector<Tensor> list;
    for (const TensorName& t : *names) list.push_back(t.name.empty() ? Tensor() : tensor(t));
    return owned.hold(std::move(list));
  }
  if (p.kind == Kind::tensor) {
    if (const auto* name = std::get_if<TensorName>(&a)) return owned.hold(tensor(*name));
    if (!is_number(a)) refuse(p, "a tensor");
    const Number n = number(a);
    return owned.hold(n.as_tensor(dtype_for(n, beside), here));
  }
  if (p.list && p.kind == Kind::real) {
    if (const auto* reals = std::get_if<std::vector<double>>(&a)) return owned.hold(*reals);
    refuse(p, "a list of numbers");
  }
  if (p.list) {
    eager::Dims dims;
    if (const auto* list = std::get_if<IntegerList>(&a)) {
      for (const auto& element : *list)
        dims.push_back(
            std::visit([&](const auto& e) { return number(Argument(e)).dim(here); }, element));
    } else if (const auto* booleans = std::get_if<std::vector<bool>>(&a)) {
      for (const bool b : *booleans) dims.push_back(Dim(int64_t{b}));
    } else if (const auto* none = std::get_if<std::vector<TensorName>>(&a);
               none != nullptr && none->empty()) {
      // an empty list of unknown type
    } else if (is_number(a)) {
      dims.push_back(number(a).dim(here));
    } else {
      refuse(p, "a list of integers");
    }
    return owned.hold(p, std::move(dims));
  }
  switch (p.kind) {
    case Kind::integer:
      if (!is_number(a)) refuse(p, "an integer");
      return Boxed::of(number(a).dim(here));
    case Kind::boolean: {
      if (!is_number(a)) refuse(p, "a boolean");
      const Number n = number(a);
      if (!n.is_known()) refuse(p, "known when the model is imported");
      return Boxed::of(n.value().to<double>() != 0);
    }
    case Kind::real: {
      if (!is_number(a)) refuse(p, "a number");
      const Number n = number(a);
      if (!n.is_known()) refuse(p, "known when the model is imported");
      return Boxed::of(n.value().to<double>());
    }
    case Kind::scalar: {
      if (!is_number(a)) refuse(p, "a number");
      const Number n = number(a);
      if (n.is_known()) return Boxed::of(n.value());
      if (n.condition) return Boxed::of(true);  // an assertion: it becomes a check
      return Boxed::of(n.dim(here));
    }
    case Kind::string:
      if (const auto* text = std::get_if<std::string>(&a)) return owned.hold(*text);
      refuse(p, "a text");
    case Kind::dtype:
      if (const auto* type = std::get_if<ScalarType>(&a)) {
        if (!type->dtype()) refuse(p, "a dtype that Taper has, not " + type->name());
        return Boxed::of(*type->dtype());
      }
      refuse(p, "a dtype");
    default:
      throw ExportError("argument " + std::string(p.name) + " of " + std::string(info.name) +
                        " is of a kind that no kernel takes");
  }
}

}  // namespace taper::pt2
