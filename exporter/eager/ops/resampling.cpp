#include "taper/exporter/eager/ops/resampling.h"

#include <algorithm>
#include <optional>

namespace taper::eager {
namespace {

Tensor resize(const Tensor& self, const std::optional<Dims>& size,
              const std::optional<std::vector<double>>& scale, std::string_view mode,
              bool align_corners, bool antialias, Location here) {
  const int n = self.rank() - 2;
  if (antialias) {
    if (mode == "bilinear" && n == 2)
      return call<ops::_upsample_bilinear2d_aa_vec>(here, self, size, align_corners, scale);
    if (mode == "bicubic" && n == 2)
      return call<ops::_upsample_bicubic2d_aa_vec>(here, self, size, align_corners, scale);
    throw EagerError(here,
                     "interpolate: antialias is for mode bilinear and bicubic of (batch, "
                     "channels, height, width), not for " +
                         std::string(mode) + " of " + to_string(self.sizes()));
  }
  if (mode == "nearest" && n == 1)
    return call<ops::upsample_nearest1d_vec>(here, self, size, scale);
  if (mode == "nearest" && n == 2)
    return call<ops::upsample_nearest2d_vec>(here, self, size, scale);
  if (mode == "nearest" && n == 3)
    return call<ops::upsample_nearest3d_vec>(here, self, size, scale);
  if (mode == "nearest-exact" && n == 1)
    return call<ops::_upsample_nearest_exact1d_vec>(here, self, size, scale);
  if (mode == "nearest-exact" && n == 2)
    return call<ops::_upsample_nearest_exact2d_vec>(here, self, size, scale);
  if (mode == "nearest-exact" && n == 3)
    return call<ops::_upsample_nearest_exact3d_vec>(here, self, size, scale);
  if (mode == "linear" && n == 1)
    return call<ops::upsample_linear1d_vec>(here, self, size, align_corners, scale);
  if (mode == "bilinear" && n == 2)
    return call<ops::upsample_bilinear2d_vec>(here, self, size, align_corners, scale);
  if (mode == "bicubic" && n == 2)
    return call<ops::upsample_bicubic2d_vec>(here, self, size, align_corners, scale);
  if (mode == "trilinear" && n == 3)
    return call<ops::upsample_trilinear3d_vec>(here, self, size, align_corners, scale);
  throw EagerError(
      here, "interpolate: mode " + std::string(mode) + " does not fit " + to_string(self.sizes()) +
                ": (batch, channels, …) with 1, 2 or 3 more dimensions has nearest and "
                "nearest-exact; 1 linear, 2 bilinear and bicubic, 3 trilinear");
}

/// The position of a word in a list, which is the operator's number for it.
int64_t number_of(std::string_view word, std::initializer_list<std::string_view> words,
                  std::string_view argument, Location here) {
  const auto at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return at - words.begin();
  std::string known;
  for (const std::string_view w : words) known += (known.empty() ? "" : ", ") + std::string(w);
  throw EagerError(here, "grid_sample: " + std::string(argument) + " must be one of " + known +
                             ", not " + std::string(word));
}

}  // namespace

Tensor interpolate(const Tensor& self, const Dims& size, std::string_view mode, bool align_corners,
                   bool antialias, Location here) {
  return resize(self, size, std::nullopt, mode, align_corners, antialias, here);
}
Tensor interpolate_by(const Tensor& self, const std::vector<double>& scale_factor,
                      std::string_view mode, bool align_corners, bool antialias, Location here) {
  return resize(self, std::nullopt, scale_factor, mode, align_corners, antialias, here);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode,
                   std::string_view padding_mode, bool align_corners, Location here) {
  return call<ops::grid_sampler>(
      here, input, grid, number_of(mode, {"bilinear", "nearest", "bicubic"}, "mode", here),
      number_of(padding_mode, {"zeros", "border", "reflection"}, "padding_mode", here),
      align_corners);
}

}  // namespace taper::eager
