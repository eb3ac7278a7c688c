// The normal form of size expressions: polynomials over symbols, floor divisions, remainders,
// minima and maxima. What dim.cpp is made of.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/exporter/dim/bounds.h"
#include "taper/exporter/dim/dim.h"

namespace taper::internal {

using Atom = const Expression*;  // a symbol, floor_div, modulo, min or max

/// coefficient * factors, the factors sorted by `compare`.
struct Term {
  int64_t coefficient;
  std::vector<Atom> factors;
};

/// `terms + constant`, the terms sorted by `before`, without zeros: the normal form of a sum.
struct Polynomial {
  std::vector<Term> terms;
  int64_t constant = 0;
};

/// A node of the expression tree. `sum` holds every polynomial that is neither a number nor a
/// single atom.
struct Expression {
  enum class Form : uint8_t { symbol, floor_div, modulo, min, max, sum };
  Form form;
  Symbol symbol;   // form == symbol
  Polynomial sum;  // form == sum
  Dim a, b;        // the others
  Bounds bounds;

  static Atom of(Dim d) { return d.expression_; }
  static Dim dim(Atom e) { return Dim(e); }
};

/// Less than, equal to or greater than 0. By name and structure, so that texts do not depend on the
/// order of creation.
int compare(Dim a, Dim b);

/// a + scale * b; like all of them, throws ExportError where a coefficient leaves 64 bits.
Polynomial add_scaled(const Polynomial& a, const Polynomial& b, int64_t scale);
Polynomial times(const Polynomial& p, const Polynomial& q);
/// Division without remainder; false if there is a remainder.
bool divide_exactly(Polynomial p, const Polynomial& divisor, Polynomial& result);
/// The greatest number that divides every coefficient.
int64_t content(const Polynomial& p);
/// Splits p = divisor * whole + rest, the rest's coefficients in [0, divisor).
void split(const Polynomial& p, int64_t divisor, Polynomial& whole, Polynomial& rest);

}  // namespace taper::internal
