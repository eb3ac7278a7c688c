#pragma once
#include <string_view>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/kernels/half_precision.h"
#include "taper/kernels/kernel.h"

namespace taper::eager {

struct Derivative;
struct Decomposition;
struct NumberOperator;

/// All that the host knows about an operator. It comes from the constant tables: operators.def, the
/// rules, the records of the linked kernel libraries, derivatives, decompositions.
struct OperatorInfo {
  const Operator* op = nullptr;
  Schema schema;
  std::string_view name;  ///< "add.Tensor"
  Promotion promotion = Promotion::none;
  HalfPrecision halves = HalfPrecision::widen;
  uint32_t promoted = 0;  ///< bit i: argument i, a tensor or a Scalar, takes part in promotion
  /// The shape rule over symbolic and over numeric extents; nullptr: the operator has none. For an
  /// operator with kernels, the numeric rule comes from its kernels.
  bool (*symbolic_rule)(Facts<Dim>&, const Boxed*, TensorType<Dim>*) = nullptr;
  bool (*numeric_rule)(Facts<Extent>&, const Slot*, TensorType<Extent>*) = nullptr;
  std::vector<const Kernel*> kernels;  ///< in the order of preference
  const Derivative* derivative = nullptr;
  const Decomposition* decomposition = nullptr;
  const NumberOperator* number = nullptr;
  int argument_count = 0;                       ///< those that reach kernels
  Parameter arguments[Schema::max_parameters];  ///< those that reach kernels, in the row's order
};

/// The entry of a row of the table, or of an operator that the user added. Throws ExportError for
/// an unknown operator.
const OperatorInfo& info_of(const Operator& op);
/// By PyTorch's name, "add.Tensor"; nullptr if there is no such row.
const OperatorInfo* find_operator(std::string_view name);
/// Every row of the table, in its order.
const std::vector<const OperatorInfo*>& all_operators();

/// Adds a user's operator: its rule (from its `Rule<op>`) and its kernels. Call it once, before the
/// first use:
///
///   OperatorInfo info = describe<mylib::scale>();
///   info.kernels = {&mylib::scale_f32};
///   add_operator(std::move(info));
///
/// Throws ExportError if there is an operator of that name or row already.
void add_operator(OperatorInfo info);
/// The kernels of all operators that users added.
std::vector<const Kernel*> added_kernels();

/// Calls `f(i, tensor)` for each tensor among the arguments and in their lists, until one call
/// returns true. Returns whether one did.
template <class F>
bool any_tensor(const OperatorInfo& info, const Boxed* arguments, F&& f) {
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (b.kind != Kind::tensor || !b.present) continue;
    for (uint32_t k = 0; k < b.size; ++k)
      if (b.tensors[k].defined() && f(i, b.tensors[k])) return true;
  }
  return false;
}

/// Arguments that select, weigh or fill never decide a result's type.
constexpr bool takes_part_in_promotion(const Parameter& p) {
  for (const std::string_view name :
       {"condition", "mask", "index", "indices", "alpha", "beta", "value"})
    if (p.name == name) return false;
  return p.kind == Kind::tensor || p.kind == Kind::scalar;
}

/// The facts about an operator that the compiler computes.
struct OperatorFacts {
  const Operator* op;
  const Schema* schema;
  Promotion promotion = Promotion::none;
  HalfPrecision halves = HalfPrecision::widen;
  bool (*symbolic_rule)(Facts<Dim>&, const Boxed*, TensorType<Dim>*) = nullptr;
  bool (*numeric_rule)(Facts<Extent>&, const Slot*, TensorType<Extent>*) = nullptr;
};
/// What the rule of `op` says of its arguments' dtypes, if anything.
template <const Operator& op>
consteval Promotion promotion_of() {
  if constexpr (requires { Rule<op>::promotion; })
    return Rule<op>::promotion;
  else
    return Promotion::none;
}
/// The schema and, where its header is included, the rule of `op`.
template <const Operator& op>
constexpr OperatorFacts facts_of() {
  OperatorFacts facts{&op, &schema<op>};
  if constexpr (has_rule<op>) {
    facts.promotion = promotion_of<op>(), facts.halves = half_precision<op>;
    facts.symbolic_rule = &run_rule<op, Dim>;
    // kernels bring theirs along, and to compile each rule again takes its time
    if constexpr (op.category != Category::kernel) facts.numeric_rule = &run_rule<op, Extent>;
  }
  return facts;
}

OperatorInfo describe(const OperatorFacts& facts);
template <const Operator& op>
OperatorInfo describe() {
  return describe(facts_of<op>());
}

}  // namespace taper::eager
