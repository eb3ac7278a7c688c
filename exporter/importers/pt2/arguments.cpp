// Converts the arguments of a node to the form in which the row of its operator takes them.
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/pt2/complex_scalars.h"
#include "taper/exporter/importers/pt2/executor.h"

namespace taper::pt2 {
namespace {

using eager::Boxed;
using eager::OperatorInfo;
using eager::Tensor;

/// The dtype of a number that takes the place of a tensor. As in PyTorch, the number decides it
/// only if it is of a higher category than the tensors of the call.
DType dtype_for(const Number& n, DType beside) {
  if (is_floating(beside)) return beside;
  if (n.kind == Kind::real) return DType::f32;
  if (n.kind == Kind::integer && beside == DType::boolean) return DType::i64;
  return beside;
}

}  // namespace

std::string_view parameter_name(const eager::Overload& overload, std::string_view given) {
  return overload.in_place && given == "self" ? overload.info->arguments[0].name : given;
}

bool is_number(const Argument& a) {
  return std::holds_alternative<int64_t>(a) || std::holds_alternative<double>(a) ||
         std::holds_alternative<bool>(a) || std::holds_alternative<NumberName>(a);
}

std::string refusal_of(const Parameter& p, const Argument& a) {
  const bool is_complex_number = std::holds_alternative<std::complex<double>>(a);
  const auto unless = [](bool takes, const char* wanted) {
    return takes ? std::string() : std::string("must be ") + wanted;
  };
  const auto* tensors = std::get_if<std::vector<TensorName>>(&a);
  if (std::holds_alternative<std::monostate>(a) || !reaches_kernel(p)) return "";
  if (p.kind == Kind::tensor && p.list) return unless(tensors != nullptr, "a list of tensors");
  if (p.kind == Kind::tensor)
    return unless(std::holds_alternative<TensorName>(a) || is_number(a) || is_complex_number,
                  "a tensor");
  if (p.list && p.kind == Kind::real)
    return unless(std::holds_alternative<std::vector<double>>(a), "a list of numbers");
  if (p.list) {
    // an empty list does not show its type
    const bool empty = tensors != nullptr && tensors->empty();
    return unless(std::holds_alternative<IntegerList>(a) ||
                      std::holds_alternative<std::vector<bool>>(a) || empty || is_number(a),
                  "a list of integers");
  }
  if (p.kind == Kind::string) return unless(std::holds_alternative<std::string>(a), "a text");
  if (p.kind == Kind::dtype) {
    const auto* type = std::get_if<ScalarType>(&a);
    if (type == nullptr) return "must be a dtype";
    return type->dtype() ? "" : "must be a dtype that Taper has, not " + type->name();
  }
  return unless(is_number(a), p.kind == Kind::integer   ? "an integer"
                              : p.kind == Kind::boolean ? "a boolean"
                              : is_complex_number       ? "a real number"
                                                        : "a number");
}

Boxed Executor::box(const OperatorInfo& info, const Parameter& p, const Argument& a, DType beside,
                    eager::OwnedArguments& owned) {
  if (std::holds_alternative<std::monostate>(a)) return Boxed::absent(p.kind, p.list);
  if (const std::string refusal = refusal_of(p, a); !refusal.empty())
    throw ExportError("argument " + std::string(p.name) + " " + refusal);
  const auto* tensors = std::get_if<std::vector<TensorName>>(&a);
  if (p.kind == Kind::tensor && p.list) {
    std::vector<Tensor> list;
    for (const TensorName& t : *tensors) list.push_back(t.name.empty() ? Tensor() : tensor(t));
    return owned.hold(std::move(list));
  }
  if (p.kind == Kind::tensor) {
    if (const auto* name = std::get_if<TensorName>(&a)) return owned.hold(tensor(*name));
    if (const auto* z = std::get_if<std::complex<double>>(&a)) return owned.hold(tensor_of(*z));
    const Number n = number(a);
    return owned.hold(n.as_tensor(dtype_for(n, beside)));
  }
  if (p.list && p.kind == Kind::real) return owned.hold(std::get<std::vector<double>>(a));
  if (p.list) {
    eager::Dims dims;
    if (const auto* list = std::get_if<IntegerList>(&a)) {
      for (const auto& element : *list)
        dims.push_back(
            std::visit([&](const auto& e) { return number(Argument(e)).dim(); }, element));
    } else if (const auto* booleans = std::get_if<std::vector<bool>>(&a)) {
      for (const bool b : *booleans) dims.push_back(Dim(int64_t{b}));
    } else if (tensors == nullptr) {
      dims.push_back(number(a).dim());
    }
    return owned.hold(p, std::move(dims));
  }
  const auto known = [&] {
    const Number n = number(a);
    if (!n.is_known())
      throw ExportError("argument " + std::string(p.name) +
                        " must be known when the model is imported");
    return n.value().to<double>();
  };
  switch (p.kind) {
    case Kind::integer:
      return Boxed::of(number(a).dim());
    case Kind::boolean:
      return Boxed::of(known() != 0);
    case Kind::real:
      return Boxed::of(known());
    case Kind::scalar: {
      const Number n = number(a);
      if (n.is_known()) return Boxed::of(n.value());
      if (n.condition || info.op == &ops::_assert_scalar)
        return Boxed::of(true);  // an assertion, which becomes a check
      return Boxed::of(n.dim());
    }
    case Kind::string:
      return owned.hold(std::get<std::string>(a));
    case Kind::dtype:
      return Boxed::of(*std::get<ScalarType>(a).dtype());
    default:
      throw ExportError("argument " + std::string(p.name) + " of " + std::string(info.name) +
                        " is of a kind that no kernel takes");
  }
}

}  // namespace taper::pt2
