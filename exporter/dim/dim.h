// Symbolic sizes: what `Tensor::size()` gives and what shape rules compute with while tracing and
// importing.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/base/location.h"
#include "taper/kernels/rule.h"

namespace taper {

/// A size that is known only when the program runs. Never freed; its address is its identity.
struct Symbol {
  std::string name;  ///< for people; two symbols may share one
  int64_t minimum, maximum;
  uint64_t id;
};

/// How a `Dim` is put together, see `Dim::parts`.
enum class DimKind : uint8_t { constant, symbol, add, multiply, floor_div, modulo, min, max };

namespace internal {
struct Expression;
}

/// An integer expression over symbols: a number, or a pointer to an immutable interned expression.
///
/// Expressions are polynomials in normal form over symbols, floor divisions, remainders, minima and
/// maxima, so equal formulas are one object: `n * 16 * 25` and `n * 400` are `same`, and `(n * 400)
/// / 400` is `n`. Every expression knows a range that its value lies in. `/` and `%` round towards
/// minus infinity, as in Python.
///
/// Errors: arithmetic that leaves 64 bits and a division by zero throw ExportError; a comparison
/// that the ranges do not decide, and `value()` of a symbolic expression, throw SymbolicValueError.
class Dim {
 public:
  constexpr Dim() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Dim(T value) : value_(static_cast<int64_t>(value)) {}

  /// A new symbol, different from every other, whatever its name. Its values lie in [minimum,
  /// maximum]. Throws EagerError for a name or a range that is empty.
  static Dim symbol(std::string name, int64_t minimum = 0,
                    int64_t maximum = std::numeric_limits<int64_t>::max(),
                    Location here = Location::current());

  constexpr bool is_constant() const { return expression_ == nullptr; }
  int64_t value() const { return is_constant() ? value_ : refuse_value(); }
  explicit operator int64_t() const { return value(); }

  /// The symbol that this is, nullptr if it is anything else.
  const Symbol* as_symbol() const;
  /// The least and the greatest value that interval arithmetic allows; the ends of int64 mean "no
  /// limit known".
  int64_t lower() const;
  int64_t upper() const;
  /// All symbols in it, by id.
  std::vector<const Symbol*> symbols() const;

  /// One step into the expression: `constant` has `value`, `symbol` has `symbol`, the others two or
  /// more operands.
  struct Parts;
  Parts parts() const;

  /// The value with every symbol bound; throws ExportError where one is missing, on overflow and on
  /// division by zero.
  using Bindings = std::unordered_map<const Symbol*, int64_t>;
  int64_t evaluate(const Bindings& bindings) const;
  /// The expression with some symbols replaced.
  using Substitution = std::unordered_map<const Symbol*, Dim>;
  Dim substitute(const Substitution& replacements) const;

  /// "batch*400", "(h + 5)//2"; `parse_dim` (parser.h) reads it back.
  std::string to_string() const;
  size_t hash() const {
    return std::hash<const void*>()(expression_) * 31 + std::hash<int64_t>()(value_);
  }

  /// One and the same expression. Never throws, unlike `==`.
  friend constexpr bool same(Dim a, Dim b) {
    return a.expression_ == b.expression_ && a.value_ == b.value_;
  }

#define TAPER_DIM_OPERATOR(op, builtin, slow)                                              \
  friend Dim operator op(Dim a, Dim b) {                                                   \
    int64_t r;                                                                             \
    if (a.is_constant() && b.is_constant() && !builtin(a.value_, b.value_, &r)) [[likely]] \
      return r;                                                                            \
    return slow(a, b);                                                                     \
  }
  TAPER_DIM_OPERATOR(+, __builtin_add_overflow, add)
  TAPER_DIM_OPERATOR(-, __builtin_sub_overflow, subtract)
  TAPER_DIM_OPERATOR(*, __builtin_mul_overflow, multiply)
#undef TAPER_DIM_OPERATOR
  friend Dim operator/(Dim a, Dim b) { return floor_div(a, b); }
  friend Dim operator%(Dim a, Dim b) { return modulo(a, b); }
  friend Dim operator-(Dim a) { return Dim(0) - a; }
  Dim& operator+=(Dim b) { return *this = *this + b; }
  Dim& operator-=(Dim b) { return *this = *this - b; }
  Dim& operator*=(Dim b) { return *this = *this * b; }
  friend Dim min(Dim a, Dim b);
  friend Dim max(Dim a, Dim b);

  // Comparisons as a user writes them in a model's `if`.
  friend bool operator==(Dim a, Dim b) { return same(a, b) || decide_equal(a, b); }
  friend bool operator<(Dim a, Dim b) { return decide_less(a, b); }
  friend bool operator>(Dim a, Dim b) { return decide_less(b, a); }
  friend bool operator<=(Dim a, Dim b) { return !decide_less(b, a); }
  friend bool operator>=(Dim a, Dim b) { return !decide_less(a, b); }

 private:
  friend struct internal::Expression;
  explicit Dim(const internal::Expression* e) : expression_(e) {}
  [[noreturn]] int64_t refuse_value() const;
  static Dim add(Dim a, Dim b);
  static Dim subtract(Dim a, Dim b);
  static Dim multiply(Dim a, Dim b);
  static Dim floor_div(Dim a, Dim b);
  static Dim modulo(Dim a, Dim b);
  static bool decide_equal(Dim a, Dim b);
  static bool decide_less(Dim a, Dim b);

  const internal::Expression* expression_ = nullptr;
  int64_t value_ = 0;  ///< 0 where `expression_` is set
};
static_assert(sizeof(Dim) == 16 && std::is_trivially_copyable_v<Dim>);

struct Dim::Parts {
  DimKind kind;
  int64_t value = 0;
  const Symbol* symbol = nullptr;
  std::vector<Dim> operands;
};

Dim min(Dim a, Dim b);
Dim max(Dim a, Dim b);
std::ostream& operator<<(std::ostream& out, const Dim& dim);

/// What rules ask: whether it is a number, and which.
inline bool is_number(Dim d, int64_t& value) {
  if (d.is_constant()) value = d.value();
  return d.is_constant();
}

/// Whether the ranges prove it for all values of the symbols. Never throw.
bool proves_equal(Dim a, Dim b);
bool proves_different(Dim a, Dim b);
bool proves_less(Dim a, Dim b);
bool proves_at_least(Dim a, Dim b);

/// `text` with its `{}` replaced by the values in turn, as rules' messages have them.
std::string format_message(const char* text, std::initializer_list<Dim> values);

/// Stored in programs: never change a value.
enum class Comparison : uint8_t { equal = 0, not_equal = 1, less = 2, less_equal = 3 };

/// An assumption about symbols that could not be proved: evaluated on the device when they are
/// bound.
struct Check {
  Comparison comparison;
  Dim left, right;
  std::string message;  ///< "sizes must be equal: batch and 5"
};

/// What rules ask about symbolic extents: proved by ranges, or recorded as a check that travels
/// into the file.
template <>
struct Facts<Dim> {
  const char* message = nullptr;  ///< the first requirement that cannot hold
  Dim values[3];
  bool failed = false;
  std::vector<Check> checks;  ///< what must hold besides, each once

  bool require(bool holds, const char* text, Dim a = 0, Dim b = 0, Dim c = 0);
  /// False for a symbol: broadcasting takes it for a number other than one, and `equal` then asks
  /// for the same on the other side.
  bool is_one(Dim d) { return d.lower() == 1 && d.upper() == 1; }
  bool equal(Dim a, Dim b, const char* text, Dim c = 0);
  bool at_least(Dim a, Dim b, const char* text);
  bool less(Dim a, Dim b, const char* text);
  bool proves_equal(Dim a, Dim b) { return taper::proves_equal(a, b); }
  bool proves_less(Dim a, Dim b) { return taper::proves_less(a, b); }
  Dim max(Dim a, Dim b) { return taper::max(a, b); }
  Dim min(Dim a, Dim b) { return taper::min(a, b); }

 private:
  bool assume(Comparison comparison, Dim left, Dim right, std::string text);
};

}  // namespace taper
