// Images, signals and volumes at another resolution, or at chosen positions. They take floating
// dtypes; `interpolate` also takes u8 and rounds the result. Errors: a mode that does not fit the
// rank, a size or factor that is not positive, sizes that do not fit each other.
#pragma once
#include <string_view>
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// (batch, channels, …) resized to `size`, which has 1, 2 or 3 elements. `mode` is "nearest" or
/// "nearest-exact"; "linear" (1 dimension); "bilinear" or "bicubic" (2); "trilinear" (3).
/// `align_corners` keeps the centres of the outermost elements in place; otherwise their outer
/// edges stay. The nearest modes refuse it. `antialias` (bilinear and bicubic): where the image
/// shrinks, each element is a mean over the area that it covers.
Tensor interpolate(const Tensor& self, const Dims& size, std::string_view mode = "nearest",
                   bool align_corners = false, bool antialias = false,
                   Location here = Location::current());
/// The same with a factor for each dimension. The new size is floor(size * factor), and positions
/// are computed from the factor.
Tensor interpolate_by(const Tensor& self, const std::vector<double>& scale_factor,
                      std::string_view mode = "nearest", bool align_corners = false,
                      bool antialias = false, Location here = Location::current());

/// The values of `input` (batch, channels, x…) at the positions `grid` (batch, y…, n): (batch,
/// channels, y…). A position has n = 2 or 3 coordinates from -1 to 1; the first one belongs to the
/// last dimension. `mode` is "bilinear" (for volumes: trilinear), "nearest" or, for images,
/// "bicubic". `padding_mode` says what lies outside: "zeros", "border" or "reflection". With
/// `align_corners`, -1 and 1 are the centres of the outermost elements, not their outer edges.
Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode = "bilinear",
                   std::string_view padding_mode = "zeros", bool align_corners = false,
                   Location here = Location::current());

/// Positions for `grid_sample` over an image or volume `size` (batch, channels, y…), moved by the
/// matrices theta, (batch, 2, 3) or (batch, 3, 4): (batch, y…, 2 or 3).
inline Tensor affine_grid(const Tensor& theta, const Dims& size, bool align_corners = false,
                          Location here = Location::current()) {
  return call<ops::affine_grid_generator>(here, theta, size, align_corners);
}

/// (…, channels r², height, width) -> (…, channels, height r, width r): r² channels become a square
/// of elements.
inline Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor,
                            Location here = Location::current()) {
  return call<ops::pixel_shuffle>(here, self, upscale_factor);
}
/// The inverse of `pixel_shuffle`: (…, channels, height r, width r) -> (…, channels r², height,
/// width).
inline Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor,
                              Location here = Location::current()) {
  return call<ops::pixel_unshuffle>(here, self, downscale_factor);
}
/// (batch, channels, …), where channels are seen as (groups, rest) and become (rest, groups).
inline Tensor channel_shuffle(const Tensor& self, Dim groups, Location here = Location::current()) {
  return call<ops::channel_shuffle>(here, self, groups);
}

}  // namespace taper::eager
