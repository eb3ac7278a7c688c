// Derivatives, written in eager operators. So they can be differentiated again, traced, and
// debugged step by step.
#pragma once
#include <array>
#include <span>

#include "taper/exporter/eager/arguments.h"
#include "taper/exporter/eager/autograd.h"

namespace taper::eager {

/// The facts about an operator that the tape needs.
struct Derivative {
  const Operator* op;
  uint32_t saves;  ///< bit i: argument i (of those that reach kernels) is kept for backward; bit 16
                   ///< + k: result k is; bit 31: result 0 alone has a gradient
  Gradients (*run)(const SavedCall& call, const Gradients& results);
};

/// All that are defined in this folder.
std::span<const Derivative* const> all_derivatives();

/// The arguments of the call that is differentiated. A tensor is there if the derivative says that
/// it saves the tensor. The sizes and dtypes of all tensor arguments are always there.
template <const Operator& op>
class Saved : public Arguments<op> {
 public:
  explicit Saved(const SavedCall& call) : Arguments<op>(call.arguments()), call_(call) {}

  template <Name name>
  Tensor tensor() const {
    return call_.tensor(position<op, name>());
  }
  template <Name name>
  std::vector<Tensor> tensors() const {
    return call_.tensors(position<op, name>());
  }
  /// A result of the call.
  Tensor result(int k = 0) const { return call_.result(k); }
  /// Whether anybody wants the gradient of this argument.
  template <Name name>
  bool needs() const {
    return call_.needs(position<op, name>());
  }
  template <Name name>
  Dims sizes() const {
    return call_.sizes(position<op, name>());
  }
  template <Name name>
  DType dtype_of() const {
    return call_.dtype(position<op, name>());
  }
  const SavedCall& call() const { return call_; }

 private:
  const SavedCall& call_;
};

namespace internal {
template <const Operator& op>
consteval uint32_t saves(std::initializer_list<std::string_view> names) {
  uint32_t mask = 0;
  for (const std::string_view name : names) {
    if (name == "only result0") {
      mask |= 1u << 31;
    } else if (name.substr(0, 6) == "result") {
      mask |= 1u << (16 + (name.size() > 6 ? name[6] - '0' : 0));
    } else {
      const int position = position_of(schema<op>, name);
      if (position < 0) throw "the operator's row has no parameter of this name";
      mask |= 1u << position;
    }
  }
  return mask;
}
}  // namespace internal

namespace derivatives {
/// dy where the mask is true, else 0.
Tensor keep(const Tensor& dy, const Tensor& mask);  // pointwise.cpp
}  // namespace derivatives

}  // namespace taper::eager

/// Defines a derivative, in namespace taper::eager::derivatives. The build finds and lists it.
/// After the operator come the names of what is saved: arguments, and "result" ("result1", …).
/// "only result0" says that the other results have no gradient, because they are statistics for the
/// backward pass. In the body, `saved` is the call, `dy` the gradient of result 0, and `dys` the
/// gradients of all results; undefined means none.
///
///   TAPER_DERIVATIVE(_softmax, "result") {
///     const Tensor y = saved.result();
///     return {y * (dy - sum(y * dy, {saved.integer<"dim">()}, true))};
///   }
#define TAPER_DERIVATIVE(op, ...)                                                                  \
  static Gradients op##_derivative(const Saved<::taper::ops::op>& saved, const Tensor& dy,         \
                                   const Gradients& dys);                                          \
  extern const Derivative op##_entry; /* not `op`, which is the function that bodies call */       \
  const Derivative op##_entry{&::taper::ops::op, internal::saves<::taper::ops::op>({__VA_ARGS__}), \
                              [](const SavedCall& call, const Gradients& dys) {                    \
                                return op##_derivative(Saved<::taper::ops::op>(call), dys[0],      \
                                                       dys);                                       \
                              }};                                                                  \
  static Gradients op##_derivative([[maybe_unused]] const Saved<::taper::ops::op>& saved,          \
                                   [[maybe_unused]] const Tensor& dy,                              \
                                   [[maybe_unused]] const Gradients& dys)
