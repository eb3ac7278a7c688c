// What is known of an assumption before a run.
#pragma once
#include <optional>

#include "taper/exporter/dim/dim.h"

namespace taper {

/// Whether the ranges of the symbols prove that it holds.
bool proves(const Check& check);
/// Whether they prove that it does not.
bool refutes(const Check& check);

/// A symbol whose range a check narrows to one value, or to none.
struct Collapse {
  const Symbol* symbol;
  std::optional<int64_t> value;  ///< the only one that meets the check; nothing: none does
};
/// Whether a check leaves at most one value of a symbol that has several: `n == 3` of an n in 1..9.
/// Nothing for checks that leave more, and for those between several symbols. Equations that are
/// not linear are only tried where the range of the symbol is short.
std::optional<Collapse> collapse_of(const Check& check);

}  // namespace taper
