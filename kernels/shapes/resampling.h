// Rules of resampling: upsample_* over the last 1, 2 or 3 dimensions of (batch, channels, …), and
// grid_sampler.
#pragma once
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// Requires `sizes` for n dimensions, each at least 1.
template <int n, class D>
bool positive_sizes(Facts<D>& facts, const DimList<D>& sizes) {
  if (!facts.require(sizes.size() == n, TAPER_TEXT("output_size must have {} elements, it has {}"),
                     n, sizes.size()))
    return false;
  for (int i = 0; i < n; ++i)
    if (!facts.at_least(sizes[i], D(1),
                        TAPER_TEXT("output_size must be positive, it has an element {}")))
      return false;
  return true;
}

/// Requires (batch, channels, …). Only the batch may be empty, and with `channels_may_be_empty` the
/// channels.
template <int n, class D>
bool check_image(Facts<D>& facts, const TensorType<D>& t, const char* rank_text,
                 bool channels_may_be_empty = false) {
  if (!facts.require(t.rank == n + 2, rank_text, n + 2, t.rank)) return false;
  for (int i = channels_may_be_empty ? 2 : 1; i < t.rank; ++i)
    if (!facts.at_least(
            t[i], D(1),
            channels_may_be_empty
                ? TAPER_TEXT("the tensor has an extent of {}; an image must not be empty")
                : TAPER_TEXT("the tensor has an extent of {}; only the batch may be empty")))
      return false;
  return true;
}

/// Requires a valid scale factor of a dimension. The kernel computes positions from it; it never
/// decides a size.
template <class D>
bool is_scale(Facts<D>& facts, const Maybe<double>& scale) {
  return facts.require(!scale || (*scale > 1e-9 && *scale < 1e9),
                       TAPER_TEXT("a scale factor must be between 1e-9 and 1e9"));
}
template <class D>
bool is_scale(Facts<D>&, bool) {  // align_corners
  return true;
}

/// `Tail`: [bool align_corners,] Maybe<double> scale of each dimension.
template <int n, class... Tail>
struct UpsampleRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> output_size,
                    Tail... tail, TensorType<D>& out) {
    if (!check_image<n>(facts, self, TAPER_TEXT("self must have {} dimensions, it has {}")) ||
        !positive_sizes<n>(facts, output_size) || !(is_scale(facts, tail) && ...))
      return false;
    out.like(self);
    for (int i = 0; i < n; ++i) out.sizes[2 + i] = output_size[i];
    return has_countable_bytes(facts, out);
  }
};

template <int n, class... Tail>
struct UpsampleBackwardRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, DimList<D> output_size,
                    DimList<D> input_size, Tail... tail, TensorType<D>& out) {
    if (!facts.require(input_size.size() == n + 2,
                       TAPER_TEXT("input_size must have {} elements, it has {}"), n + 2,
                       input_size.size()))
      return false;
    out.dtype = grad_output.dtype, out.rank = n + 2;
    for (int i = 0; i < out.rank; ++i) out.sizes[i] = input_size[i];
    TensorType<D> result;
    return facts.at_least(out[0], D(0), TAPER_TEXT("input_size {} is negative")) &&
           UpsampleRule<n, Tail...>::shape(facts, out, output_size, tail..., result) &&
           same_sizes(facts, grad_output, result,
                      TAPER_TEXT("grad_output has {} dimensions, the resized input {}"),
                      TAPER_TEXT("grad_output has extent {} where the resized input has {}"));
  }
};

/// input (batch, channels, x…), grid (batch, y…, n) -> (batch, channels, y…)
template <int n, class D>
bool sampled_shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& grid,
                   int64_t interpolation_mode, int64_t padding_mode, TensorType<D>& out) {
  if (!check_image<n>(facts, input, TAPER_TEXT("input must have {} dimensions, it has {}"), true) ||
      !facts.require(grid.rank == n + 2, TAPER_TEXT("grid must have {} dimensions, it has {}"),
                     n + 2, grid.rank) ||
      !facts.require(grid.dtype == input.dtype,
                     TAPER_TEXT("grid and input must have the same dtype")) ||
      !facts.equal(grid[0], input[0], TAPER_TEXT("grid has batch {}, input {}")) ||
      !facts.equal(grid[n + 1], D(n), TAPER_TEXT("grid's last extent is {}, it must be {}")) ||
      !facts.require(interpolation_mode >= 0 && interpolation_mode < (n == 2 ? 3 : 2),
                     TAPER_TEXT("interpolation_mode {} is not 0 (linear), 1 (nearest) or, of "
                                "images, 2 (cubic)"),
                     interpolation_mode) ||
      !facts.require(padding_mode >= 0 && padding_mode < 3,
                     TAPER_TEXT("padding_mode {} is not 0 (zeros), 1 (border) or 2 (reflection)"),
                     padding_mode))
    return false;
  out.like(input);
  for (int i = 0; i < n; ++i) out.sizes[2 + i] = grid[1 + i];
  return true;
}

template <int n>
struct GridSamplerRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& grid,
                    int64_t interpolation_mode, int64_t padding_mode, bool, TensorType<D>& out) {
    return sampled_shape<n>(facts, input, grid, interpolation_mode, padding_mode, out);
  }
};

/// Results: the gradients of input and grid. Those that `output_mask` leaves out are not present.
template <int n>
struct GridSamplerBackwardRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& input,
                    const TensorType<D>& grid, int64_t interpolation_mode, int64_t padding_mode,
                    bool, Span<const int64_t> output_mask, TensorType<D>& grad_input,
                    TensorType<D>& grad_grid) {
    TensorType<D> out;
    if (!sampled_shape<n>(facts, input, grid, interpolation_mode, padding_mode, out) ||
        !same_sizes(facts, grad_output, out,
                    TAPER_TEXT("grad_output has {} dimensions, the result {}"),
                    TAPER_TEXT("grad_output has extent {} where the result has {}")) ||
        !facts.require(grad_output.dtype == input.dtype,
                       TAPER_TEXT("grad_output and input must have the same dtype")) ||
        !facts.require(output_mask.size() == 2, TAPER_TEXT("output_mask needs 2 elements, got {}"),
                       output_mask.size()))
      return false;
    grad_input.like(input), grad_grid.like(grid);
    grad_input.present = output_mask[0] != 0, grad_grid.present = output_mask[1] != 0;
    return true;
  }
};

}  // namespace internal

#define TAPER_UPSAMPLE_RULES(op, ...)                            \
  template <>                                                    \
  struct Rule<ops::op> : internal::UpsampleRule<__VA_ARGS__> {}; \
  template <>                                                    \
  struct Rule<ops::op##_backward> : internal::UpsampleBackwardRule<__VA_ARGS__> {};
TAPER_UPSAMPLE_RULES(upsample_nearest1d, 1, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_nearest2d, 2, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_nearest3d, 3, Maybe<double>, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(_upsample_nearest_exact1d, 1, Maybe<double>)
TAPER_UPSAMPLE_RULES(_upsample_nearest_exact2d, 2, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(_upsample_nearest_exact3d, 3, Maybe<double>, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_linear1d, 1, bool, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_bilinear2d, 2, bool, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_bicubic2d, 2, bool, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(upsample_trilinear3d, 3, bool, Maybe<double>, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(_upsample_bilinear2d_aa, 2, bool, Maybe<double>, Maybe<double>)
TAPER_UPSAMPLE_RULES(_upsample_bicubic2d_aa, 2, bool, Maybe<double>, Maybe<double>)
#undef TAPER_UPSAMPLE_RULES

template <>
struct Rule<ops::grid_sampler_2d> : internal::GridSamplerRule<2> {};
template <>
struct Rule<ops::grid_sampler_3d> : internal::GridSamplerRule<3> {};
template <>
struct Rule<ops::grid_sampler_2d_backward> : internal::GridSamplerBackwardRule<2> {};
template <>
struct Rule<ops::grid_sampler_3d_backward> : internal::GridSamplerBackwardRule<3> {};

}  // namespace taper
