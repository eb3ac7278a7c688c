#include "taper/exporter/dim/polynomial.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace taper::internal {
namespace {

[[noreturn]] void refuse_overflow() {
  throw ExportError("a size expression does not fit in 64 bits");
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) refuse_overflow();
  return r;
}
int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) refuse_overflow();
  return r;
}

// ---- order ----

int compare(const std::vector<Atom>& a, const std::vector<Atom>& b);

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare(const Polynomial& a, const Polynomial& b) {
  if (int c = three_way(a.terms.size(), b.terms.size())) return c;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (int c = compare(a.terms[i].factors, b.terms[i].factors)) return c;
    if (int c = three_way(a.terms[i].coefficient, b.terms[i].coefficient)) return c;
  }
  return three_way(a.constant, b.constant);
}

int compare(Atom a, Atom b) {
  if (a == b) return 0;
  if (int c = three_way(a->form, b->form)) return c;
  if (a->form == Expression::Form::symbol) {
    if (int c = a->symbol.name.compare(b->symbol.name)) return c;
    return three_way(a->symbol.id, b->symbol.id);
  }
  if (a->form == Expression::Form::sum) return compare(a->sum, b->sum);
  if (int c = internal::compare(a->a, b->a)) return c;
  return internal::compare(a->b, b->b);
}

int compare(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  if (int c = three_way(b.size(), a.size())) return c;  // higher degrees first
  for (size_t i = 0; i < a.size(); ++i)
    if (int c = compare(a[i], b[i])) return c;
  return 0;
}

// ---- arithmetic ----

Polynomial times(const Polynomial& p, const Term& t) {
  Polynomial r;
  const auto less = [](Atom a, Atom b) { return compare(a, b) < 0; };
  for (const Term& s : p.terms) {
    Term u{checked_multiply(s.coefficient, t.coefficient), {}};
    std::ranges::merge(s.factors, t.factors, std::back_inserter(u.factors), less);
    r.terms.push_back(std::move(u));  // multiplying by one term keeps the order
  }
  if (p.constant != 0) {
    if (t.factors.empty())
      r.constant = checked_multiply(p.constant, t.coefficient);
    else
      r = add_scaled(r, {{{checked_multiply(p.constant, t.coefficient), t.factors}}, 0}, 1);
  }
  return r;
}

/// The leading term; a number counts as a term without factors.
Term leading(const Polynomial& p) {
  return p.terms.empty() ? Term{p.constant, {}} : p.terms.front();
}
bool is_zero(const Polynomial& p) { return p.terms.empty() && p.constant == 0; }

}  // namespace

int compare(Dim a, Dim b) {
  if (same(a, b)) return 0;
  if (a.is_constant() && b.is_constant()) return three_way(a.value(), b.value());
  if (a.is_constant() != b.is_constant()) return a.is_constant() ? -1 : 1;
  return compare(Expression::of(a), Expression::of(b));
}

Polynomial add_scaled(const Polynomial& a, const Polynomial& b, int64_t scale) {
  Polynomial r;
  r.constant = checked_add(a.constant, checked_multiply(scale, b.constant));
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const int c = i == a.terms.size()   ? 1
                  : j == b.terms.size() ? -1
                                        : compare(a.terms[i].factors, b.terms[j].factors);
    Term t = c <= 0 ? a.terms[i++] : Term{0, b.terms[j].factors};
    if (c >= 0)
      t.coefficient = checked_add(t.coefficient, checked_multiply(scale, b.terms[j++].coefficient));
    if (t.coefficient != 0) r.terms.push_back(std::move(t));
  }
  return r;
}

Polynomial times(const Polynomial& p, const Polynomial& q) {
  Polynomial r = q.constant != 0 ? times(p, Term{q.constant, {}}) : Polynomial{};
  for (const Term& t : q.terms) r = add_scaled(r, times(p, t), 1);
  return r;
}

// Long division on leading terms.
bool divide_exactly(Polynomial p, const Polynomial& divisor, Polynomial& result) {
  const Term d = leading(divisor);
  const auto less = [](Atom a, Atom b) { return compare(a, b) < 0; };
  result = {};
  while (!is_zero(p)) {
    const Term t = leading(p);
    if (t.coefficient % d.coefficient != 0 || !std::ranges::includes(t.factors, d.factors, less))
      return false;
    Term q{t.coefficient / d.coefficient, {}};
    std::ranges::set_difference(t.factors, d.factors, std::back_inserter(q.factors), less);
    p = add_scaled(p, times(divisor, q), -1);
    result = add_scaled(result,
                        q.factors.empty() ? Polynomial{{}, q.coefficient} : Polynomial{{q}, 0}, 1);
  }
  return true;
}

int64_t content(const Polynomial& p) {
  int64_t g = p.constant;
  for (const Term& t : p.terms) g = std::gcd(g, t.coefficient);
  return g;
}

void split(const Polynomial& p, int64_t divisor, Polynomial& whole, Polynomial& rest) {
  const auto floor = [&](int64_t v) { return v / divisor - (v % divisor < 0); };
  whole.constant = floor(p.constant), rest.constant = p.constant - whole.constant * divisor;
  for (const Term& t : p.terms) {
    const int64_t q = t.coefficient % divisor == 0 ? t.coefficient / divisor : 0;
    if (q != 0)
      whole.terms.push_back({q, t.factors});
    else
      rest.terms.push_back(t);
  }
}

}  // namespace taper::internal
