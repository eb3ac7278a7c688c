// Fake quantization whose range follows the data (torch.ao's FusedMovingAvgObsFakeQuantize). First,
// running extremes move towards those of the input. Then scale and zero point are chosen from them,
// and the input is rounded to their grid. Tensors switch the first step, and the other two, on and
// off.
#include <cstdint>
#include <cstdlib>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

constexpr std::string_view name = "fused_moving_avg_obs_fake_quant";

struct Range {
  Tensor least, most;
};
struct Parameters {
  Tensor scale, zero_point;  // both f32
};

Tensor is_mixed(const Range& range) {
  return logical_and(lt(range.least, Scalar(0)), gt(range.most, Scalar(0)));
}

/// A range with both signs, made symmetric on the integers low, …, high.
Range symmetric_to(const Range& range, int64_t low, int64_t high) {
  const double up = static_cast<double>((high - low) / 2), down = -(up + 1);
  const Tensor scale =
      maximum(abs(div(range.least, Scalar(down))), abs(div(range.most, Scalar(up))));
  const Tensor mixed = is_mixed(range);
  return {where(mixed, mul(scale, Scalar(down)), range.least),
          where(mixed, mul(scale, Scalar(up)), range.most)};
}

/// FBGEMM's choice of parameters, computed in double. A scale that is nearly 0 becomes 0.1. A small
/// scale is raised so that f16 holds it as a normal number; the zero point is not changed then.
Parameters choose(Range range, int64_t low, int64_t high, bool symmetric) {
  if (symmetric) range = symmetric_to(range, low, high);
  std::tie(range.least, range.most) = with_zero(range.least, range.most);
  const Tensor least = cast(range.least, DType::f64), most = cast(range.most, DType::f64);
  Tensor scale = div(sub(most, least), Scalar(static_cast<double>(high - low)));
  const Tensor rounded = cast(scale, DType::f32);
  scale = where(isfinite(reciprocal(rounded)), scale, Scalar(0.1));

  // computed from the end of the range with the smaller terms
  const auto from = [&](const Tensor& end, int64_t integer) {
    return rsub(div(end, scale), Scalar(static_cast<double>(integer)));
  };
  const auto error = [&](const Tensor& end, int64_t integer) {
    return rsub(abs(div(end, scale)), Scalar(static_cast<double>(std::abs(integer))));
  };
  Tensor zero = where(lt(error(least, low), error(most, high)), from(least, low), from(most, high));
  if (symmetric) zero = where(is_mixed(range), Scalar(static_cast<double>(low + high) / 2), zero);
  constexpr float smallest = 6.1e-5f;
  return {cast(clamp_min(scale, Scalar(double{smallest})), DType::f32),
          cast(round(clamp(zero, low, high)), DType::f32)};
}

Tensor is_on(const Tensor& flag, std::string_view what) {
  return ne(single(flag, what, DType::i64, name), Scalar(0));
}

/// The extremes of x, or of its rows, in the shape of the running ones.
Range range_of(const Tensor& x, bool of_rows, const Range& running) {
  Ints reduced;
  for (int64_t d = of_rows ? 1 : 0; d < x.rank(); ++d) reduced.push_back(d);
  const Dim count = of_rows ? x.size(0) : Dim(1);
  const Dims sizes = running.least.sizes();
  if (proves_different(running.least.numel(), count))
    throw EagerError(std::string(name) + ": running_min and running_max " + to_string(sizes) +
                     " must have " + count.to_string() +
                     " elements: run the model once before it is exported");
  const auto sized = [&](const Tensor& t) { return reshape(t, sizes); };
  if (x.rank() == 0) return {sized(x), sized(x)};
  for (const Dim& d : x.sizes())  // there is nothing to observe
    if (proves_equal(d, Dim(0))) return running;
  return {sized(amin(x, reduced)), sized(amax(x, reduced))};
}

}  // namespace

TAPER_DECOMPOSITION(_fused_moving_avg_obs_fq_helper) {
  const Tensor self = a.tensor<"self">(), x = self.detach();
  Tensor running_min = a.tensor<"running_min">(), running_max = a.tensor<"running_max">(),
         scale = a.tensor<"scale">(), zero_point = a.tensor<"zero_point">();
  const bool of_rows = a.boolean<"per_row_fake_quant">();
  const int64_t low = a.integer<"quant_min">(), high = a.integer<"quant_max">();
  if (self.dtype() != DType::f32 || low >= high || low < INT32_MIN || high > INT32_MAX)
    throw EagerError(std::string(name) +
                     ": needs an f32 input and quant_min < quant_max, of 32 bits");
  if (of_rows && (a.integer<"ch_axis">() != 0 || self.rank() < 2))
    throw EagerError(std::string(name) +
                     ": scales of channels are those of dimension 0 of an input with 2 "
                     "or more");
  const Tensor observes = is_on(a.tensor<"observer_on">(), "observer_on"),
               snaps = is_on(a.tensor<"fake_quant_on">(), "fake_quant_on");

  const Range now = range_of(x, of_rows, {running_min, running_max});
  const auto moved = [&](const Tensor& running, const Tensor& to) {
    const Tensor step = mul(sub(to, running), Scalar(a.real<"averaging_const">()));
    const Tensor next = where(isinf(running), to, add(running, step));
    return where(observes, next, running);
  };
  const Range range{moved(running_min, now.least), moved(running_max, now.most)};
  const Parameters chosen = choose(range, low, high, a.boolean<"symmetric_quant">());
  const auto updated = [&](const Tensor& old, const Tensor& t) {
    return where(snaps, cast(reshape(t, old.sizes()), old.dtype()), old);
  };
  const Parameters grid{updated(scale, chosen.scale), updated(zero_point, chosen.zero_point)};
  {
    NoGrad guard;
    running_min.copy_(range.least), running_max.copy_(range.most);
    scale.copy_(grid.scale), zero_point.copy_(grid.zero_point);
  }
  if (!of_rows) {
    const auto [out, mask] = call<ops::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams>(
        self, grid.scale, grid.zero_point, a.tensor<"fake_quant_on">(), low, high);
    return {out, mask};
  }
  const auto [out, mask] = call<ops::fake_quantize_per_channel_affine_cachemask>(
      self, grid.scale, grid.zero_point, int64_t{0}, low, high);
  return {where(snaps, out, self), logical_or(mask, logical_not(snaps))};
}
TAPER_DECOMPOSITION(fused_moving_avg_obs_fake_quant) {
  return {std::get<0>(call<ops::_fused_moving_avg_obs_fq_helper>(
      a.tensor<"self">(), a.tensor<"observer_on">(), a.tensor<"fake_quant_on">(),
      a.tensor<"running_min">(), a.tensor<"running_max">(), a.tensor<"scale">(),
      a.tensor<"zero_point">(), a.real<"averaging_const">(), a.integer<"quant_min">(),
      a.integer<"quant_max">(), a.integer<"ch_axis">(), a.boolean<"per_row_fake_quant">(),
      a.boolean<"symmetric_quant">()))};
}

}  // namespace taper::eager::decompositions
