// Patterns of calls: a pass describes in one expression what it looks for.
//
//   const Variable conv, w;
//   const Pattern norm = call<ops::_native_batch_norm_legit_no_training>(
//       arg<"input">(as(conv, call<ops::convolution>(arg<"weight">(constant(w)),
//                                                    arg<"transposed">(number(false))))));
//   if (const auto found = find(norm, node)) fold((*found)[conv]->node, (*found)[w]);
//
// An argument that the pattern does not name may be anything. A variable that occurs several times
// stands for the same value each time. So a square is commutative<ops::mul_Tensor, "self",
// "other">(any(x), any(x)).
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taper/exporter/ir/call.h"

namespace taper::passes::match {

/// A name for a value in a pattern. Its address is its identity.
class Variable {
 public:
  Variable() = default;
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

/// The values that variables stand for.
class Match {
 public:
  /// nullptr: an absent argument, or a variable of an alternative that did not match.
  ir::Value* operator[](const Variable& variable) const;
  /// Returns false if the variable stands for another value already.
  bool bind(const Variable& variable, ir::Value* value);

 private:
  std::unordered_map<const Variable*, ir::Value*> values_;
};

/// Whether an argument of a call fits. Binds variables.
using Pattern = std::function<bool(const ir::Argument&, Match&)>;

Pattern any(const Variable& variable);       ///< a tensor
Pattern constant(const Variable& variable);  ///< a constant of the graph
Pattern number(double number);               ///< this number or boolean
Pattern absent_or(Pattern pattern);
Pattern either(Pattern first, Pattern second);
Pattern as(const Variable& variable, Pattern pattern);  ///< names what `pattern` matches

/// Matches the first result of a node whose call fits. The pattern lists only the arguments that
/// matter, by position.
Pattern result_of(const Operator& op, std::vector<std::pair<size_t, Pattern>> arguments);

template <eager::Name name>
struct NamedPattern {
  Pattern pattern;
};
template <eager::Name name>
NamedPattern<name> arg(Pattern pattern) {
  return {std::move(pattern)};
}
/// Matches the first result of a call of `op`. Each pattern is for the argument of its name.
template <const Operator& op, eager::Name... names>
Pattern call(NamedPattern<names>... arguments) {
  return result_of(op, {{ir::Call<op>::template position<names>, std::move(arguments.pattern)}...});
}
/// The same, with two arguments in either order.
template <const Operator& op, eager::Name left, eager::Name right>
Pattern commutative(const Pattern& a, const Pattern& b) {
  return either(call<op>(arg<left>(a), arg<right>(b)), call<op>(arg<left>(b), arg<right>(a)));
}

/// The values of the variables, if the first result of `node` fits the pattern.
std::optional<Match> find(const Pattern& pattern, const ir::Node& node);

}  // namespace taper::passes::match
