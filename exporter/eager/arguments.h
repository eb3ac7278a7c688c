// Reads arguments of a call by name. The names are compared with the row at compile time. For
// derivatives and decompositions.
#pragma once
#include <algorithm>
#include <string_view>

#include "taper/exporter/eager/boxed.h"
#include "taper/kernels/operators.h"

namespace taper::eager {

/// A name as a template argument: `arguments.tensor<"self">()`.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&s)[n]) { std::copy_n(s, n, text); }
  constexpr std::string_view view() const { return {text, n - 1}; }
};

/// The position of a parameter among the parameters that reach kernels; -1 if there is none.
constexpr int position_of(const Schema& s, std::string_view name) {
  int position = 0;
  for (int i = 0; i < s.parameter_count; ++i) {
    if (!reaches_kernel(s.parameters[i])) continue;
    if (s.parameters[i].name == name) return position;
    ++position;
  }
  return -1;
}

template <const Operator& op, Name name>
consteval int position() {
  constexpr int found = position_of(schema<op>, name.view());
  static_assert(found >= 0, "the operator's row has no parameter of this name");
  return found;
}

/// The boxed arguments of one call of `op`.
template <const Operator& op>
class Arguments {
 public:
  explicit Arguments(const Boxed* boxed) : boxed_(boxed) {}

  template <Name name>
  const Boxed& boxed() const {
    return boxed_[position<op, name>()];
  }
  template <Name name>
  bool has() const {
    return boxed<name>().present;
  }
  /// Undefined if the argument is absent.
  template <Name name>
  Tensor tensor() const {
    return has<name>() ? boxed<name>().tensor() : Tensor();
  }
  template <Name name>
  std::vector<Tensor> tensors() const {
    const Boxed& b = boxed<name>();
    return {b.tensors, b.tensors + b.size};
  }
  template <Name name>
  Dim dim() const {
    return boxed<name>().dim;
  }
  template <Name name>
  int64_t integer() const {
    return boxed<name>().integer();
  }
  template <Name name>
  bool boolean() const {
    return boxed<name>().integer() != 0;
  }
  template <Name name>
  double real() const {
    return boxed<name>().scalar().template to<double>();
  }
  template <Name name>
  Scalar scalar() const {
    return boxed<name>().scalar();
  }
  template <Name name>
  DType dtype() const {
    return static_cast<DType>(boxed<name>().integer());
  }
  template <Name name>
  std::string_view text() const {
    return {boxed<name>().text, boxed<name>().size};
  }
  template <Name name>
  Dims dims() const {
    const Boxed& b = boxed<name>();
    return b.present ? Dims(b.dims, b.dims + b.size) : Dims();
  }
  template <Name name>
  Ints integers() const {
    const Boxed& b = boxed<name>();
    return b.present ? Ints(b.integers, b.integers + b.size) : Ints();
  }
  template <Name name>
  std::vector<double> reals() const {
    const Boxed& b = boxed<name>();
    return b.present ? std::vector<double>(b.reals, b.reals + b.size) : std::vector<double>();
  }

 private:
  const Boxed* boxed_;
};

}  // namespace taper::eager
