// Padding: new elements around a tensor.
#pragma once
#include <optional>
#include <string_view>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// self with `pad` elements around the last dimensions: pairs (before, after), from the last
/// dimension on. Negative numbers crop. `mode` is "constant", with `value`; or, for 1, 2 or 3 pairs
/// of (channels, …) or (batch, channels, …), "reflect" (the edge not repeated), "replicate" (the
/// edge repeated) or "circular" (what leaves at one end comes back at the other). Takes every
/// dtype. Errors: an odd number of elements of `pad`, more than the extent (less one for
/// "reflect"), a size below 0.
inline Tensor pad(const Tensor& self, const Dims& pad, std::string_view mode = "constant",
                  std::optional<double> value = {}, Location here = Location::current()) {
  return call<ops::pad>(here, self, pad, mode, value);
}

}  // namespace taper::eager
