// The typed call, for the public lines in ops/<family>.h. The compiler compares the names, the
// number and the types of the arguments with the operator's row.
#pragma once
#include <atomic>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "taper/exporter/eager/dispatch.h"

namespace taper::eager {

namespace internal {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class A>
constexpr bool fits(const Parameter& p) {
  using T = std::decay_t<A>;
  if constexpr (std::is_same_v<T, std::nullopt_t>)
    return p.optional;
  else if constexpr (is_optional<T>)
    return p.optional && fits<typename T::value_type>(p);
  else if constexpr (std::is_base_of_v<Tensor, T>)
    return p.kind == Kind::tensor && !p.list;
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
    return p.kind == Kind::tensor && p.list;
  else if constexpr (std::is_same_v<T, bool>)
    return (p.kind == Kind::boolean && !p.list) || p.kind == Kind::scalar;
  else if constexpr (std::is_same_v<T, DType>)
    return p.kind == Kind::dtype;
  else if constexpr (std::is_same_v<T, Dim>)
    return p.kind == Kind::integer && !p.list && p.symbolic;
  else if constexpr (std::is_integral_v<T>)
    return (p.kind == Kind::integer && !p.list) || p.kind == Kind::scalar;
  else if constexpr (std::is_floating_point_v<T>)
    return (p.kind == Kind::real && !p.list) || p.kind == Kind::scalar;
  else if constexpr (std::is_same_v<T, Scalar>)
    return p.kind == Kind::scalar;
  else if constexpr (std::is_same_v<T, Dims>)
    return p.kind == Kind::integer && p.list && p.symbolic;
  else if constexpr (std::is_same_v<T, Ints>)
    return (p.kind == Kind::integer || p.kind == Kind::boolean) && p.list && !p.symbolic;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return p.kind == Kind::real && p.list;
  else
    return std::is_convertible_v<T, std::string_view> && p.kind == Kind::string;
}

/// The index of the first argument that does not fit the row. The number of arguments if some are
/// missing. -1 if all fit.
consteval int misfit(const Schema& s, std::initializer_list<bool (*)(const Parameter&)> arguments) {
  const int count = static_cast<int>(arguments.size());
  int n = 0;
  for (int i = 0; i < s.parameter_count; ++i) {
    if (!reaches_kernel(s.parameters[i])) continue;
    if (n == count || !arguments.begin()[n](s.parameters[i])) return n;
    ++n;
  }
  return n == count ? -1 : n;
}

template <int argument>
struct CallAndRowDifferAtArgument {
  static_assert(
      argument == -1,
      "the call's arguments and the row in operators.def differ (operator and index stand above)");
  static constexpr bool none = true;
};

/// The entry of a row in the table of operators. It is looked up at the first call.
class Callee {
 public:
  constexpr explicit Callee(const Operator& op) : op_(op) {}
  const OperatorInfo& info() {
    const OperatorInfo* found = info_.load(std::memory_order_acquire);
    return found != nullptr ? *found : look_up();
  }

 private:
  const OperatorInfo& look_up() {
    const OperatorInfo& found = info_of(op_);
    info_.store(&found, std::memory_order_release);
    return found;
  }

  const Operator& op_;
  std::atomic<const OperatorInfo*> info_ = nullptr;
};
template <const Operator& op>
inline constinit Callee callee{op};

template <class A>
Boxed box(const A& a, const Parameter& p) {
  if constexpr (std::is_same_v<A, std::nullopt_t>)
    return Boxed::absent(p.kind, p.list);
  else if constexpr (is_optional<A>)
    return a ? box(*a, p) : Boxed::absent(p.kind, p.list);
  else if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool>)
    return Boxed::of(Dim(a));
  else if constexpr (std::is_same_v<A, float>)
    return Boxed::of(static_cast<double>(a));
  else if constexpr (std::is_convertible_v<A, std::string_view>)
    return Boxed::of(std::string_view(a));
  else
    return Boxed::of(a);
}

// The calls themselves do not depend on the operator's row. So they are compiled once for each of
// some hundred combinations of argument types, and not for each row in each file.

template <size_t... i>
auto tuple_of(Tensor* results, std::index_sequence<i...>) {
  return std::tuple(std::move(results[i])...);
}

template <int result_count, class... A>
auto call(const OperatorInfo& info, const Location& here, const A&... a) {
  const Parameter* p = info.arguments;
  Boxed arguments[] = {box(a, *p++)..., Boxed()};
  Tensor results[result_count];
  dispatch(info, arguments, results, here);
  if constexpr (result_count == 1)
    return std::move(results[0]);
  else
    return tuple_of(results, std::make_index_sequence<result_count>());
}
template <class... A>
std::vector<Tensor> call_for_list(const OperatorInfo& info, const Location& here, const A&... a) {
  const Parameter* p = info.arguments;
  Boxed arguments[] = {box(a, *p++)..., Boxed()};
  return dispatch_list(info, arguments, here);
}
template <class... A>
void call_in_place(const OperatorInfo& info, const Location& here, Tensor& self, const A&... a) {
  const Parameter* p = info.arguments + 1;
  Boxed arguments[] = {Boxed::of(self), box(a, *p++)...};
  dispatch_in_place(info, arguments, self, here);
}

}  // namespace internal

/// Calls an operator with all arguments of its row that reach kernels, in order:
/// `call<ops::_softmax>(here, self, dim, false)`. Returns a Tensor, or a tuple if there are several
/// results.
template <const Operator& op, class... A>
auto call(const Location& here, const A&... a) {
  static_assert(internal::CallAndRowDifferAtArgument<internal::misfit(
                    schema<op>, {internal::fits<A>...})>::none);
  const OperatorInfo& info = internal::callee<op>.info();
  if constexpr (schema<op>.results[0].list)
    return internal::call_for_list(info, here, a...);
  else
    return internal::call<schema<op>.result_count>(info, here, a...);
}

/// The same, at the place of the scope. Decompositions and derivatives call this.
template <const Operator& op, class... A>
auto call(const A&... a) {
  return call<op>(place(), a...);
}

/// The in-place twin of `op`: `self` becomes the result. `self` is argument 0 and is not repeated.
template <const Operator& op, class... A>
Tensor& call_in_place(const Location& here, Tensor& self, const A&... a) {
  static_assert(internal::CallAndRowDifferAtArgument<internal::misfit(
                    schema<op>, {internal::fits<Tensor>, internal::fits<A>...})>::none);
  internal::call_in_place(internal::callee<op>.info(), here, self, a...);
  return self;
}

}  // namespace taper::eager
