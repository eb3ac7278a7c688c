#include "taper/exporter/eager/ops/resampling.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/text.h"
#include "taper/exporter/eager/upsampling.h"

namespace taper::eager::decompositions {
namespace {

/// floor(size * factor). A symbolic size needs a factor that is a fraction whose denominator is a
/// power of 2.
Dim scaled(const Dim& size, double factor, const std::string& name) {
  if (!(factor > 1e-9 && factor < 1e9))
    throw EagerError(name + ": scale_factors must lie in (1e-9, 1e9), got " + to_text(factor));
  if (size.is_constant()) {
    const double product = std::floor(static_cast<double>(size.value()) * factor);
    if (product > 9e15)
      throw EagerError(name + ": scale_factors " + to_text(factor) +
                       " makes a size of more than 9e15 of " + size.to_string());
    return Dim(static_cast<int64_t>(product));
  }
  for (int64_t below = 1; below <= 1024; below *= 2)
    if (const double above = factor * static_cast<double>(below); above == std::floor(above))
      return size * Dim(static_cast<int64_t>(above)) / Dim(below);
  throw EagerError(name + ": scale factor " + to_text(factor) +
                   " of a size that only the run knows must be a fraction with a power of "
                   "2 below; give output_size");
}

/// Calls `op` with the size that output_size or scale_factors ask for.
template <const Operator& op, const Operator& vec>
Tensor resized(const Arguments<vec>& a) {
  constexpr int n = resampled_dims<op>();
  const std::string name(schema<op>.name);
  const Tensor input = a.template tensor<"input">();
  if (a.template has<"output_size">() == a.template has<"scale_factors">())
    throw EagerError(name + ": one of output_size and scale_factors must be given, not both");
  Dims size = a.template dims<"output_size">();
  Scales scales;
  if (const std::vector<double> factors = a.template reals<"scale_factors">(); size.empty()) {
    if (factors.size() != n || input.rank() != n + 2)
      throw EagerError(name + ": needs " + std::to_string(n) + " scale_factors and input of " +
                       std::to_string(n + 2) + " dimensions, got " +
                       std::to_string(factors.size()) + " for " + to_string(input.sizes()));
    for (size_t i = 0; i < n; ++i) {
      scales[i] = factors[i];
      size.push_back(scaled(input.size(static_cast<int64_t>(i) + 2), factors[i], name));
    }
  }
  return call_upsample<op>(aligns_corners(a), scales, input, size);
}

/// Reshapes `self` to `between`, permutes the dimensions, and gives the copy `sizes`.
Tensor rearranged(const Tensor& self, const Dims& between, const Ints& order, const Dims& sizes) {
  return view(clone(permute(reshape(self, between), order)), sizes);
}

void check_divides(const Dim& divisor, const Dim& size, const char* what, const Tensor& self) {
  if (size.is_constant() && divisor.is_constant() && size.value() % divisor.value() != 0)
    throw EagerError(std::string(what) + " " + size.to_string() + " of " + to_string(self.sizes()) +
                     " is not a multiple of " + divisor.to_string());
}
void check_shuffle(const char* name, const Tensor& self, int64_t factor) {
  if (factor < 1 || factor > 32767)
    throw EagerError(std::string(name) + ": the factor " + std::to_string(factor) +
                     " is outside [1, 32767]");
  if (self.rank() < 3)
    throw EagerError(std::string(name) + ": needs (…, channels, height, width), got " +
                     to_string(self.sizes()));
}
/// 0, 1, …, first - 1, then `first` plus each element of `rest`.
Ints order_of(size_t first, std::initializer_list<int64_t> rest) {
  Ints order;
  for (size_t i = 0; i < first; ++i) order.push_back(static_cast<int64_t>(i));
  for (const int64_t i : rest) order.push_back(static_cast<int64_t>(first) + i);
  return order;
}

}  // namespace

#define TAPER_RESIZED(op) \
  TAPER_DECOMPOSITION(op##_vec) { return {resized<ops::op>(a)}; }
TAPER_RESIZED(upsample_nearest1d)
TAPER_RESIZED(upsample_nearest2d)
TAPER_RESIZED(upsample_nearest3d)
TAPER_RESIZED(_upsample_nearest_exact1d)
TAPER_RESIZED(_upsample_nearest_exact2d)
TAPER_RESIZED(_upsample_nearest_exact3d)
TAPER_RESIZED(upsample_linear1d)
TAPER_RESIZED(upsample_bilinear2d)
TAPER_RESIZED(upsample_trilinear3d)
TAPER_RESIZED(upsample_bicubic2d)
TAPER_RESIZED(_upsample_bilinear2d_aa)
TAPER_RESIZED(_upsample_bicubic2d_aa)

TAPER_DECOMPOSITION(grid_sampler) {
  const Tensor input = a.tensor<"input">(), grid = a.tensor<"grid">();
  const int64_t interpolation = a.integer<"interpolation_mode">(),
                padding = a.integer<"padding_mode">();
  const bool align = a.boolean<"align_corners">();
  if (input.rank() != 4 && input.rank() != 5)
    throw EagerError("grid_sampler: input must have 4 or 5 dimensions, it is " +
                     to_string(input.sizes()));
  return {input.rank() == 4
              ? call<ops::grid_sampler_2d>(input, grid, interpolation, padding, align)
              : call<ops::grid_sampler_3d>(input, grid, interpolation, padding, align)};
}

TAPER_DECOMPOSITION(pixel_shuffle) {
  const Tensor self = a.tensor<"self">();
  const int64_t factor = a.integer<"upscale_factor">();
  check_shuffle("pixel_shuffle", self, factor);
  const Dim r(factor), c = self.size(-3), h = self.size(-2), w = self.size(-1);
  check_divides(r * r, c, "pixel_shuffle: the channel count", self);
  Dims lead = self.sizes();
  lead.resize(lead.size() - 3);
  return {rearranged(self, joined(lead, {c / (r * r), r, r, h, w}),
                     order_of(lead.size(), {0, 3, 1, 4, 2}),
                     joined(lead, {c / (r * r), h * r, w * r}))};
}
TAPER_DECOMPOSITION(pixel_unshuffle) {
  const Tensor self = a.tensor<"self">();
  const int64_t factor = a.integer<"downscale_factor">();
  check_shuffle("pixel_unshuffle", self, factor);
  const Dim r(factor), c = self.size(-3), h = self.size(-2), w = self.size(-1);
  check_divides(r, h, "pixel_unshuffle: the height", self);
  check_divides(r, w, "pixel_unshuffle: the width", self);
  Dims lead = self.sizes();
  lead.resize(lead.size() - 3);
  return {rearranged(self, joined(lead, {c, h / r, r, w / r, r}),
                     order_of(lead.size(), {0, 2, 4, 1, 3}),
                     joined(lead, {c * r * r, h / r, w / r}))};
}
TAPER_DECOMPOSITION(channel_shuffle) {
  const Tensor self = a.tensor<"self">();
  const Dim groups = a.dim<"groups">();
  if (self.rank() < 3 || proves_less(groups, Dim(1)))
    throw EagerError("channel_shuffle: needs (batch, channels, …) and at least 1 group, got " +
                     to_string(self.sizes()) + " and " + groups.to_string());
  check_divides(groups, self.size(1), "channel_shuffle: the channel count", self);
  Dims cut = self.sizes();
  cut[1] = groups;
  cut.insert(cut.begin() + 2, self.size(1) / groups);
  Ints order = order_of(cut.size(), {});
  std::swap(order[1], order[2]);
  return {rearranged(self, cut, order, self.sizes())};
}
namespace {

/// The coordinates of `count` pixels: -1 and 1 are the centres of the outermost pixels
/// (align_corners), or their outer edges.
Tensor pixel_coordinates(Dim count, bool align_corners, DType dtype) {
  const int64_t n = count.value();
  if (n <= 1) return zeros({count}, dtype);
  const Tensor ends = linspace(-1, 1, n, dtype);
  return align_corners ? ends
                       : mul(ends, Scalar(static_cast<double>(n - 1) / static_cast<double>(n)));
}

}  // namespace

// The place that each pixel is taken from. theta (batch, 2, 3) gives (batch, height, width, 2);
// theta (batch, 3, 4) gives (batch, depth, height, width, 3).
TAPER_DECOMPOSITION(affine_grid_generator) {
  const Tensor theta = a.tensor<"theta">();
  const Dims size = a.dims<"size">();
  const size_t spatial = size.size() < 2 ? 0 : size.size() - 2;
  if ((spatial != 2 && spatial != 3) || theta.rank() != 3 ||
      proves_different(theta.size(1), static_cast<int64_t>(spatial)) ||
      proves_different(theta.size(2), static_cast<int64_t>(spatial) + 1))
    throw EagerError("affine_grid_generator: theta " + to_string(theta.sizes()) + " and size " +
                     to_string(size) +
                     " must be (batch, 2, 3) and 4 sizes, or (batch, 3, 4) and 5 sizes");
  const Dims extents(size.begin() + 2, size.end());
  std::vector<Tensor> coordinates;  // x first
  Dim count = 1;
  for (size_t k = spatial; k-- > 0;) {
    Dims line(spatial, Dim(1));
    line[k] = extents[k];
    const Tensor axis = pixel_coordinates(extents[k], a.boolean<"align_corners">(), theta.dtype());
    coordinates.push_back(expand(reshape(axis, line), extents));
    count *= extents[k];
  }
  coordinates.push_back(ones(extents, theta.dtype()));
  const auto rank = static_cast<int64_t>(spatial);
  const Tensor base = reshape(stack(coordinates, -1), {1, count, rank + 1});
  const Tensor grid = bmm(expand(base, {size[0], count, rank + 1}), transpose(theta, 1, 2));
  Dims sizes = extents;
  sizes.insert(sizes.begin(), size[0]), sizes.push_back(rank);
  return {reshape(grid, sizes)};
}

}  // namespace taper::eager::decompositions
