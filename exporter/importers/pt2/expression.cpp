#include "taper/exporter/importers/pt2/expression.h"

#include <charconv>
#include <optional>
#include <vector>

namespace taper::pt2 {
namespace {

constexpr int max_depth = 200;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Dim ceil_div(Dim a, Dim b) { return -((-a) / b); }

class Parser {
 public:
  Parser(std::string_view text, const std::function<Dim(const std::string&)>& symbol)
      : text_(text), symbol_(symbol) {}

  Dim parse() {
    const Dim d = expression(0);
    blanks();
    if (at_ != text_.size()) fail("text stands behind its end");
    return d;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string shown(text_.substr(0, 80));
    if (shown.size() < text_.size()) shown += "…";
    throw ExportError("size expression \"" + shown + "\": " + what);
  }

  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("'") + c + "' is missing at character " + std::to_string(at_));
  }
  std::string word() {
    blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string quoted() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == text_.npos) fail("a quote is not closed");
    const std::string inside(text_.substr(at_, end - at_));
    at_ = end + 1;
    return inside;
  }
  int64_t number() {
    blanks();
    int64_t value = 0;
    const auto [stop, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc())
      fail("an integer of 64 bits is missing at character " + std::to_string(at_));
    at_ = static_cast<size_t>(stop - text_.data());
    return value;
  }

  /// Skips `name=value`. Returns false if something else follows.
  bool assumption() {
    const size_t begin = at_;
    if (const std::string name = word(); !name.empty() && take('=')) {
      word();
      return true;
    }
    at_ = begin;
    return false;
  }

  Dim expression(int depth) {
    if (depth > max_depth) fail("nested deeper than " + std::to_string(max_depth) + " levels");
    blanks();
    if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9')))
      return number();
    const std::string head = word();
    if (head.empty()) fail("a function is missing at character " + std::to_string(at_));
    expect('(');
    Dim result;
    if (head == "Symbol")
      result = symbol_(quoted());
    else if (head == "Integer")
      result = number();
    else
      return apply(head, operands(depth));
    while (take(','))
      if (!assumption()) fail("a " + head + " has more than its name and assumptions");
    expect(')');
    return result;
  }

  /// Reads up to the closing parenthesis, and that.
  std::vector<Dim> operands(int depth) {
    std::vector<Dim> list;
    if (take(')')) return list;
    do {
      if (!assumption()) list.push_back(expression(depth + 1));
    } while (take(','));
    expect(')');
    return list;
  }

  template <class F>
  Dim fold(const std::vector<Dim>& list, const F& f) const {
    if (list.empty()) fail("a function has no operands");
    Dim result = list[0];
    for (size_t i = 1; i < list.size(); ++i) result = f(result, list[i]);
    return result;
  }

  Dim power(Dim base, Dim exponent) const {
    if (!exponent.is_constant() || exponent.value() < 0 || exponent.value() > 62)
      fail("a power's exponent is no small number");
    Dim result = 1;
    for (int64_t i = 0; i < exponent.value(); ++i) result *= base;
    return result;
  }

  Dim apply(const std::string& head, const std::vector<Dim>& x) const {
    if (head == "Add") return fold(x, [](Dim a, Dim b) { return a + b; });
    if (head == "Mul") return fold(x, [](Dim a, Dim b) { return a * b; });
    if (head == "Max") return fold(x, [](Dim a, Dim b) { return max(a, b); });
    if (head == "Min") return fold(x, [](Dim a, Dim b) { return min(a, b); });
    if (x.size() == 1 && head == "Identity") return x[0];
    if (x.size() == 2) {
      if (head == "FloorDiv" || head == "CleanDiv") return x[0] / x[1];
      if (head == "Mod" || head == "PythonMod") return x[0] % x[1];
      if (head == "CeilDiv") return ceil_div(x[0], x[1]);
      if (head == "Pow" || head == "PowByNatural") return power(x[0], x[1]);
    }
    if (x.size() == 3 && head == "ModularIndexing") return (x[0] / x[1]) % x[2];
    fail(head + " of " + std::to_string(x.size()) + " operands is not supported");
  }

  std::string_view text_;
  const std::function<Dim(const std::string&)>& symbol_;
  size_t at_ = 0;
};

}  // namespace

Dim parse_expression(std::string_view text, const std::function<Dim(const std::string&)>& symbol) {
  return Parser(text, symbol).parse();
}

std::optional<Linear> linear_in(Dim d, Dim s) {
  if (d.symbols() != std::vector{s.as_symbol()}) return std::nullopt;
  // not at 0, by which an expression may divide
  const int64_t at1 = d.evaluate({{s.as_symbol(), 1}}), at2 = d.evaluate({{s.as_symbol(), 2}});
  const Linear form{at2 - at1, at1 - (at2 - at1)};
  // expressions have a normal form, so equal expressions are one object
  if (form.factor <= 0 || !same(d, s * form.factor + form.summand)) return std::nullopt;
  return form;
}

}  // namespace taper::pt2
