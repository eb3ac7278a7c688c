#include "taper/exporter/dim/dim.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <ostream>
#include <set>
#include <unordered_set>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/dim/polynomial.h"

namespace taper {
namespace {

using internal::Atom;
using internal::Bounds;
using internal::compare;
using internal::Expression;
using internal::Polynomial;
using internal::Term;
using Form = Expression::Form;

Atom expression_of(Dim d) { return Expression::of(d); }

[[noreturn]] void refuse_zero() { throw ExportError("a size is divided by zero"); }

// ---- interning ----

size_t mix(size_t h, size_t v) { return (h ^ v) * 1099511628211ull; }

struct HashExpression {
  size_t operator()(const Expression* e) const {
    size_t h = mix(14695981039346656037ull, static_cast<size_t>(e->form));
    if (e->form == Form::symbol) return mix(h, e->symbol.id);
    h = mix(mix(h, e->a.hash()), e->b.hash());
    for (const Term& t : e->sum.terms) {
      h = mix(h, static_cast<size_t>(t.coefficient));
      for (Atom f : t.factors) h = mix(h, reinterpret_cast<size_t>(f));
    }
    return mix(h, static_cast<size_t>(e->sum.constant));
  }
};
struct EqualExpression {
  bool operator()(const Expression* x, const Expression* y) const {
    const auto equal = [](const Term& s, const Term& t) {
      return s.coefficient == t.coefficient && s.factors == t.factors;
    };
    return x->form == y->form && x->symbol.id == y->symbol.id && same(x->a, y->a) &&
           same(x->b, y->b) && x->sum.constant == y->sum.constant &&
           std::ranges::equal(x->sum.terms, y->sum.terms, equal);
  }
};

Dim intern(Expression e) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::unordered_set<const Expression*, HashExpression,
                                             EqualExpression>;  // lives as long as any Dim
  const std::lock_guard lock(mutex);
  if (auto it = all.find(&e); it != all.end()) return Expression::dim(*it);
  return Expression::dim(*all.insert(new Expression(std::move(e))).first);
}

Bounds bounds_of(Dim d) {
  return d.is_constant() ? Bounds{d.value(), d.value()} : expression_of(d)->bounds;
}
Bounds bounds_of(const Term& t) {
  Bounds b{t.coefficient, t.coefficient};
  for (Atom f : t.factors) b = b * f->bounds;
  return b;
}
Bounds bounds_of(const Polynomial& p) {
  Bounds b{p.constant, p.constant};
  for (const Term& t : p.terms) b = b + bounds_of(t);
  return b;
}

// ---- polynomials ----

Polynomial polynomial_of(Dim d) {
  if (d.is_constant()) return {{}, d.value()};
  Atom e = expression_of(d);
  return e->form == Form::sum ? e->sum : Polynomial{{{1, {e}}}, 0};
}

Dim dim_of(Polynomial p) {
  if (p.terms.empty()) return p.constant;
  if (p.constant == 0 && p.terms.size() == 1 && p.terms[0].coefficient == 1 &&
      p.terms[0].factors.size() == 1)
    return Expression::dim(p.terms[0].factors[0]);
  const Bounds bounds = bounds_of(p);
  return intern({Form::sum, {}, std::move(p), {}, {}, bounds});
}

Dim make(Form form, Dim a, Dim b, Bounds bounds) {
  if (bounds.is_point()) return bounds.lower;
  return intern({form, {}, {}, a, b, bounds});
}

std::string text_of(Dim d, bool as_factor);

std::string text_of(const Term& t) {
  std::string s;
  for (Atom f : t.factors)
    s += (s.empty() ? "" : "*") +
         text_of(Expression::dim(f), t.factors.size() > 1 || t.coefficient != 1);
  const int64_t c = t.coefficient;
  return c == 1 ? s : c == -1 ? "-" + s : s + "*" + std::to_string(c);
}

std::string text_of(Dim d, bool as_factor) {
  if (d.is_constant())
    return as_factor && d.value() < 0 ? "(" + std::to_string(d.value()) + ")"
                                      : std::to_string(d.value());
  Atom e = expression_of(d);
  std::string s;
  switch (e->form) {
    case Form::symbol:
      return e->symbol.name;
    case Form::min:
      return "min(" + text_of(e->a, false) + ", " + text_of(e->b, false) + ")";
    case Form::max:
      return "max(" + text_of(e->a, false) + ", " + text_of(e->b, false) + ")";
    case Form::floor_div:
      s = text_of(e->a, true) + "//" + text_of(e->b, true);
      break;
    case Form::modulo:
      s = text_of(e->a, true) + "%" + text_of(e->b, true);
      break;
    case Form::sum:
      for (const Term& t : e->sum.terms) {
        const bool minus = !s.empty() && t.coefficient < 0 && t.coefficient != Bounds::least;
        s += (s.empty() ? ""
              : minus   ? " - "
                        : " + ") +
             text_of(minus ? Term{-t.coefficient, t.factors} : t);
      }
      if (const int64_t c = e->sum.constant; c != 0)
        s += c > 0 || c == Bounds::least ? " + " + std::to_string(c) : " - " + std::to_string(-c);
  }
  return as_factor ? "(" + s + ")" : s;
}

Extent min(Extent a, Extent b) { return std::min(a.value, b.value); }
Extent max(Extent a, Extent b) { return std::max(a.value, b.value); }

/// What `Parts` of two operands stand for, of numbers or expressions.
template <class D>
D combined(DimKind kind, D a, D b) {
  switch (kind) {
    case DimKind::add:
      return a + b;
    case DimKind::multiply:
      return a * b;
    case DimKind::floor_div:
      return a / b;
    case DimKind::modulo:
      return a % b;
    case DimKind::min:
      return min(a, b);
    default:
      return max(a, b);
  }
}

void collect(Dim d, std::set<std::pair<uint64_t, const Symbol*>>& found) {
  const Dim::Parts parts = d.parts();
  if (parts.kind == DimKind::symbol) found.emplace(parts.symbol->id, parts.symbol);
  for (Dim operand : parts.operands) collect(operand, found);
}

}  // namespace

Dim Dim::symbol(std::string name, int64_t minimum, int64_t maximum, Location here) {
  if (name.empty()) throw EagerError(here, "Dim::symbol: the name must not be empty");
  if (minimum > maximum)
    throw EagerError(here, "Dim::symbol: " + name + " has no value, its range is [" +
                               std::to_string(minimum) + ", " + std::to_string(maximum) + "]");
  static std::mutex& mutex = *new std::mutex;
  static uint64_t count = 0;
  uint64_t id;
  {
    const std::lock_guard lock(mutex);
    id = ++count;
  }
  return intern(
      {Form::symbol, {std::move(name), minimum, maximum, id}, {}, {}, {}, {minimum, maximum}});
}

const Symbol* Dim::as_symbol() const {
  return expression_ != nullptr && expression_->form == Form::symbol ? &expression_->symbol
                                                                     : nullptr;
}
int64_t Dim::lower() const { return bounds_of(*this).lower; }
int64_t Dim::upper() const { return bounds_of(*this).upper; }

std::vector<const Symbol*> Dim::symbols() const {
  std::set<std::pair<uint64_t, const Symbol*>> found;
  collect(*this, found);
  std::vector<const Symbol*> result;
  for (const auto& [id, symbol] : found) result.push_back(symbol);
  return result;
}

Dim::Parts Dim::parts() const {
  if (is_constant()) return {DimKind::constant, value_, nullptr, {}};
  const Expression& e = *expression_;
  switch (e.form) {
    case Form::symbol:
      return {DimKind::symbol, 0, &e.symbol, {}};
    case Form::floor_div:
      return {DimKind::floor_div, 0, nullptr, {e.a, e.b}};
    case Form::modulo:
      return {DimKind::modulo, 0, nullptr, {e.a, e.b}};
    case Form::min:
      return {DimKind::min, 0, nullptr, {e.a, e.b}};
    case Form::max:
      return {DimKind::max, 0, nullptr, {e.a, e.b}};
    case Form::sum:
      break;
  }
  Parts parts{DimKind::add, 0, nullptr, {}};
  if (e.sum.terms.size() + (e.sum.constant != 0) > 1) {
    for (const Term& t : e.sum.terms) parts.operands.push_back(dim_of({{t}, 0}));
    if (e.sum.constant != 0) parts.operands.push_back(e.sum.constant);
    return parts;
  }
  parts.kind = DimKind::multiply;
  const Term& t = e.sum.terms[0];
  for (Atom f : t.factors) parts.operands.push_back(Dim(f));
  if (t.coefficient != 1) parts.operands.push_back(t.coefficient);
  return parts;
}

int64_t Dim::evaluate(const Bindings& bindings) const {
  const Parts p = parts();
  if (p.kind == DimKind::constant) return p.value;
  if (p.kind == DimKind::symbol) {
    auto it = bindings.find(p.symbol);
    if (it == bindings.end()) throw ExportError("the symbol " + p.symbol->name + " has no value");
    return it->second;
  }
  Extent r = p.operands[0].evaluate(bindings);
  for (size_t i = 1; i < p.operands.size(); ++i) {
    r = combined(p.kind, r, Extent(p.operands[i].evaluate(bindings)));
    if (r.invalid())
      throw ExportError("the size " + to_string() + " does not fit in 64 bits, or divides by zero");
  }
  return r.value;
}

Dim Dim::substitute(const Substitution& replacements) const {
  const Parts p = parts();
  if (p.kind == DimKind::constant) return *this;
  if (p.kind == DimKind::symbol) {
    auto it = replacements.find(p.symbol);
    return it == replacements.end() ? *this : it->second;
  }
  Dim r = p.operands[0].substitute(replacements);
  for (size_t i = 1; i < p.operands.size(); ++i)
    r = combined(p.kind, r, p.operands[i].substitute(replacements));
  return r;
}

std::string Dim::to_string() const { return text_of(*this, false); }

int64_t Dim::refuse_value() const {
  std::string names;
  for (const Symbol* s : symbols()) names += (names.empty() ? "" : ", ") + s->name;
  throw SymbolicValueError("the size " + to_string() +
                           " is symbolic and cannot become a number; keep it as a Dim, or fix " +
                           names +
                           ": with a number in the method's inputs, or for a .pt2 with --dim "
                           "NAME=NUMBER");
}

Dim Dim::add(Dim a, Dim b) { return dim_of(add_scaled(polynomial_of(a), polynomial_of(b), 1)); }
Dim Dim::subtract(Dim a, Dim b) {
  return dim_of(add_scaled(polynomial_of(a), polynomial_of(b), -1));
}
Dim Dim::multiply(Dim a, Dim b) { return dim_of(times(polynomial_of(a), polynomial_of(b))); }

Dim Dim::floor_div(Dim a, Dim b) {
  if (b.is_constant() && b.value() == 0) refuse_zero();
  if (b.is_constant() && b.value() < 0) return floor_div(-a, -b);
  const Polynomial p = polynomial_of(a), d = polynomial_of(b);
  if (Polynomial q; divide_exactly(p, d, q)) return dim_of(std::move(q));
  if (!b.is_constant()) return make(Form::floor_div, a, b, bounds_of(a) / bounds_of(b));

  // floor((d * whole + rest) / d) = whole + floor(rest / d), and a common factor of rest and d
  // cancels
  Polynomial whole, rest;
  split(p, b.value(), whole, rest);
  Dim dividend = dim_of(rest), result = dim_of(whole);
  if (dividend.is_constant()) return result + dividend.value() / b.value();
  if (const int64_t g = std::gcd(content(rest), b.value()); g != 1)
    return result + floor_div(floor_div(dividend, g), b.value() / g);
  // floor(floor(x / m) / n) = floor(x / (m * n)) for positive numbers m and n
  if (Atom e = expression_of(dividend);
      e->form == Form::floor_div && e->b.is_constant() && e->b.value() > 0)
    return result + floor_div(e->a, e->b * b);
  return result + make(Form::floor_div, dividend, b, bounds_of(dividend) / bounds_of(b));
}

Dim Dim::modulo(Dim a, Dim b) {
  if (b.is_constant() && b.value() == 0) refuse_zero();
  if (Polynomial q; divide_exactly(polynomial_of(a), polynomial_of(b), q)) return 0;
  if (b.is_constant() && b.value() > 0) {
    Polynomial whole, rest;
    split(polynomial_of(a), b.value(), whole, rest);
    a = dim_of(std::move(rest));
  }
  if (bounds_of(a).lower >= 0 && proves_less(a, b)) return a;
  return make(Form::modulo, a, b, bounds_of(a) % bounds_of(b));
}

Dim min(Dim a, Dim b) {
  if (proves_at_least(b, a)) return a;
  if (proves_at_least(a, b)) return b;
  if (compare(a, b) > 0) std::swap(a, b);
  return make(Form::min, a, b, internal::min(bounds_of(a), bounds_of(b)));
}

Dim max(Dim a, Dim b) {
  if (proves_at_least(a, b)) return a;
  if (proves_at_least(b, a)) return b;
  if (compare(a, b) > 0) std::swap(a, b);
  return make(Form::max, a, b, internal::max(bounds_of(a), bounds_of(b)));
}

bool Dim::decide_equal(Dim a, Dim b) {
  if (proves_equal(a, b)) return true;
  if (proves_different(a, b)) return false;
  throw SymbolicValueError(
      "whether " + a.to_string() + " equals " + b.to_string() +
      " depends on symbolic sizes; write code that works in both cases, or fix "
      "the size in the method's inputs");
}
bool Dim::decide_less(Dim a, Dim b) {
  if (proves_less(a, b)) return true;
  if (proves_at_least(a, b)) return false;
  throw SymbolicValueError(
      "whether " + a.to_string() + " is less than " + b.to_string() +
      " depends on symbolic sizes; write code that works in both cases, or fix "
      "the size in the method's inputs");
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << dim.to_string(); }

namespace {
/// The range of b - a: the difference first, so that what both have in common cancels.
Bounds difference(Dim a, Dim b) {
  const Polynomial p = polynomial_of(a), q = polynomial_of(b);
  const auto fits = [](const Polynomial& x) {
    return std::ranges::all_of(
               x.terms,
               [](const Term& t) { return std::abs(t.coefficient / 2) < Bounds::most / 4; }) &&
           std::abs(x.constant / 2) < Bounds::most / 4;
  };
  if (!fits(p) || !fits(q)) return bounds_of(b) + bounds_of(a) * Bounds{-1, -1};
  return bounds_of(add_scaled(q, p, -1));
}
}  // namespace

bool proves_equal(Dim a, Dim b) {
  return same(a, b) || (a.lower() == a.upper() && b.lower() == b.upper() && a.lower() == b.lower());
}
bool proves_different(Dim a, Dim b) { return proves_less(a, b) || proves_less(b, a); }
bool proves_less(Dim a, Dim b) { return a.upper() < b.lower() || difference(a, b).lower > 0; }
bool proves_at_least(Dim a, Dim b) {
  return same(a, b) || a.lower() >= b.upper() || difference(b, a).lower >= 0;
}

}  // namespace taper
