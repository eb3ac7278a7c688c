// Reads size expressions in PyTorch's form, which is SymPy's constructor form (`srepr`):
//
//   Add(Mul(Integer(16), Symbol('s15', positive=True, integer=True)), Integer(16))
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "taper/exporter/dim/dim.h"

namespace taper::pt2 {

/// The integer value of an expression. `symbol` gives the value of a name. Assumptions
/// (`positive=True`) are ignored. Throws ExportError if the text is not an expression, is nested
/// deeper than any that PyTorch writes, uses a function without an integer result (reals,
/// comparisons), or overflows.
Dim parse_expression(std::string_view text, const std::function<Dim(const std::string&)>& symbol);

/// factor * s + summand, with factor > 0.
struct Linear {
  int64_t factor, summand;
};
/// The form of `d`, if it is linear in the symbol `s` and grows with it.
std::optional<Linear> linear_in(Dim d, Dim s);

}  // namespace taper::pt2
