// Average pools and means, as windows of images.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::passes {

/// The windows of an average over an image, or over a line as an image of one row.
struct AverageWindows {
  std::vector<Dim> kernel, stride, padding;
  bool ceil_mode = false, counts_padding = true, keeps = true;
  bool of_rows = false;  ///< of (batch, positions, channels), whose channels lie last already
  ir::Argument divisor;
};

/// Of avg_pool1d, avg_pool2d, their adaptive forms for one window, and mean over height and width
/// or over positions. nullopt, and a reason in `why`, for averages over other elements.
std::optional<AverageWindows> average_windows(const ir::Node& node, const ir::Type& input,
                                              std::string& why);

}  // namespace taper::passes
