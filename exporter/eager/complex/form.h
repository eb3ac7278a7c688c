// Complex numbers: how an operator computes with them, in operators on their real and imaginary
// parts. Gradients then follow from the derivatives of these: the gradient of z = a + bi is
// dL/da + i dL/db, as in PyTorch. A program needs no arithmetic on complex numbers.
#pragma once
#include <span>

#include "taper/exporter/eager/complex/pair.h"
#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager {

/// The form of one operator. It runs if an argument is complex, or the dtype of the result.
struct ComplexForm {
  const Operator* op;
  Results (*run)(const OperatorInfo& info, const Boxed* arguments);
};

/// Whether a tensor among the arguments is complex, or a dtype that the call asks for.
bool has_complex(const OperatorInfo& info, const Boxed* arguments);
/// nullptr: the operator has none. Views, kernels that move elements, and decompositions into other
/// operators need none.
const ComplexForm* complex_form(const OperatorInfo& info);
/// "relu: has no form for complex numbers; …", for the name of an operator.
std::string describe_no_complex_form(std::string_view name);

namespace complex_forms {

/// The operator applied to the real parts of its arguments, or to the imaginary parts. Tensors that
/// are not floating (indices, masks) stay. `factors`: whether Scalars multiply both parts;
/// otherwise they are real numbers, whose imaginary parts are 0.
Results real_parts(const OperatorInfo& info, const Boxed* arguments);
Results imaginary_parts(const OperatorInfo& info, const Boxed* arguments, bool factors);
/// The complex results of two real calls; bool and integer results are those of the first.
Results joined(const Results& re, const Results& im);

/// For operators that are linear over the real numbers: each part by itself.
Results by_parts(const OperatorInfo& info, const Boxed* arguments);
/// The same, where Scalars are elements: 3 stands for 3 + 0i.
Results by_parts_with_numbers(const OperatorInfo& info, const Boxed* arguments);

/// For operators that are linear in each of two arguments, which they read more than once.
template <const Operator& op, Name first, Name second>
Results bilinear(const OperatorInfo& info, const Boxed* arguments) {
  constexpr int i = position<op, first>(), k = position<op, second>();
  Boxed real[Schema::max_parameters];
  std::copy_n(arguments, info.argument_count, real);
  const auto product = [&](const Tensor& x, const Tensor& y) {
    real[i] = Boxed::of(x), real[k] = Boxed::of(y);
    Tensor result;
    dispatch(info, real, &result, place());
    return result;
  };
  const Pair x = dense_pair_of(arguments[i].tensor()), y = dense_pair_of(arguments[k].tensor());
  return {complex_of(product_of(x, y, product))};
}

}  // namespace complex_forms
}  // namespace taper::eager

/// Puts a form into the table, in namespace taper::eager::complex_forms. The build finds and lists
/// it.
#define TAPER_COMPLEX_FORM(op, ...)                                     \
  extern const ComplexForm op##_form; /* not `op`, which bodies call */ \
  const ComplexForm op##_form{&::taper::ops::op, __VA_ARGS__};

/// Defines a form. `a` are the arguments.
///
///   TAPER_COMPLEX(exp) { return {complex_of(exponential(pair_of(a.tensor<"self">())))}; }
#define TAPER_COMPLEX(op)                                              \
  static Results op##_of_pairs(const Arguments<::taper::ops::op>& a);  \
  TAPER_COMPLEX_FORM(op, [](const OperatorInfo&, const Boxed* boxed) { \
    return op##_of_pairs(Arguments<::taper::ops::op>(boxed));          \
  })                                                                   \
  static Results op##_of_pairs([[maybe_unused]] const Arguments<::taper::ops::op>& a)
