#include "taper/exporter/emit/known_bounds.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "taper/exporter/dim/bounds.h"

namespace taper::emit {
namespace {

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

/// number * factors. No factor is a constant.
struct Term {
  int64_t number = 1;
  std::vector<Dim> factors;
};

Term term_of(Dim d) {
  const Dim::Parts parts = d.parts();
  if (parts.kind == DimKind::constant) return {parts.value, {}};
  if (parts.kind != DimKind::multiply) return {1, {d}};
  Term term;
  for (const Dim operand : parts.operands) {
    if (operand.is_constant())
      term.number = operand.value();
    else
      term.factors.push_back(operand);
  }
  return term;
}

std::vector<Dim> summands_of(Dim d) {
  const Dim::Parts parts = d.parts();
  return parts.kind == DimKind::add ? parts.operands : std::vector<Dim>{d};
}

/// `all` without the factors in `part`; nullopt if one of them is not in `all`.
std::optional<std::vector<Dim>> without(std::vector<Dim> all, const std::vector<Dim>& part) {
  for (const Dim factor : part) {
    const auto at = std::ranges::find_if(all, [&](Dim d) { return same(d, factor); });
    if (at == all.end()) return std::nullopt;
    all.erase(at);
  }
  return all;
}

}  // namespace

KnownBounds::KnownBounds(std::span<const Check> checks) {
  for (const Check& c : checks) {
    try {
      if (c.comparison == Comparison::less) learn(c.left + 1, c.right);
      if (c.comparison == Comparison::less_equal) learn(c.left, c.right);
      if (c.comparison == Comparison::equal) learn(c.left, c.right), learn(c.right, c.left);
    } catch (const ExportError&) {  // the numbers leave int64, so nothing is learnt
    }
  }
}

// From number * product + rest <= 0 and rest >= least follows product <= -least / number.
void KnownBounds::learn(Dim smaller, Dim larger) {
  const Dim difference = smaller - larger;
  for (const Dim summand : summands_of(difference)) {
    const Term term = term_of(summand);
    if (term.factors.empty() || term.number <= 0) continue;
    const int64_t least = (difference - summand).lower();
    if (internal::is_infinite(least)) continue;
    const int64_t upper = internal::quotient(-least, term.number);
    if (upper < internal::quotient(summand.upper(), term.number))
      products_.push_back({term.factors, std::max<int64_t>(upper, 0)});
  }
}

int64_t KnownBounds::upper_of_factor(Dim d) const {
  const Dim::Parts parts = d.parts();
  if (parts.kind == DimKind::min)
    return std::min(upper(parts.operands[0]), upper(parts.operands[1]));
  if (parts.kind == DimKind::max)
    return std::max(upper(parts.operands[0]), upper(parts.operands[1]));
  return d.upper();
}

int64_t KnownBounds::upper_of_product(const std::vector<Dim>& factors) const {
  int64_t least = 1;
  for (const Dim d : factors) {
    if (d.lower() < 0) return no_limit;
    least = internal::product(least, upper_of_factor(d));
  }
  for (const Product& known : products_)
    if (const auto rest = without(factors, known.factors)) {
      int64_t bound = known.upper;
      for (const Dim d : *rest) bound = internal::product(bound, upper_of_factor(d));
      least = std::min(least, bound);
    }
  return least;
}

int64_t KnownBounds::upper_of_symbol(Dim symbol) const {
  int64_t least = symbol.upper();
  for (const Product& known : products_)
    if (const auto others = without(known.factors, {symbol})) {
      int64_t product = 1;
      for (const Dim d : *others) product = internal::product(product, d.lower());
      if (product > 0) least = std::min(least, known.upper / product);
    }
  return least;
}

int64_t KnownBounds::upper(Dim size) const {
  if (products_.empty() || size.is_constant()) return size.upper();
  internal::Bounds sum{0, 0};
  for (const Dim summand : summands_of(size)) {
    const Term term = term_of(summand);
    const int64_t most = term.factors.empty() || term.number < 0
                             ? summand.upper()
                             : internal::product(term.number, upper_of_product(term.factors));
    sum = sum + internal::Bounds{0, most};
  }
  return std::min(size.upper(), sum.upper);
}

}  // namespace taper::emit
