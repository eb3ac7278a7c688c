// Loops that look for rare elements. Several elements are tested together. Only if one of them
// passes are they looked at one by one.
#pragma once
#include "taper/kernels/portable/elements.h"

namespace taper::portable {

inline constexpr int screened = 16;

/// Whether one of test(0) … test(screened - 1) holds.
template <class Test>
bool any_of(const Test& test) {
  int any = 0;
  TAPER_LANES
  for (int l = 0; l < screened; ++l) any |= test(l);
  return any != 0;
}

}  // namespace taper::portable
