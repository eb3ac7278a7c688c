// Reads a node's arguments by name, for passes. The names are compared with the operator's row at
// compile time.
#pragma once
#include <cassert>
#include <type_traits>

#include "taper/exporter/eager/arguments.h"
#include "taper/exporter/ir/graph.h"

namespace taper::ir {

namespace internal {

template <const Operator& op, eager::Name name>
consteval Parameter parameter() {
  static_assert(eager::position<op, name>() >= 0);
  return schema<op>.parameters[schema<op>.find(name.view())];
}

/// The type that `Argument` holds for a parameter.
template <const Operator& op, eager::Name name>
consteval auto held() {
  constexpr Parameter p = parameter<op, name>();
  if constexpr (p.kind == Kind::tensor && p.list)
    return std::type_identity<std::vector<Value*>>();
  else if constexpr (p.kind == Kind::tensor)
    return std::type_identity<Value*>();
  else if constexpr (p.kind == Kind::real && p.list)
    return std::type_identity<std::vector<double>>();
  else if constexpr (p.list)
    return std::type_identity<std::vector<Dim>>();
  else if constexpr (p.kind == Kind::integer)
    return std::type_identity<Dim>();
  else if constexpr (p.kind == Kind::real)
    return std::type_identity<double>();
  else if constexpr (p.kind == Kind::boolean)
    return std::type_identity<bool>();
  else if constexpr (p.kind == Kind::scalar)
    return std::type_identity<Scalar>();
  else if constexpr (p.kind == Kind::dtype)
    return std::type_identity<DType>();
  else
    return std::type_identity<std::string>();
}

}  // namespace internal

/// A node that calls `op`.
///
///   const Call<ops::convolution> conv(*node);
///   if (conv.get<"transposed">()) …
///   graph.set_argument(node, conv.position<"weight">, folded);
template <const Operator& op>
class Call {
 public:
  explicit Call(const Node& node) : node_(node) { assert(node.op == &op); }

  template <eager::Name name>
  static constexpr size_t position = static_cast<size_t>(eager::position<op, name>());

  /// The argument `name`. The row decides its type:
  ///   Tensor → Value*, nullptr if absent · a list → const vector& · any other → its value
  ///   Scalar → const Scalar*, nullptr if symbolic
  ///   an optional number, list or text → a pointer, nullptr if absent
  template <eager::Name name>
  decltype(auto) get() const {
    using T = typename decltype(internal::held<op, name>())::type;
    constexpr Parameter p = internal::parameter<op, name>();
    const Argument& argument = node_.arguments[position<name>];
    if constexpr (p.kind == Kind::tensor && !p.list) {
      Value* const* value = std::get_if<Value*>(&argument);
      return value == nullptr ? nullptr : *value;
    } else if constexpr (p.kind == Kind::scalar || p.optional) {
      return std::get_if<T>(&argument);
    } else if constexpr (std::is_scalar_v<T> || std::is_same_v<T, Dim>) {
      return T(std::get<T>(argument));
    } else {
      return std::get<T>(argument);
    }
  }

 private:
  const Node& node_;
};

/// The tensor argument `name` of `node`, if the node calls one of `list`; else nullptr.
template <eager::Name name, const Operator&... list>
Value* tensor_of_any(const Node& node) {
  Value* found = nullptr;
  static_cast<void>(
      ((node.op == &list && (found = Call<list>(node).template get<name>(), true)) || ...));
  return found;
}

/// The tensor that a view looks at: the first argument in each row of category `view`.
inline Value* viewed(const Node& view) {
  assert(view.op->category == Category::view);
  return std::get<Value*>(view.arguments[0]);
}

}  // namespace taper::ir
