// What shape rules ask about symbolic extents.
#include "taper/exporter/dim/dim.h"

namespace taper {

std::string format_message(const char* text, std::initializer_list<Dim> values) {
  std::string s;
  const Dim* next = values.begin();
  for (const char* c = text; *c != '\0'; ++c) {
    if (c[0] == '{' && c[1] == '}' && next != values.end())
      s += (next++)->to_string(), ++c;
    else
      s += *c;
  }
  return s;
}

bool Facts<Dim>::require(bool holds, const char* text, Dim a, Dim b, Dim c) {
  if (!holds && !failed) failed = true, message = text, values[0] = a, values[1] = b, values[2] = c;
  return holds;
}

bool Facts<Dim>::assume(Comparison comparison, Dim left, Dim right, std::string text) {
  for (const Check& c : checks)
    if (c.comparison == comparison && same(c.left, left) && same(c.right, right)) return true;
  checks.push_back({comparison, left, right, std::move(text)});
  return true;
}

bool Facts<Dim>::equal(Dim a, Dim b, const char* text, Dim c) {
  if (taper::proves_equal(a, b)) return true;
  if (proves_different(a, b)) return require(false, text, a, b, c);
  return assume(Comparison::equal, a, b, format_message(text, {a, b, c}));
}
bool Facts<Dim>::at_least(Dim a, Dim b, const char* text) {
  if (proves_at_least(a, b)) return true;
  if (taper::proves_less(a, b)) return require(false, text, a, b);
  return assume(Comparison::less_equal, b, a, format_message(text, {a, b}));
}
bool Facts<Dim>::less(Dim a, Dim b, const char* text) {
  if (taper::proves_less(a, b)) return true;
  if (proves_at_least(a, b)) return require(false, text, a, b);
  return assume(Comparison::less, a, b, format_message(text, {a, b}));
}

}  // namespace taper
