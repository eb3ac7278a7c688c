// The derivative of the patches of a deformable convolution: each position reads four elements,
// with weights that depend on its offset.
#include <array>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::derivatives {
namespace {

Tensor number(Dim n) { return dim_as_tensor(n, DType::i64); }

/// One coordinate of 0, 1, …, count - 1 in row-major order: `extent` values, each for `inner`
/// neighbours.
Tensor coordinates(Dim count, Dim inner, Dim extent) {
  const Tensor all = sub(cumsum(ones({count}, DType::i64), 0), Scalar(1));
  return remainder(floor_divide(all, number(inner)), number(extent));
}

/// One of the two elements along a direction beside each position.
struct Neighbour {
  Tensor at, weight, slope;  ///< an element outside has no weight, and its place is 0
};

std::array<Neighbour, 2> neighbours(const Tensor& x, Dim size) {
  const Tensor low = floor(x), rest = x - low, extent = dim_as_tensor(size, x.dtype());
  std::array<Neighbour, 2> both;
  for (int k = 0; k < 2; ++k) {
    const Tensor at = low + k;
    const Tensor inside = logical_and(ge(at, 0), lt(at, extent));
    both[static_cast<size_t>(k)] =
        Neighbour{to(keep(at, inside), DType::i64), keep(k == 0 ? 1 - rest : rest, inside),
                  to(inside, x.dtype()) * (k == 0 ? -1 : 1)};
  }
  return both;
}

/// The patches of a call. A group of channels with its own offsets counts as an image.
struct Patches {
  Dim groups, channels, taps, positions, height, width;
  Tensor y, x;  ///< (groups, taps * positions)

  explicit Patches(const Saved<ops::taper_deformable_columns>& saved) {
    const Dims input = saved.sizes<"input">(), offset = saved.sizes<"offset">(),
               kernel = saved.dims<"kernel_size">();
    taps = kernel[0] * kernel[1], positions = offset[2] * offset[3];
    const Dim groups_of_image = offset[1] / (taps * 2);
    groups = input[0] * groups_of_image, channels = input[1] / groups_of_image;
    height = input[2], width = input[3];
    const Tensor moved = reshape(saved.tensor<"offset">(), {groups, taps, Dim(2), positions});
    const auto along = [&](size_t d, Dim taps_inside, Dim positions_inside) {
      const Tensor tap = coordinates(taps, taps_inside, kernel[d]);
      const Tensor position = coordinates(positions, positions_inside, offset[d + 2]);
      const Tensor fixed = unsqueeze(tap * number(saved.dims<"dilation">()[d]), 1) +
                           position * number(saved.dims<"stride">()[d]) -
                           number(saved.dims<"padding">()[d]);
      return flatten(to(fixed, moved.dtype()) + select(moved, 2, static_cast<int64_t>(d)), 1);
    };
    y = along(0, kernel[1], offset[3]), x = along(1, 1, 1);
  }
};

Tensor added(const Tensor& sum, const Tensor& term) { return sum.defined() ? sum + term : term; }

}  // namespace

TAPER_DERIVATIVE(taper_deformable_columns, "input", "offset", "mask") {
  const Patches p(saved);
  const Dim each = p.taps * p.positions;
  const Tensor planes =
      reshape(saved.tensor<"input">(), {p.groups, p.channels, p.height * p.width});
  const Tensor d = reshape(dy, {p.groups, p.channels, each});
  const Tensor factor =
      saved.has<"mask">() ? reshape(saved.tensor<"mask">(), {p.groups, Dim(1), each}) : Tensor();
  const Tensor scaled = factor.defined() ? d * factor : d;
  Tensor input = zeros_like(planes), down, right, mask;
  for (const Neighbour& row : neighbours(p.y, p.height))
    for (const Neighbour& column : neighbours(p.x, p.width)) {
      const Tensor weight = row.weight * column.weight;
      const Tensor at =
          expand(unsqueeze(row.at * number(p.width) + column.at, 1), {p.groups, p.channels, each});
      input = scatter_add(input, 2, at, scaled * unsqueeze(weight, 1));
      const Tensor values = gather(planes, 2, at);
      const Tensor through = sum(scaled * values, Ints{1});
      down = added(down, through * row.slope * column.weight);
      right = added(right, through * row.weight * column.slope);
      if (factor.defined()) mask = added(mask, sum(d * values, Ints{1}) * weight);
    }
  const auto in_groups = [&](const Tensor& t) {
    return reshape(t, {p.groups, p.taps, p.positions});
  };
  const Tensor offset = stack({in_groups(down), in_groups(right)}, 2);
  return {reshape(input, saved.sizes<"input">()), reshape(offset, saved.sizes<"offset">()),
          factor.defined() ? reshape(mask, saved.sizes<"mask">()) : Tensor()};
}

}  // namespace taper::eager::derivatives
