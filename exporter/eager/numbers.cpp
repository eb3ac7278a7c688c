#include "taper/exporter/eager/numbers.h"

#include <limits>
#include <string>

#include "taper/exporter/eager/arguments.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

// ---- numbers

Boxed extent(const Boxed* boxed) {
  const Arguments<ops::sym_size_int> a(boxed);
  return Boxed::of(a.tensor<"self">().size(a.integer<"dim">()));
}

Boxed stride(const Boxed* boxed) {
  const Arguments<ops::sym_stride_int> a(boxed);
  const Tensor self = a.tensor<"self">();
  const int64_t rank = self.rank(), dim = a.integer<"dim">();
  if (dim < -rank || dim >= rank)
    throw EagerError("sym_stride.int: dim " + std::to_string(dim) + " is outside [" +
                     std::to_string(-rank) + ", " + std::to_string(rank) + ") for " +
                     to_string(self.sizes()));
  return Boxed::of(self.strides()[static_cast<size_t>(dim < 0 ? dim + rank : dim)]);
}

Boxed element_count(const Boxed* boxed) { return Boxed::of(boxed[0].tensor().numel()); }
Boxed offset(const Boxed* boxed) { return Boxed::of(boxed[0].tensor().storage_offset()); }
Boxed dense(const Boxed* boxed) { return Boxed::of(boxed[0].tensor().is_dense()); }
Boxed element(const Boxed* boxed) { return Boxed::of(boxed[0].tensor().scalar()); }

// ---- checks

/// Throws if a fact that the operator requires cannot hold. If its symbols leave this open, the
/// check goes into the graph.
void settle(const OperatorInfo& info, const Facts<Dim>& facts, const std::string& message) {
  if (facts.failed) throw EagerError(std::string(info.name) + ": " + message);
  for (Check check : facts.checks) {
    check.message = message;
    if (Recorder* r = recorder()) r->assume(check);
  }
}

template <const Operator& op>
Boxed in_range(const Boxed* boxed) {
  const Arguments<op> a(boxed);
  const Dim size = a.template boxed<"size">().dim;
  const int64_t lowest =
      &op == &ops::sym_constrain_range_for_size ? 0 : std::numeric_limits<int64_t>::min();
  const int64_t low = a.template has<"min">() ? a.template integer<"min">() : lowest,
                high = a.template has<"max">() ? a.template integer<"max">()
                                               : std::numeric_limits<int64_t>::max();
  if (a.template boxed<"size">().kind != Kind::integer)
    throw EagerError(std::string(name_of(op)) + ": size must be an integer");
  if (low > high)
    throw EagerError(std::string(name_of(op)) + ": max " + std::to_string(high) +
                     " is less than min " + std::to_string(low));
  Facts<Dim> facts;
  const bool holds =
      facts.at_least(size, low, TAPER_TEXT("")) && facts.at_least(high, size, TAPER_TEXT(""));
  facts.failed = !holds;
  settle(info_of(op), facts,
         size.to_string() + " must lie in [" + std::to_string(low) + ", " + std::to_string(high) +
             "]");
  return Boxed::absent(Kind::none);
}

Boxed assert_scalar(const Boxed* boxed) {
  const Arguments<ops::_assert_scalar> a(boxed);
  const Boxed& self = a.boxed<"self">();
  const std::string message(a.text<"assert_msg">());
  if (self.kind == Kind::real) {
    if (self.real == 0) throw EagerError("_assert_scalar: " + message);
    return Boxed::absent(Kind::none);
  }
  if (proves_equal(self.dim, 0)) throw EagerError("_assert_scalar: " + message);
  if (!proves_different(self.dim, 0))
    if (Recorder* r = recorder()) r->assume({Comparison::not_equal, self.dim, 0, message});
  return Boxed::absent(Kind::none);
}

void require_element(const Tensor& self, std::string_view message) {
  if (self.scalar().to<double>() == 0) throw EagerError("_assert_async: " + std::string(message));
}
Boxed assert_element(const Boxed* boxed) {
  const Arguments<ops::_assert_async> a(boxed);
  require_element(a.tensor<"self">(), nameless_assertion);
  return Boxed::absent(Kind::none);
}
Boxed assert_element_with_message(const Boxed* boxed) {
  const Arguments<ops::_assert_async_msg> a(boxed);
  require_element(a.tensor<"self">(), a.text<"assert_msg">());
  return Boxed::absent(Kind::none);
}

Boxed assert_no_errors(const Boxed* boxed) {
  const Arguments<ops::_linalg_check_errors> a(boxed);
  if (any(a.tensor<"info">()).scalar().to<double>() != 0)
    throw EagerError(message_of_info(a.text<"api_name">()));
  return Boxed::absent(Kind::none);
}

Boxed assert_metadata(const Boxed* boxed) {
  const OperatorInfo& info = info_of(ops::_assert_tensor_metadata);
  const Arguments<ops::_assert_tensor_metadata> a(boxed);
  const Tensor t = a.tensor<"a">();
  const auto require_equal = [&](const char* what, const Dims& got, const Dims& wanted) {
    Facts<Dim> facts;
    facts.failed = got.size() != wanted.size();
    for (size_t k = 0; k < got.size() && !facts.failed; ++k)
      facts.failed = !facts.equal(got[k], wanted[k], TAPER_TEXT(""));
    settle(
        info, facts,
        std::string("the ") + what + " must be " + to_string(wanted) + ", got " + to_string(got));
  };
  if (a.has<"size">()) require_equal("sizes", t.sizes(), a.dims<"size">());
  if (a.has<"stride">()) require_equal("strides", t.strides(), a.dims<"stride">());
  if (a.has<"dtype">() && t.dtype() != a.dtype<"dtype">())
    throw EagerError(std::string("_assert_tensor_metadata: the dtype must be ") +
                     taper::name_of(a.dtype<"dtype">()) + ", got " + taper::name_of(t.dtype()));
  return Boxed::absent(Kind::none);
}

constexpr NumberOperator list[] = {
    {&ops::sym_size_int, &extent},
    {&ops::sym_stride_int, &stride},
    {&ops::sym_numel, &element_count},
    {&ops::sym_storage_offset, &offset},
    {&ops::sym_is_contiguous, &dense},
    {&ops::_local_scalar_dense, &element},
    {&ops::item, &element},
    {&ops::_assert_scalar, &assert_scalar},
    {&ops::_assert_async, &assert_element},
    {&ops::_assert_async_msg, &assert_element_with_message},
    {&ops::_linalg_check_errors, &assert_no_errors},
    {&ops::_assert_tensor_metadata, &assert_metadata},
    {&ops::sym_constrain_range, &in_range<ops::sym_constrain_range>},
    {&ops::sym_constrain_range_for_size, &in_range<ops::sym_constrain_range_for_size>},
};

}  // namespace

std::span<const NumberOperator> all_number_operators() { return list; }

std::string message_of_info(std::string_view function) {
  return std::string(function) +
         ": a matrix of the input is singular or, if that is asked for, not positive-definite";
}

Boxed dispatch_number(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  if (info.number == nullptr)
    throw EagerError(here, std::string(info.name) + ": this operator gives tensors, not a number");
  for (int i = 0; i < info.argument_count; ++i)
    if (arguments[i].kind == Kind::tensor && !info.arguments[i].optional && !arguments[i].present)
      throw EagerError(here, std::string(info.name) + ": the tensor " +
                                 std::string(info.arguments[i].name) + " is undefined");
  try {
    const PlaceScope scope(here);
    return info.number->run(arguments);
  } catch (EagerError& e) {  // as for tensors, the message also names the operator
    e.in_call_of(info.name);
    throw;
  }
}

}  // namespace taper::eager
