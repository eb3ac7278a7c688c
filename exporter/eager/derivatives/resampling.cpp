// Resampling is linear, so the operator and its gradient are each other's derivative. Second
// derivatives of sampling at a grid's positions use its definition in plain operators.
#include "taper/exporter/eager/ops/resampling.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/upsampling.h"

namespace taper::eager::derivatives {
namespace {

/// The scales are the last arguments of the row.
template <const Operator& op>
Scales scales_of(const Saved<op>& saved) {
  constexpr int n = resampled_dims<op>();
  constexpr int first = position_of(schema<op>, n == 1   ? "scales"
                                                : n == 2 ? "scales_h"
                                                         : "scales_d");
  Scales scales;
  for (int i = 0; i < n; ++i)
    if (const Boxed& b = saved.call().arguments()[first + i]; b.present) scales[i] = b.real;
  return scales;
}

/// grid_sampler in plain operators, which can be differentiated any number of times.
class PlainSampler {
 public:
  PlainSampler(int64_t interpolation, int64_t padding, bool align_corners)
      : linear_(interpolation == 0),
        cubic_(interpolation == 2),
        padded_(padding != 0),
        reflects_(padding == 2),
        align_(align_corners) {}

  Tensor operator()(const Tensor& input, const Tensor& grid) const {
    const int n = input.rank() - 2;
    const Tensor planes = flatten(input, 2), positions = flatten(grid, 1, -2);
    // every combination of one tap of each dimension
    std::vector<Tap> taps;
    for (int d = 0; d < n; ++d) {
      const double size = static_cast<double>(input.size(2 + d).value());
      const std::vector<Tap> along = taps_at(select(positions, -1, n - 1 - d), size);
      std::vector<Tap> products;
      for (const Tap& a : taps)
        for (const Tap& b : along)
          products.push_back({a.index * size + b.index, a.weight * b.weight});
      taps = d == 0 ? along : products;
    }
    Tensor sum;
    for (const Tap& tap : taps) {
      const Tensor index = unsqueeze(to(tap.index, DType::i64), 1);
      const Tensor values =
          gather(planes, -1, expand(index, {input.size(0), input.size(1), index.size(2)}));
      const Tensor term = values * unsqueeze(tap.weight, 1);
      sum = sum.defined() ? sum + term : term;
    }
    Dims sizes = grid.sizes();
    sizes.pop_back();
    sizes.insert(sizes.begin() + 1, input.size(1));
    return reshape(sum, sizes);
  }

 private:
  struct Tap {
    Tensor index, weight;  // both floating; an index outside is moved inside and has weight 0
  };

  Tensor pad(Tensor x, double size) const {
    if (reflects_) {
      const double low = align_ ? 0 : -0.5, span = align_ ? size - 1 : size;
      if (span == 0) return x * 0;
      const Tensor far = abs(x - low), flips = floor(far / span), rest = far - flips * span;
      x = low + rest + remainder(flips, 2) * (span - 2 * rest);
    }
    return padded_ ? clamp(x, 0, size - 1) : x;
  }
  std::vector<Tap> taps_at(const Tensor& coordinate, double size) const {
    Tensor x = coordinate * ((align_ ? size - 1 : size) / 2) + (size - 1) / 2;
    if (!cubic_) x = pad(x, size);
    const Tensor first = (linear_ || cubic_ ? floor(x) : round(x)).detach(), t = x - first;
    if (linear_) return {tap(first, 1 - t, size), tap(first + 1, t, size)};
    if (!cubic_) return {tap(first, ones_of(t), size)};
    constexpr double a = -0.75;
    const auto near = [](const Tensor& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](const Tensor& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const Tensor weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    std::vector<Tap> taps;
    for (int k = 0; k < 4; ++k) taps.push_back(tap(pad(first + (k - 1), size), weights[k], size));
    return taps;
  }
  static Tensor ones_of(const Tensor& t) { return t.detach() * 0 + 1; }
  static Tap tap(const Tensor& index, const Tensor& weight, double size) {
    const Tensor clamped = clamp(index, 0, size - 1);
    const Tensor inside = masked_fill(clamped, isnan(clamped), 0);  // its weight is NaN, too
    return {inside, weight * eq(inside, index).to(weight.dtype())};
  }

  bool linear_, cubic_, padded_, reflects_, align_;
};

template <const Operator& op>
Gradients sampler_backward_derivative(const Saved<op>& saved, const Gradients& dys) {
  const bool again = grad_enabled();
  NoGrad taping(true);
  // an alias has its own place on the tape, because one argument may depend on another
  const auto variable = [&](const Tensor& t) {
    return t.requires_grad() ? call<ops::alias>(t) : t.detach().set_requires_grad();
  };
  const std::vector<Tensor> inputs = {variable(saved.template tensor<"grad_output">()),
                                      variable(saved.template tensor<"input">()),
                                      variable(saved.template tensor<"grid">())};
  const PlainSampler sample(saved.template integer<"interpolation_mode">(),
                            saved.template integer<"padding_mode">(),
                            saved.template boolean<"align_corners">());
  const std::vector<Tensor> first = grad({sample(inputs[1], inputs[2])}, {inputs[1], inputs[2]},
                                         {inputs[0]}, true, true, /*allow_unused=*/true);
  std::vector<Tensor> outputs, seeds;
  for (size_t k = 0; k < 2; ++k)
    if (first[k].defined() && first[k].requires_grad() && dys[k].defined())
      outputs.push_back(first[k]), seeds.push_back(dys[k]);
  if (outputs.empty()) return {{}, {}, {}};
  return grad(outputs, inputs, seeds, again, true, /*allow_unused=*/true);
}

}  // namespace

#define TAPER_UPSAMPLE_DERIVATIVES(op)                                                     \
  TAPER_DERIVATIVE(op) {                                                                   \
    return {call_upsample<ops::op##_backward>(aligns_corners(saved), scales_of(saved), dy, \
                                              saved.dims<"output_size">(),                 \
                                              saved.sizes<"self">())};                     \
  }                                                                                        \
  TAPER_DERIVATIVE(op##_backward) {                                                        \
    return {call_upsample<ops::op>(aligns_corners(saved), scales_of(saved), dy,            \
                                   saved.dims<"output_size">())};                          \
  }
TAPER_UPSAMPLE_DERIVATIVES(upsample_nearest1d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_nearest2d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_nearest3d)
TAPER_UPSAMPLE_DERIVATIVES(_upsample_nearest_exact1d)
TAPER_UPSAMPLE_DERIVATIVES(_upsample_nearest_exact2d)
TAPER_UPSAMPLE_DERIVATIVES(_upsample_nearest_exact3d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_linear1d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_bilinear2d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_trilinear3d)
TAPER_UPSAMPLE_DERIVATIVES(upsample_bicubic2d)
TAPER_UPSAMPLE_DERIVATIVES(_upsample_bilinear2d_aa)
TAPER_UPSAMPLE_DERIVATIVES(_upsample_bicubic2d_aa)

#define TAPER_GRID_SAMPLER_DERIVATIVES(op)                                                      \
  TAPER_DERIVATIVE(op, "input", "grid") {                                                       \
    const auto [input, grid] = call<ops::op##_backward>(                                        \
        dy, saved.tensor<"input">(), saved.tensor<"grid">(),                                    \
        saved.integer<"interpolation_mode">(), saved.integer<"padding_mode">(),                 \
        saved.boolean<"align_corners">(), Ints{saved.needs<"input">(), saved.needs<"grid">()}); \
    return {input, grid};                                                                       \
  }                                                                                             \
  TAPER_DERIVATIVE(op##_backward, "grad_output", "input", "grid") {                             \
    return sampler_backward_derivative(saved, dys);                                             \
  }
TAPER_GRID_SAMPLER_DERIVATIVES(grid_sampler_2d)
TAPER_GRID_SAMPLER_DERIVATIVES(grid_sampler_3d)

}  // namespace taper::eager::derivatives
