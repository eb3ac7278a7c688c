#include <algorithm>

#include "taper/exporter/eager/alias.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/eager/run_kernel.h"
#include "taper/exporter/eager/storage_dtypes.h"

namespace taper::eager {
namespace {

DType without_half(DType d) { return is_half(d) ? DType::f32 : d; }

bool wants_gradient(const OperatorInfo& info, const Boxed* arguments) {
  return grad_enabled() &&
         any_tensor(info, arguments, [](int, const Tensor& t) { return t.requires_grad(); });
}

void check_arguments(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  for (int i = 0; i < info.argument_count; ++i) {
    const Parameter& p = info.arguments[i];
    const Boxed& b = arguments[i];
    if (p.kind != Kind::tensor || p.optional || p.optional_elements) continue;
    const auto refuse = [&](const std::string& what) {
      throw EagerError(here, std::string(info.name) + ": " + what + " " + std::string(p.name) +
                                 " is an undefined tensor");
    };
    if (!p.list && !b.present) refuse("argument");
    for (uint32_t k = 0; p.list && k < b.size; ++k)
      if (!b.tensors[k].defined()) refuse("element " + std::to_string(k) + " of");
  }
}

/// Errors from below the operators, such as memory or sizes beyond 64 bits, also name the call.
template <class Work>
void in_terms_of(const OperatorInfo& info, const Location& here, const Work& work) {
  try {
    work();
  } catch (const EagerError&) {
    throw;
  } catch (const ExportError& e) {
    throw EagerError(here, std::string(info.name) + ": " + e.what());
  }
}

/// Infers the results of a call by the symbolic rule: for every call in a trace, and for views
/// always.
void infer(const OperatorInfo& info, const Boxed* arguments, TensorType<Dim>* types,
           std::vector<Check>& checks, const Location& here) {
  Facts<Dim> facts;
  if (info.symbolic_rule == nullptr) throw MissingKernelError(here, describe_absence(info));
  in_terms_of(info, here, [&] {
    if (!info.symbolic_rule(facts, arguments, types))
      throw EagerError(here, describe_failure(info, arguments, facts));
  });
  checks = std::move(facts.checks);
}

Tensor make_view(const Tensor& source, const TensorType<Dim>& type) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = source.impl()->storage;
  impl->ref.dtype = type.dtype;
  impl->shape.rank = type.rank;
  if (source.is_traced() || recorder()) {
    impl->symbolic = std::make_unique<TensorType<Dim>>(type);
    return Tensor(std::move(impl));
  }
  for (int i = 0; i < type.rank; ++i)
    impl->shape.sizes[i] = type.sizes[i].value(), impl->shape.strides[i] = type.strides[i].value();
  impl->offset = type.offset.value();
  impl->bind();
  return Tensor(std::move(impl));
}

/// as_strided may name any elements of the storage, but none outside. In a trace, the storage is
/// that of the tensor of which `source` is a view. If symbols leave the question open, the program
/// checks it when it runs.
void require_inside(const Tensor& source, const TensorType<Dim>& view, std::vector<Check>& checks,
                    const Location& here) {
  const Dims sizes(view.sizes, view.sizes + view.rank),
      strides(view.strides, view.strides + view.rank);
  Dim end = view.offset + 1;  // one past the last element
  for (int i = 0; i < view.rank; ++i) {
    if (!proves_at_least(view.sizes[i], 1)) return;  // it may have no elements
    end = end + (view.sizes[i] - 1) * view.strides[i];
  }
  const Tensor& base = source.impl()->base.defined() ? source.impl()->base : source;
  const Dim bytes = base.is_traced()
                        ? base.numel() * size_bytes(base.dtype())
                        : Dim(static_cast<int64_t>(source.impl()->storage->size_bytes()));
  const Dim elements = bytes / size_bytes(source.dtype());
  const std::string message = "as_strided: sizes " + to_string(sizes) + ", strides " +
                              to_string(strides) + " and storage_offset " +
                              view.offset.to_string() + " lie outside the storage of " +
                              elements.to_string() + " elements";
  if (proves_less(elements, end)) throw EagerError(here, message);
  if (!proves_at_least(elements, end))
    checks.push_back({Comparison::less_equal, end, elements, message});
}

void run_view(const OperatorInfo& info, const Boxed* given, Tensor* results, const Location& here) {
  // a view looks at dense elements
  Boxed arguments[Schema::max_parameters];
  std::copy_n(given, info.argument_count, arguments);
  Tensor unpacked;
  if (recorder() == nullptr && arguments[0].tensor().layout() != Layout::dense) {
    unpacked = arguments[0].tensor().unpacked(here);
    arguments[0] = Boxed::of(unpacked);
  }
  TensorType<Dim> type;
  std::vector<Check> checks;
  infer(info, arguments, &type, checks, here);
  if (info.op == &ops::as_strided) require_inside(arguments[0].tensor(), type, checks, here);
  results[0] = make_view(arguments[0].tensor(), type);
  link_view(results[0], info, arguments);
  if (Recorder* r = recorder()) r->record(info, arguments, results, checks, here);
}

void run_traced(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                const Location& here) {
  TensorType<Dim> types[Schema::max_results];
  std::vector<Check> checks;
  infer(info, arguments, types, checks, here);
  for (int k = 0; k < info.schema.result_count; ++k)
    if (types[k].present) results[k] = traced_tensor(types[k]);
  recorder()->record(info, arguments, results, checks, here);
}

/// A composite runs as a whole if a kernel takes its dtypes and, if gradients are wanted, it has a
/// derivative. A trace keeps it whole if a rule gives its results. passes::decompose later replaces
/// those that the target cannot run.
bool decomposes(const OperatorInfo& info, const Boxed* arguments) {
  if (info.decomposition == nullptr) return false;
  if (info.derivative == nullptr && wants_gradient(info, arguments)) return true;
  const auto in_parts = info.decomposition->in_parts;
  if (in_parts != nullptr && in_parts(arguments)) return true;
  if (recorder() != nullptr && info.op->category == Category::composite &&
      info.symbolic_rule != nullptr && !has_complex(info, arguments))
    return false;
  return info.kernels.empty() || !some_kernel_fits(info, arguments);
}

/// Half precision is computed in f32 if no kernel takes it directly, unless the operator refuses
/// that.
bool widens(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  const bool half =
      any_tensor(info, arguments, [](int, const Tensor& t) { return is_half(t.dtype()); });
  if (!half || info.op->category == Category::view || some_kernel_fits(info, arguments))
    return false;
  if (info.halves == HalfPrecision::refuse)
    throw MissingKernelError(here, std::string(info.name) +
                                       ": no kernel for f16 and bf16, and f32 would give another "
                                       "result; if that is meant, cast the arguments to f32");
  if (info.decomposition != nullptr) return info.decomposition->rounds_once;
  return some_kernel_fits(info, arguments, without_half);
}

void compute(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Tensor* self,
             const Location& here) {
  in_terms_of(info, here, [&] {
    if (info.op->category == Category::view)
      run_view(info, arguments, results, here);
    else if (recorder() != nullptr)
      run_traced(info, arguments, results, here);
    else
      run_kernel(info, arguments, results, self, here);
  });
}

bool call_operator(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Tensor* self,
                   const Location& here);

/// The dtype of a composite's results, by PyTorch's promotion.
DType dtype_of_results(const OperatorInfo& info, const Boxed* arguments) {
  const uint32_t follows = info.decomposition != nullptr ? info.decomposition->follows : 0;
  const DType dtype = result_type(info, arguments, follows);
  return follows != 0 && is_floating(dtype) ? dtype : result_type(info, arguments, info.promoted);
}

/// Casts the arguments to wider dtypes, makes the call, and casts the results back. Their dtypes
/// are those for the original arguments, by the rule, or by promotion if there is no rule.
void call_widened(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                  DType (*wide_of)(DType), const Location& here) {
  Casts casts;
  Boxed wide[Schema::max_parameters];
  std::copy_n(arguments, info.argument_count, wide);
  recast(info, ~0u, wide, casts, wide_of, here);
  for (int i = 0; i < info.argument_count; ++i)
    if (Boxed& b = wide[i]; b.present && b.kind == Kind::dtype)
      b = Boxed::of(wide_of(static_cast<DType>(b.integer())));
  TensorType<Dim> types[Schema::max_results];
  std::vector<Check> checks;
  if (info.symbolic_rule != nullptr)
    infer(info, arguments, types, checks, here);
  else
    for (TensorType<Dim>& type : types) type.dtype = dtype_of_results(info, arguments);
  call_operator(info, wide, results, nullptr, here);
  for (int k = 0; k < info.schema.result_count; ++k)
    if (results[k].defined() && results[k].dtype() == wide_of(types[k].dtype))
      results[k] = cast(results[k], types[k].dtype, here);
}

/// Computes an operator in other operators. Their errors also name the whole one.
template <class Parts>
Results in_parts(const OperatorInfo& info, const Location& here, const Parts& parts) {
  try {
    Results results;
    in_terms_of(info, here, [&] {
      const PlaceScope scope(here);
      results = parts();
    });
    return results;
  } catch (EagerError& e) {
    e.in_call_of(info.name);
    throw;
  }
}

/// Runs the decomposition.
Results decompose(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  return in_parts(info, here, [&] { return info.decomposition->run(arguments); });
}

/// Computes the results by the decomposition, in the dtypes of the whole operator.
void call_parts(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                const Location& here) {
  Results parts = decompose(info, arguments, here);
  const DType dtype = info.decomposition->follows != 0 ? dtype_of_results(info, arguments)
                                                       : DType::boolean;  // no dtype to follow
  for (size_t k = 0; k < parts.size() && k < static_cast<size_t>(info.schema.result_count); ++k)
    results[k] = is_floating(dtype) ? cast(parts[k], dtype, here) : std::move(parts[k]);
}

/// The operators that compute with complex numbers have a form of their own, in real numbers.
void call_complex(const ComplexForm& form, const OperatorInfo& info, const Boxed* arguments,
                  Tensor* results, const Location& here) {
  Results parts = in_parts(info, here, [&] { return form.run(info, arguments); });
  std::move(parts.begin(), parts.end(), results);
}

/// Used by plain and in-place calls. Returns true if a kernel wrote directly onto `self`.
bool call_operator(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Tensor* self,
                   const Location& here) {
  check_arguments(info, arguments, here);
  const bool complex = has_complex(info, arguments);
  if (const ComplexForm* form = complex ? complex_form(info) : nullptr) {
    call_complex(*form, info, arguments, results, here);
    return false;
  }
  Casts casts;
  if (info.promotion != Promotion::none) promote(info, arguments, casts, here);
  if (widens(info, arguments, here)) {
    call_widened(info, arguments, results, without_half, here);
    return false;
  }
  if (computes_storage(info, arguments, here)) {
    call_widened(info, arguments, results, computed_dtype, here);
    return false;
  }
  if (decomposes(info, arguments)) {
    // if a composite has its own derivative, that is put on the tape instead of those of its parts
    const bool whole = info.derivative != nullptr && info.kernels.empty() && !complex &&
                       wants_gradient(info, arguments);
    {
      NoGrad guard(grad_enabled() && !whole);
      call_parts(info, arguments, results, here);
    }
    if (whole) record_on_tape(info, arguments, results, here);
    return false;
  }
  if (complex && info.op->category != Category::view && !some_kernel_fits(info, arguments))
    throw EagerError(here, describe_no_complex_form(info.name));
  const bool taped = wants_gradient(info, arguments);
  // the write may overwrite a value that a node on the tape has saved; as in PyTorch, this is
  // detected, not avoided
  compute(info, arguments, results, self, here);
  const bool onto_self = self != nullptr && results[0].defined() &&
                         results[0].impl()->storage == self->impl()->storage &&
                         info.op->category != Category::view;
  if (onto_self) self->impl()->storage->wrote(info.op->text, here);
  if (taped) record_on_tape(info, arguments, results, here);
  return onto_self;
}

}  // namespace

void dispatch(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Location& here) {
  call_operator(info, arguments, results, nullptr, here);
}

void dispatch_in_parts(const OperatorInfo& info, Boxed* arguments, Tensor* results,
                       const Location& here) {
  const bool halves =
      any_tensor(info, arguments, [](int, const Tensor& t) { return is_half(t.dtype()); });
  if (halves && info.decomposition->rounds_once)
    call_widened(info, arguments, results, without_half, here);
  else
    call_parts(info, arguments, results, here);
}

std::vector<Tensor> dispatch_list(const OperatorInfo& info, Boxed* arguments,
                                  const Location& here) {
  check_arguments(info, arguments, here);
  if (info.decomposition == nullptr)
    throw MissingKernelError(here,
                             std::string(info.name) + ": this operator has no decomposition yet");
  return decompose(info, arguments, here);
}

void dispatch_in_place(const OperatorInfo& info, Boxed* arguments, Tensor& self,
                       const Location& here) {
  if (info.schema.results[0].alias) {  // writes no elements: the handle becomes the view
    Tensor view;
    call_operator(info, arguments, &view, nullptr, here);
    self = std::move(view);
    return;
  }
  if (self.defined() && self.layout() != Layout::dense)
    throw EagerError(here, std::string(info.name) +
                               "_: elements in halves or in blocks cannot be written; write to "
                               "unpacked()");
  // this order matters: a view first follows the writes to its base
  const bool wants = self.requires_grad(), leaf = self.is_leaf(), taping = grad_enabled();
  if (taping && leaf && wants)
    throw EagerError(here, std::string(info.name) +
                               "_: a leaf that requires a gradient cannot be written in place; do "
                               "it inside no_grad()");
  const bool plain = recorder() == nullptr && !self.impl()->base.defined() && leaf == !wants;
  const bool taped = wants_gradient(info, arguments);
  // A derivative may need the value that is about to be overwritten. It gets a copy, which takes
  // the place of self on the tape.
  Tensor before;
  if (taped && (has_complex(info, arguments) ? complex_form(info) != nullptr
                : info.derivative != nullptr ? (info.derivative->saves & 1) != 0
                                             : info.decomposition != nullptr)) {
    before = call<ops::clone>(here, self);
    arguments[0] = Boxed::of(before);
  }
  // The call is put on the tape with an alias; then `self` takes over the history of the alias.
  const Tensor alias = taped && plain ? shallow(self) : Tensor();
  const Tensor* onto = alias.defined() ? &alias : plain || !taping ? &self : nullptr;
  Tensor results[Schema::max_results];
  if (call_operator(info, arguments, results, onto, here)) {
    if (taped && results[0].requires_grad()) take_history(self, results[0]);
    return;
  }
  write(self, results[0], info.op->text, here);
}

}  // namespace taper::eager
