// The typed call: what a public line in ops/<family>.h is made of. Names, number and types of its
// arguments are compared with the operator's row when it is compiled.
#pragma once
#include <atomic>
#include <optional>
#include <tuple>
#include <type_traits>

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

/// The index of the first argument that does not fit the row; the number of arguments if some are
/// missing; -1: all fit.
template <const Operator& op, class... A>
consteval int misfit() {
  constexpr const Schema& s = schema<op>;
  bool (*const checks[])(const Parameter&) = {&fits<A>..., nullptr};
  int n = 0;
  for (int i = 0; i < s.parameter_count; ++i) {
    if (!reaches_kernel(s.parameters[i])) continue;
    if (n == static_cast<int>(sizeof...(A)) || !checks[n](s.parameters[i])) return n;
    ++n;
  }
  return n == static_cast<int>(sizeof...(A)) ? -1 : n;
}
template <const Operator& op, int argument>
struct call_differs_from_the_row_at_argument {
  static_assert(
      argument == -1,
      "the call's arguments and the row in operators.def differ (operator and index stand above)");
  static constexpr bool ok = true;
};

/// A row's entry in the table of operators, looked up at the first call.
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

}  // namespace internal

/// Calls an operator with all the arguments of its row that reach kernels, in order:
/// `call<ops::_softmax>(here, self, dim, false)`. Gives a Tensor, or a tuple for several results.
template <const Operator& op, class... A>
auto call(const Location& here, const A&... a) {
  static_assert(
      internal::call_differs_from_the_row_at_argument<op, internal::misfit<op, A...>()>::ok);
  const OperatorInfo& info = internal::callee<op>.info();
  const Parameter* p = info.arguments;
  Boxed arguments[] = {internal::box(a, *p++)..., Boxed()};
  if constexpr (schema<op>.results[0].list) {
    return dispatch_list(info, arguments, here);
  } else {
    constexpr int count = schema<op>.result_count;
    Tensor results[count];
    dispatch(info, arguments, results, here);
    if constexpr (count == 1)
      return std::move(results[0]);
    else if constexpr (count == 2)
      return std::tuple(results[0], results[1]);
    else if constexpr (count == 3)
      return std::tuple(results[0], results[1], results[2]);
    else if constexpr (count == 4)
      return std::tuple(results[0], results[1], results[2], results[3]);
    else
      return std::tuple(results[0], results[1], results[2], results[3], results[4]);
  }
}

/// The in-place twin of `op`: `self` becomes the result. `self` is argument 0 and is not repeated.
template <const Operator& op, class... A>
Tensor& call_in_place(const Location& here, Tensor& self, const A&... a) {
  static_assert(
      internal::call_differs_from_the_row_at_argument<op,
                                                      internal::misfit<op, Tensor, A...>()>::ok);
  const OperatorInfo& info = internal::callee<op>.info();
  const Parameter* p = info.arguments + 1;
  Boxed arguments[] = {Boxed::of(self), internal::box(a, *p++)...};
  dispatch_in_place(info, arguments, self, here);
  return self;
}

}  // namespace taper::eager
