#include "taper/exporter/eager/complex/form.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "taper/exporter/eager/ops/all.h"

namespace taper::eager {
namespace complex_forms {
namespace {

/// The arguments of a call on one part of its tensors.
class PartArguments {
 public:
  PartArguments(const OperatorInfo& info, const Boxed* arguments) {
    tensors_.reserve(Schema::max_parameters), lists_.reserve(Schema::max_parameters);
    std::copy_n(arguments, info.argument_count, boxed_);
  }
  template <class Part>
  Results call(const OperatorInfo& info, const Part& part, bool factors) {
    for (int i = 0; i < info.argument_count; ++i) {
      Boxed& b = boxed_[i];
      if (!b.present) continue;
      if (b.kind == Kind::tensor)
        replace(b, part);
      else if (b.kind == Kind::dtype && is_complex(static_cast<DType>(b.integer())))
        b = Boxed::of(DType::f32);
      else if (info.arguments[i].kind == Kind::scalar && !factors)
        b = Boxed::of(Scalar(0));
    }
    Results results(static_cast<size_t>(info.schema.result_count));
    dispatch(info, boxed_, results.data(), place());
    return results;
  }

 private:
  template <class Part>
  void replace(Boxed& b, const Part& part) {
    const auto of = [&](const Tensor& t) {
      const bool has_parts = t.defined() && (is_complex(t.dtype()) || is_floating(t.dtype()));
      return has_parts ? part(pair_of(t)) : t;
    };
    if (!b.list) {
      b = Boxed::of(tensors_.emplace_back(of(b.tensor())));
      return;
    }
    std::vector<Tensor>& list = lists_.emplace_back();
    for (uint32_t k = 0; k < b.size; ++k) list.push_back(of(b.tensors[k]));
    b = Boxed::of(list);
  }

  Boxed boxed_[Schema::max_parameters];
  std::vector<Tensor> tensors_;
  std::vector<std::vector<Tensor>> lists_;
};

}  // namespace

Results real_parts(const OperatorInfo& info, const Boxed* arguments) {
  return PartArguments(info, arguments)
      .call(
          info, [](const Pair& z) { return z.re; }, true);
}
Results imaginary_parts(const OperatorInfo& info, const Boxed* arguments, bool factors) {
  return PartArguments(info, arguments).call(info, imaginary, factors);
}
Results joined(const Results& re, const Results& im) {
  Results results;
  for (size_t k = 0; k < re.size(); ++k) {
    const bool is_pair = re[k].defined() && is_floating(re[k].dtype());
    results.push_back(is_pair ? complex_of({re[k], im[k]}) : re[k]);
  }
  return results;
}

Results by_parts(const OperatorInfo& info, const Boxed* arguments) {
  return joined(real_parts(info, arguments), imaginary_parts(info, arguments, true));
}
Results by_parts_with_numbers(const OperatorInfo& info, const Boxed* arguments) {
  return joined(real_parts(info, arguments), imaginary_parts(info, arguments, false));
}

#define TAPER_COMPLEX_FORM_NAME(name) extern const ComplexForm name##_form;
#include "taper/exporter/eager/complex/forms.def"
#undef TAPER_COMPLEX_FORM_NAME

namespace {

constexpr const ComplexForm* list[] = {
#define TAPER_COMPLEX_FORM_NAME(name) &name##_form,
#include "taper/exporter/eager/complex/forms.def"
#undef TAPER_COMPLEX_FORM_NAME
};

}  // namespace
}  // namespace complex_forms

bool has_complex(const OperatorInfo& info, const Boxed* arguments) {
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (!b.present) continue;
    if (b.kind == Kind::dtype && is_complex(static_cast<DType>(b.integer()))) return true;
    if (b.kind != Kind::tensor) continue;
    for (uint32_t k = 0; k < b.size; ++k)
      if (b.tensors[k].defined() && is_complex(b.tensors[k].dtype())) return true;
  }
  return false;
}

const ComplexForm* complex_form(const OperatorInfo& info) {
  static const auto forms = [] {
    std::unordered_map<const Operator*, const ComplexForm*> map;
    for (const ComplexForm* form : complex_forms::list) map[form->op] = form;
    return map;
  }();
  const auto at = forms.find(info.op);
  return at != forms.end() ? at->second : nullptr;
}

namespace {
/// Whether the parts of a matrix have other eigenvalues, factors or solutions than the matrix.
bool is_of_matrices(std::string_view name) {
  static constexpr std::string_view others[] = {
      "_linalg_", "cholesky", "lu_", "matrix_exp", "pinverse", "triangular_solve", "taper::"};
  return name.starts_with("linalg_") ||
         std::ranges::any_of(others, [&](std::string_view o) { return name.starts_with(o); });
}
}  // namespace

std::string describe_no_complex_form(std::string_view name) {
  const char* remedy =
      is_of_matrices(name)
          ? "use the real matrix [[re, -im], [im, re]] of twice the size"
          : "apply it to the real numbers that you need: real(x), imag(x), abs(x), view_as_real(x)";
  return std::string(name) + ": has no form for complex numbers; " + remedy;
}

}  // namespace taper::eager
