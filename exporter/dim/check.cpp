#include "taper/exporter/dim/check.h"

namespace taper {
namespace {

constexpr int64_t most_tried = 4096;

bool holds(const Check& c, const Dim::Bindings& values) {
  try {
    const int64_t left = c.left.evaluate(values), right = c.right.evaluate(values);
    switch (c.comparison) {
      case Comparison::equal:
        return left == right;
      case Comparison::not_equal:
        return left != right;
      case Comparison::less:
        return left < right;
      case Comparison::less_equal:
        return left <= right;
    }
  } catch (const ExportError&) {  // overflows, or divides by zero
  }
  return false;
}

/// The root of an equation that is linear in `s`, of which left - right is `d`; nothing for others.
std::optional<Collapse> root_of(Dim d, Dim s) {
  const Symbol* const symbol = s.as_symbol();
  try {
    const int64_t at0 = d.evaluate({{symbol, 0}}), factor = d.evaluate({{symbol, 1}}) - at0;
    // expressions are in normal form: equal ones are one object
    if (factor == 0 || !same(d, s * factor + at0)) return std::nullopt;
    const int64_t root = -at0 / factor;
    if (root * factor + at0 != 0 || root < symbol->minimum || root > symbol->maximum)
      return Collapse{symbol, std::nullopt};
    return Collapse{symbol, root};
  } catch (const ExportError&) {  // divides by s
    return std::nullopt;
  }
}

/// `d` itself, or the part of it that is the symbol.
Dim find(Dim d, const Symbol* symbol) {
  if (d.as_symbol() == symbol) return d;
  for (const Dim operand : d.parts().operands)
    if (const Dim found = find(operand, symbol); found.as_symbol() == symbol) return found;
  return 0;
}

}  // namespace

bool proves(const Check& c) {
  switch (c.comparison) {
    case Comparison::equal:
      return proves_equal(c.left, c.right);
    case Comparison::not_equal:
      return proves_different(c.left, c.right);
    case Comparison::less:
      return proves_less(c.left, c.right);
    case Comparison::less_equal:
      return proves_at_least(c.right, c.left);
  }
  return false;
}

bool refutes(const Check& c) {
  switch (c.comparison) {
    case Comparison::equal:
      return proves_different(c.left, c.right);
    case Comparison::not_equal:
      return proves_equal(c.left, c.right);
    case Comparison::less:
      return proves_at_least(c.left, c.right);
    case Comparison::less_equal:
      return proves_less(c.right, c.left);
  }
  return false;
}

std::optional<Collapse> collapse_of(const Check& c) {
  const Dim d = c.left - c.right;
  const std::vector<const Symbol*> symbols = d.symbols();
  if (symbols.size() != 1 || symbols[0]->minimum == symbols[0]->maximum) return std::nullopt;
  const Symbol* const symbol = symbols[0];
  if (c.comparison == Comparison::equal)
    if (const std::optional<Collapse> root = root_of(d, find(d, symbol))) return root;
  int64_t last = 0;  // that is tried
  if (__builtin_add_overflow(symbol->minimum, most_tried, &last) || symbol->maximum > last)
    return std::nullopt;
  Collapse left{symbol, std::nullopt};
  for (int64_t value = symbol->minimum; value <= symbol->maximum; ++value) {
    if (!holds(c, {{symbol, value}})) continue;
    if (left.value) return std::nullopt;
    left.value = value;
  }
  return left;
}

}  // namespace taper
