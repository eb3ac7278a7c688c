#include "taper/exporter/ir/cursor.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace taper::ir {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

using SymbolLookup = std::function<Dim(std::string_view)>;

Dim read_factor(Cursor& c, const SymbolLookup& symbol) {
  const char next = c.peek();
  if (is_digit(next) || c.next_is_digit_behind('-')) return c.integer();
  if (c.take("-")) return -read_factor(c, symbol);
  if (c.take("(")) {
    const Dim d = read_dim(c, symbol);
    c.expect(")");
    return d;
  }
  const std::string name = c.word();
  if ((name == "min" || name == "max") && c.take("(")) {
    const Dim a = read_dim(c, symbol);
    c.expect(",");
    const Dim b = read_dim(c, symbol);
    c.expect(")");
    return name == "min" ? min(a, b) : max(a, b);
  }
  return symbol(name);
}

Dim read_product(Cursor& c, const SymbolLookup& symbol) {
  Dim d = read_factor(c, symbol);
  for (;;) {
    if (c.take("*"))
      d = d * read_factor(c, symbol);
    else if (c.take("//"))
      d = d / read_factor(c, symbol);
    else if (c.peek() == '%')
      c.expect("%"), d = d % read_factor(c, symbol);
    else
      return d;
  }
}

}  // namespace

void Cursor::refuse(const std::string& expected) const {
  const auto line =
      std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
  std::string rest(text_.substr(at_, 20));
  rest = rest.substr(0, rest.find('\n'));
  throw ExportError("line " + std::to_string(line) + ": expected " + expected + ", found '" + rest +
                    "'");
}

bool Cursor::at_end() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  return at_ == text_.size();
}

char Cursor::peek() {
  blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Cursor::take(std::string_view token) {
  blanks();
  if (text_.substr(at_, token.size()) != token) return false;
  const size_t end = at_ + token.size();
  if (is_word(token.back()) && token.back() != ':' && end < text_.size() && is_word(text_[end]) &&
      text_[end] != ':')
    return false;
  at_ = end;
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!take(token)) refuse("'" + std::string(token) + "'");
}

std::string Cursor::word() {
  blanks();
  const size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) refuse("a name");
  return std::string(text_.substr(begin, at_ - begin));
}

std::string Cursor::value_name() {
  expect("%");
  std::string s = word();
  while (!s.empty() && s.back() == ':') s.pop_back(), --at_;
  return s;
}

std::string Cursor::string() {
  expect("\"");
  std::string s;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) c = text_[at_++] == 'n' ? '\n' : text_[at_ - 1];
    s += c;
  }
  expect("\"");
  return s;
}

int64_t Cursor::integer() {
  blanks();
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
  if (error != std::errc()) refuse("an integer");
  at_ = static_cast<size_t>(end - text_.data());
  return v;
}

Scalar Cursor::number() {
  if (take("true")) return Scalar(true);
  if (take("false")) return Scalar(false);
  if (take("nan")) return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (take("inf")) return Scalar(std::numeric_limits<double>::infinity());
  if (take("-inf")) return Scalar(-std::numeric_limits<double>::infinity());
  blanks();
  double v = 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), v);
  if (error != std::errc()) refuse("a number");
  if (std::find_if(begin, end, [](char c) { return c == '.' || c == 'e'; }) == end)
    return Scalar(integer());
  at_ = static_cast<size_t>(end - text_.data());
  return Scalar(v);
}

bool Cursor::next_is_digit_behind(char sign) const {
  return at_ + 1 < text_.size() && text_[at_] == sign && is_digit(text_[at_ + 1]);
}

void Cursor::blanks() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
}

Dim read_dim(Cursor& c, const std::function<Dim(std::string_view)>& symbol) {
  Dim d = read_product(c, symbol);
  for (;;) {
    if (c.take("+"))
      d = d + read_product(c, symbol);
    else if (c.take("-"))
      d = d - read_product(c, symbol);
    else
      return d;
  }
}

}  // namespace taper::ir
