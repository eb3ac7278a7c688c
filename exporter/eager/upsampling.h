// Calls of the upsample_* family with a list of scales, for decompositions and derivatives.
#pragma once
#include <array>
#include <optional>
#include <utility>

#include "taper/exporter/eager/arguments.h"
#include "taper/exporter/eager/call.h"

namespace taper::eager {

using Scales = std::array<std::optional<double>, 3>;

/// The dimensions that an upsample_* row or its gradient resamples. It has a scale for each.
template <const Operator& op>
constexpr int resampled_dims() {
  int n = 0;
  for (int i = 0; i < schema<op>.parameter_count; ++i)
    n += schema<op>.parameters[i].kind == Kind::real && !schema<op>.parameters[i].list;
  return n;
}

/// Calls `op` with a tensor and sizes, and with `align_corners` if the row has it.
template <const Operator& op, class... Sizes>
Tensor call_upsample(bool align_corners, const Scales& scales, const Tensor& tensor,
                     const Sizes&... sizes) {
  return [&]<size_t... i>(std::index_sequence<i...>) {
    if constexpr (position_of(schema<op>, "align_corners") >= 0)
      return call<op>(tensor, sizes..., align_corners, scales[i]...);
    else
      return call<op>(tensor, sizes..., scales[i]...);
  }
  (std::make_index_sequence<resampled_dims<op>()>());
}

template <const Operator& op>
bool aligns_corners(const Arguments<op>& a) {
  if constexpr (position_of(schema<op>, "align_corners") >= 0)
    return a.template boolean<"align_corners">();
  return false;
}

}  // namespace taper::eager
