// Derivatives of torchvision's operators for detectors. Boxes have no gradient, as in torchvision.
#include "taper/exporter/eager/ops/detection.h"

#include <limits>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::derivatives {
namespace {

/// 0, 1, …, count - 1.
Tensor steps(Dim count, DType dtype) { return sub(cumsum(ones({count}, dtype), 0), Scalar(1)); }
Tensor column(const Tensor& rois, int64_t i) { return select(rois, 1, i); }
/// The image of each box.
Tensor images_of(const Tensor& rois) { return to(column(rois, 0), DType::i64); }

/// How a side of each box is cut into bins and samples, as the kernel does.
struct Sides {
  Tensor start, end;  ///< (count)
  Dim bins, size;     ///< of the box, and of the image
  int64_t sampling_ratio;
};

/// The weights (count, bins, size) with which bins read the elements of an image. Bilinear samples
/// and their mean are weighted sums, for rows and columns separately.
Tensor bin_weights(const Sides& s) {
  const DType dtype = s.start.dtype();
  const Tensor bin = div(sub(s.end, s.start), dim_as_tensor(s.bins, dtype));
  // A box that is turned over has no samples, nor has one with a NaN.
  Tensor samples = s.sampling_ratio > 0 ? full_like(bin, Scalar(s.sampling_ratio))
                                        : where(gt(bin, 0), ceil(bin), Scalar(0));
  const Tensor none = zeros({Dim(1)}, dtype);
  const Dim most = s.sampling_ratio > 0 ? Dim(s.sampling_ratio)
                                        : element_as_dim(to(max(cat({samples, none})), DType::i64),
                                                         0, std::numeric_limits<int64_t>::max());
  samples = reshape(samples, {Dim(-1), Dim(1), Dim(1)});
  const Tensor i = steps(most, dtype), size = dim_as_tensor(s.size, dtype);
  const auto each = [](const Tensor& t) { return reshape(t, {Dim(-1), Dim(1), Dim(1)}); };
  const Tensor at = each(s.start) + unsqueeze(steps(s.bins, dtype), 1) * each(bin) +
                    (i + 0.5) * each(bin) / samples;  // (count, bins, most)
  const Tensor counts = logical_and(logical_and(ge(at, -1), le(at, size)), lt(i, samples));
  const Tensor inside = unsqueeze(minimum(clamp_min(at, Scalar(0)), size - 1), 3);
  const Tensor weights = clamp_min(1 - abs(inside - steps(s.size, dtype)), Scalar(0));
  const Tensor counted = where(unsqueeze(counts, 3), weights, Scalar(0));
  return sum(counted, Ints{2}) / clamp_min(samples, Scalar(1));
}

struct Weights {
  Tensor down, right;
};
/// The weights of all bins of a call, for rows and for columns.
Weights weights_of(const Tensor& rois, double scale, double shift, bool at_least_one, Dim bins_down,
                   Dim bins_right, const Dims& input, int64_t sampling_ratio) {
  const auto side = [&](int64_t first, Dim bins, Dim size) {
    const Tensor start = column(rois, first) * scale - shift;
    Tensor end = column(rois, first + 2) * scale - shift;
    if (at_least_one) end = start + clamp_min(end - start, Scalar(1));
    return bin_weights({start, end, bins, size, sampling_ratio});
  };
  return {side(2, bins_down, input[2]), side(1, bins_right, input[3])};
}

}  // namespace

TAPER_DERIVATIVE(torchvision_roi_align, "rois") {
  const Tensor rois = saved.tensor<"rois">();
  const Dims input = saved.sizes<"input">();
  const bool aligned = saved.boolean<"aligned">();
  const Weights w = weights_of(rois, saved.real<"spatial_scale">(), aligned ? 0.5 : 0, !aligned,
                               saved.dim<"pooled_height">(), saved.dim<"pooled_width">(), input,
                               saved.integer<"sampling_ratio">());
  // The rows of all boxes are joined by one product, so that no box needs a whole image.
  const Dim count = rois.size(0), rows = count * dy.size(2);
  const Tensor of_rows = matmul(dy, unsqueeze(w.right, 1));  // (count, channels, bins, width)
  const Tensor joined = reshape(permute(of_rows, {0, 2, 1, 3}), {rows, input[1] * input[3]});
  const Tensor is_there = eq(unsqueeze(images_of(rois), 1), steps(input[0], DType::i64));
  const Tensor chosen = reshape(is_there.to(dy.dtype()), {count, Dim(1), input[0], Dim(1)});
  const Tensor down = reshape(chosen * unsqueeze(w.down, 2), {rows, input[0] * input[2]});
  const Tensor sums = reshape(mm(t(down), joined), {input[0], input[2], input[1], input[3]});
  return {contiguous(permute(sums, {0, 2, 1, 3})), Tensor()};
}

namespace {

/// The gradient of input if channel (c, i, j) is read by bin (i, j) alone.
Tensor spread(const Weights& w, const Tensor& rois, const Tensor& dy, const Dims& input) {
  const Dim one = 1, count = rois.size(0), down = dy.size(2), right = dy.size(3);
  const Tensor rows = reshape(w.down, {count, one, down, one, input[2], one});
  const Tensor columns = reshape(w.right, {count, one, one, right, one, input[3]});
  const Tensor d = reshape(dy, {count, dy.size(1), down, right, one, one});
  const Tensor of_boxes = reshape(d * rows * columns, {count, input[1], input[2], input[3]});
  return index_add(zeros(input, dy.dtype()), 0, images_of(rois), of_boxes);
}

/// Halves are rounded away from zero.
Tensor rounded(const Tensor& x) {
  const Tensor whole = trunc(x);
  return where(ge(abs(x - whole), 0.5), whole + sign(x), whole);
}

/// The weights (count, bins, size) of means over the whole elements of bins.
Tensor mean_weights(const Tensor& from, const Tensor& to, Dim bins, Dim size) {
  const DType dtype = from.dtype();
  const Tensor start = reshape(rounded(from), {Dim(-1), Dim(1)});
  const Tensor length = clamp_min(reshape(rounded(to), {Dim(-1), Dim(1)}) - start, Scalar(1));
  const Tensor bin = length / dim_as_tensor(bins, dtype), b = steps(bins, dtype);
  const Tensor last = dim_as_tensor(size, dtype) - 1;
  const auto inside = [&](const Tensor& x) {
    return unsqueeze(clamp_min(minimum(x, last), Scalar(0)), 2);
  };
  const Tensor begin = inside(floor(b * bin + start)), end = inside(ceil((b + 1) * bin + start));
  const Tensor at = steps(size, dtype);
  const Tensor counts = logical_and(ge(at, begin), lt(at, end));
  return counts.to(dtype) / clamp_min(end - begin, Scalar(1));
}

}  // namespace

TAPER_DERIVATIVE(torchvision_ps_roi_align, "rois", "only result0") {
  const Tensor rois = saved.tensor<"rois">();
  const Dims input = saved.sizes<"input">();
  const Weights w =
      weights_of(rois, saved.real<"spatial_scale">(), 0.5, false, saved.dim<"pooled_height">(),
                 saved.dim<"pooled_width">(), input, saved.integer<"sampling_ratio">());
  return {spread(w, rois, dy, input), Tensor()};
}

TAPER_DERIVATIVE(torchvision_ps_roi_pool, "rois", "only result0") {
  const Tensor rois = saved.tensor<"rois">();
  const Dims input = saved.sizes<"input">();
  const double scale = saved.real<"spatial_scale">();
  const auto side = [&](int64_t first, Dim bins, Dim size) {
    return mean_weights(column(rois, first) * scale, column(rois, first + 2) * scale, bins, size);
  };
  const Weights w = {side(2, saved.dim<"pooled_height">(), input[2]),
                     side(1, saved.dim<"pooled_width">(), input[3])};
  return {spread(w, rois, dy, input), Tensor()};
}

// Each gradient goes to the element that was the largest.
TAPER_DERIVATIVE(torchvision_roi_pool, "rois", "result1", "only result0") {
  const Tensor rois = saved.tensor<"rois">(), place = to(saved.result(1), DType::i64);
  const Dims input = saved.sizes<"input">();
  const Dim plane = input[2] * input[3];
  const Tensor channels = images_of(rois) * dim_as_tensor(input[1], DType::i64);
  const Tensor channel = unsqueeze(channels, 1) + steps(input[1], DType::i64);
  const Tensor first =
      reshape(channel * dim_as_tensor(plane, DType::i64), {rois.size(0), input[1], Dim(1), Dim(1)});
  const Tensor is_there = ge(place, 0);
  const Tensor at = where(is_there, first + place, Scalar(0));
  const Tensor line = index_add(zeros({input[0] * input[1] * plane}, dy.dtype()), 0, flatten(at),
                                flatten(keep(dy, is_there)));
  return {reshape(line, input), Tensor()};
}

}  // namespace taper::eager::derivatives
