#include "taper/exporter/eager/operator_info.h"

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/numbers.h"
#include "taper/kernels/shapes/all.h"

namespace taper::eager {
namespace {

constexpr OperatorFacts rows[] = {
#define TAPER_OP(name, category, text) facts_of<ops::name>(),
#include "taper/kernels/operators.def"
#undef TAPER_OP
};

class Table {
 public:
  Table() {
    for (const OperatorFacts& row : rows) add(describe(row));
    for (const NamedKernelSet& set : kernel_sets())
      for (const Kernel* kernel : set.kernels)
        if (cpu().has(kernel->needs)) add_kernel(*by_row_.at(kernel->op), *kernel);
    for (const Derivative* d : all_derivatives()) by_row_.at(d->op)->derivative = d;
    for (const auto& table : {common_decompositions(), rare_decompositions()})
      for (const Decomposition* d : table) by_row_.at(d->op)->decomposition = d;
    for (const NumberOperator& n : all_number_operators()) by_row_.at(n.op)->number = &n;
  }

  void add(OperatorInfo info, bool by_user = false) {
    if (by_user) added_.insert(added_.end(), info.kernels.begin(), info.kernels.end());
    if (info.numeric_rule == nullptr && !info.kernels.empty())
      info.numeric_rule = info.kernels.front()->shape;
    OperatorInfo& entry = entries_.emplace_back(std::move(info));
    by_row_[entry.op] = &entry;
    by_name_[std::string(entry.name)] = &entry;
    in_order_.push_back(&entry);
  }
  const OperatorInfo* find(const Operator& op) const {
    const auto at = by_row_.find(&op);
    return at == by_row_.end() ? nullptr : at->second;
  }
  const OperatorInfo* find(std::string_view name) const {
    const auto at = by_name_.find(std::string(name));
    return at == by_name_.end() ? nullptr : at->second;
  }
  const std::vector<const OperatorInfo*>& in_order() const { return in_order_; }
  const std::vector<const Kernel*>& added_kernels() const { return added_; }

 private:
  static void add_kernel(OperatorInfo& info, const Kernel& kernel) {
    info.kernels.push_back(&kernel);
    info.numeric_rule = kernel.shape;
  }

  std::deque<OperatorInfo> entries_;
  std::unordered_map<const Operator*, OperatorInfo*> by_row_;
  std::unordered_map<std::string, OperatorInfo*> by_name_;
  std::vector<const OperatorInfo*> in_order_;
  std::vector<const Kernel*> added_;
};

Table& table() {
  static Table instance;
  return instance;
}

}  // namespace

OperatorInfo describe(const OperatorFacts& facts) {
  OperatorInfo info;
  info.op = facts.op, info.schema = *facts.schema, info.name = facts.schema->name;
  info.promotion = facts.promotion, info.halves = facts.halves;
  info.symbolic_rule = facts.symbolic_rule, info.numeric_rule = facts.numeric_rule;
  for (int i = 0; i < info.schema.parameter_count; ++i)
    if (reaches_kernel(info.schema.parameters[i]))
      info.arguments[info.argument_count++] = info.schema.parameters[i];
  for (int i = 0; i < info.argument_count; ++i)
    if (takes_part_in_promotion(info.arguments[i])) info.promoted |= 1u << i;
  return info;
}

const OperatorInfo& info_of(const Operator& op) {
  if (const OperatorInfo* info = table().find(op)) return *info;
  throw ExportError(std::string(name_of(op)) +
                    ": this operator is not known; call eager::add_operator with it first");
}
const OperatorInfo* find_operator(std::string_view name) { return table().find(name); }
const std::vector<const OperatorInfo*>& all_operators() { return table().in_order(); }
void add_operator(OperatorInfo info) {
  if (table().find(*info.op) != nullptr || table().find(info.name) != nullptr)
    throw ExportError(std::string(info.name) +
                      ": there is an operator of this name already; give yours another, as in "
                      "\"mylib::scale\"");
  table().add(std::move(info), true);
}
std::vector<const Kernel*> added_kernels() { return table().added_kernels(); }

}  // namespace taper::eager
