// Quantization as PyTorch's reference computes it (torch.ao.quantization.fx._decomposed, torchao):
// integers that stand for scale * (integer - zero_point). Rounding is half to even.
#include <cmath>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// Half precision is quantized after a cast to f32.
Tensor widened(const Tensor& x, Location here) {
  return is_half(x.dtype()) ? cast(x, DType::f32, here) : x;
}
/// One scale or zero point, whatever its sizes.
Tensor single(const Tensor& x, DType dtype, Location here) {
  return cast(reshape(x, {}, here), dtype, here);
}
/// 1 / scale in double, then rounded to f32: a division by the scale gives other ties.
Tensor inverse_of(const Tensor& scale, Location here) {
  return cast(reciprocal(single(scale, DType::f64, here), here), DType::f32, here);
}

/// The zero point is added after rounding.
Tensor rounded_then_moved(const Tensor& scaled, const Tensor& zero_point, Scalar low, Scalar high,
                          DType dtype, Location here) {
  return cast(clamp(add(round(scaled, here), zero_point, 1, here), low, high, here), dtype, here);
}
/// The zero point is added before rounding.
Tensor moved_then_rounded(const Tensor& scaled, const Tensor& zero_point, int64_t low, int64_t high,
                          DType dtype, Location here) {
  return cast(clamp(round(add(scaled, zero_point, 1, here), here), low, high, here), dtype, here);
}

Tensor quantized(const Tensor& input, double scale, int64_t zero_point, int64_t low, int64_t high,
                 DType dtype, Location here) {
  const Tensor scaled = round(mul(widened(input, here), Scalar(1 / scale), here), here);
  return cast(clamp(add(scaled, Scalar(zero_point), 1, here), low, high, here), dtype, here);
}
Tensor dequantized(const Tensor& input, double scale, int64_t zero_point, DType dtype,
                   Location here) {
  return mul(sub(cast(input, dtype, here), Scalar(zero_point), 1, here), Scalar(scale), here);
}
Tensor dequantized(const Tensor& input, const Tensor& scale, const Tensor& zero_point, DType dtype,
                   Location here) {
  return mul(sub(cast(input, dtype, here), single(zero_point, dtype, here), 1, here),
             single(scale, dtype, here), here);
}

template <const Operator& op>
DType out_dtype(const Arguments<op>& a) {
  return a.template has<"out_dtype">() ? a.template dtype<"out_dtype">() : DType::f32;
}

/// A vector of `rank` dimensions along `axis`.
Tensor along(const Tensor& vector, int64_t axis, int64_t rank, Location here) {
  Dims sizes(static_cast<size_t>(rank), Dim(1));
  sizes[static_cast<size_t>(axis)] = vector.numel();
  return reshape(vector, sizes, here);
}

/// x (…) as lines (count, group).
Tensor in_groups(const Tensor& x, int64_t group, std::string_view op, Location here) {
  if (group < 1 || x.rank() == 0 || !proves_equal(x.size(-1) % Dim(group), Dim(0)))
    throw EagerError(here, std::string(op) + ": group_size " + std::to_string(group) +
                               " does not divide the last dimension of " + to_string(x.sizes()));
  return reshape(x, {-1, group}, here);
}

/// The integers that an affine quantization uses.
template <const Operator& op>
std::pair<int64_t, int64_t> bounds_of(const Arguments<op>& a, DType dtype) {
  if (is_floating(dtype) || dtype == DType::boolean)
    throw EagerError(a.here(), std::string(schema<op>.name) +
                                   ": the dtype must be an integer, not " + taper::name_of(dtype));
  const bool is_signed = dtype != DType::u8;
  const int bits = static_cast<int>(size_bytes(dtype)) * 8;
  const int64_t least = is_signed ? -(int64_t{1} << (bits - 1)) : 0,
                most = is_signed ? -(least + 1) : 255;
  return {a.template has<"quant_min">() ? a.template scalar<"quant_min">().template to<int64_t>()
                                        : least,
          a.template has<"quant_max">() ? a.template scalar<"quant_max">().template to<int64_t>()
                                        : most};
}

/// Blocks as dimensions of their own: `split` are the sizes with each divided dimension as (blocks,
/// block), `kept` the same with 1 for the dimensions `reduced`, over which a block extends.
struct Blocks {
  Dims split, kept;
  Ints reduced;

  Blocks(const Tensor& x, const Dims& block_size, std::string_view op, Location here) {
    if (block_size.size() != static_cast<size_t>(x.rank()))
      throw EagerError(here, std::string(op) + ": block_size " + to_string(block_size) +
                                 " must have one entry for each dimension of " +
                                 to_string(x.sizes()));
    for (int d = 0; d < x.rank(); ++d) {
      const Dim size = x.size(d), block = block_size[static_cast<size_t>(d)];
      if (proves_less(block, 1) || proves_different(size % block, 0))
        throw EagerError(here, std::string(op) + ": block_size " + to_string(block_size) +
                                   " does not divide " + to_string(x.sizes()));
      if (proves_equal(block, 1)) {
        add(size, false);
      } else if (proves_equal(block, size)) {
        add(size, true);
      } else {
        add(size / block, false);
        add(block, true);
      }
    }
  }

 private:
  void add(Dim size, bool is_reduced) {
    if (is_reduced) reduced.push_back(static_cast<int64_t>(split.size()));
    split.push_back(size);
    kept.push_back(is_reduced ? Dim(1) : size);
  }
};

}  // namespace

// ---- per tensor

TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_tensor) {
  return {quantized(a.tensor<"input">(), a.real<"scale">(), a.integer<"zero_point">(),
                    a.integer<"quant_min">(), a.integer<"quant_max">(), a.dtype<"dtype">(),
                    a.here())};
}
TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_tensor_tensor) {
  const Location here = a.here();
  const Tensor scaled =
      mul(widened(a.tensor<"input">(), here), inverse_of(a.tensor<"scale">(), here), here);
  return {rounded_then_moved(scaled, single(a.tensor<"zero_point">(), DType::f32, here),
                             a.integer<"quant_min">(), a.integer<"quant_max">(), a.dtype<"dtype">(),
                             here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_tensor_tensor2) {
  const Location here = a.here();
  const Tensor scaled =
      mul(widened(a.tensor<"input">(), here), inverse_of(a.tensor<"scale">(), here), here);
  const auto number = [&](const Tensor& t) { return single(t, DType::f32, here); };
  const Tensor moved = add(round(scaled, here), number(a.tensor<"zero_point">()), 1, here);
  return {cast(minimum(maximum(moved, number(a.tensor<"quant_min">()), here),
                       number(a.tensor<"quant_max">()), here),
               a.dtype<"dtype">(), here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_tensor) {
  return {dequantized(a.tensor<"input">(), a.real<"scale">(), a.integer<"zero_point">(),
                      out_dtype(a), a.here())};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_tensor_tensor) {
  return {dequantized(a.tensor<"input">(), a.tensor<"scale">(), a.tensor<"zero_point">(),
                      out_dtype(a), a.here())};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_tensor_tensor2) {
  return {dequantized(a.tensor<"input">(), a.tensor<"scale">(), a.tensor<"zero_point">(),
                      out_dtype(a), a.here())};
}

// The range is widened to contain 0.
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_tensor) {
  const Location here = a.here();
  const Tensor x = widened(a.tensor<"input">(), here);
  const int64_t low = a.integer<"quant_min">(), high = a.integer<"quant_max">();
  const Tensor least = clamp_max(min(x, here), 0, here), most = clamp_min(max(x, here), 0, here);
  const Tensor scale =
      clamp_min(div(sub(most, least, 1, here), Scalar(static_cast<double>(high - low)), here),
                a.real<"eps">(), here);
  const Tensor zero = clamp(
      add(neg(round(div(least, scale, here), here), here), Scalar(low), 1, here), low, high, here);
  return {cast(reshape(scale, {1}, here), DType::f64, here),
          cast(reshape(zero, {1}, here), DType::i64, here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_symmetric_tensor) {
  const Location here = a.here();
  const Tensor x = widened(a.tensor<"input">(), here);
  const double half_range =
      static_cast<double>(a.integer<"quant_max">() - a.integer<"quant_min">()) / 2;
  const Tensor least = clamp_max(min(x, here), 0, here), most = clamp_min(max(x, here), 0, here);
  const Tensor scale = clamp_min(
      div(maximum(neg(least, here), most, here), Scalar(half_range), here), a.real<"eps">(), here);
  const int64_t zero = a.dtype<"dtype">() == DType::u8 ? 128 : 0;
  return {cast(reshape(scale, {1}, here), DType::f64, here),
          full({1}, Scalar(zero), DType::i64, here)};
}

// ---- per channel

TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_channel) {
  const Location here = a.here();
  const Tensor input = widened(a.tensor<"input">(), here);
  const int64_t axis =
      checked_dim(a.integer<"axis">(), input.rank(), "quantize_per_channel", input, here);
  const Tensor scaled =
      mul(input, reciprocal(along(a.tensor<"scales">(), axis, input.rank(), here), here), here);
  return {rounded_then_moved(scaled, along(a.tensor<"zero_points">(), axis, input.rank(), here),
                             a.integer<"quant_min">(), a.integer<"quant_max">(), a.dtype<"dtype">(),
                             here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_channel) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const DType dtype = out_dtype(a);
  const int64_t rank = input.rank(), axis = checked_dim(a.integer<"axis">(), rank,
                                                        "dequantize_per_channel", input, here);
  Tensor x = cast(input, dtype, here);
  if (a.has<"zero_points">())
    x = sub(x, cast(along(a.tensor<"zero_points">(), axis, rank, here), dtype, here), 1, here);
  return {cast(mul(x, along(a.tensor<"scales">(), axis, rank, here), here), dtype, here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_fake_quant_per_channel) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const int64_t rank = input.rank(), axis = checked_dim(a.integer<"axis">(), rank,
                                                        "fake_quant_per_channel", input, here);
  const Tensor scales = cast(along(a.tensor<"scales">(), axis, rank, here), DType::f32, here),
               zeros = cast(along(a.tensor<"zero_points">(), axis, rank, here), DType::f32, here);
  const Tensor q =
      rounded_then_moved(mul(widened(input, here), reciprocal(scales, here), here), zeros,
                         a.integer<"quant_min">(), a.integer<"quant_max">(), DType::f32, here);
  return {cast(mul(sub(q, zeros, 1, here), scales, here), input.dtype(), here)};
}

// ---- per token: one scale for each row

TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_per_token) {
  const Location here = a.here();
  const Tensor x = widened(a.tensor<"input">(), here);
  const Tensor largest = amax(abs(x, here), {-1}, true, here);
  const Tensor scales = div(clamp_min(largest, 1e-5, here), Scalar(127.0), here);
  return {scales, zeros_like(scales, {}, here)};
}
// The zero point comes from the end of the range where it errs less.
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_per_token_asymmetric) {
  const Location here = a.here();
  const Tensor x = widened(a.tensor<"input">(), here);
  constexpr double low = -128, high = 127;
  const Tensor least = clamp_max(amin(x, {-1}, true, here), 0, here),
               most = clamp_min(amax(x, {-1}, true, here), 0, here);
  const Tensor scale = clamp_min(div(sub(most, least, 1, here), Scalar(high - low), here),
                                 static_cast<double>(std::numeric_limits<float>::epsilon()), here);
  const Tensor scaled_least = div(least, scale, here), scaled_most = div(most, scale, here);
  const Tensor error = add(add(scaled_least, Scalar(low), 1, here),
                           add(scaled_most, Scalar(high), 1, here), 1, here);
  const Tensor zero =
      where(gt(error, Scalar(0), here), add(neg(scaled_least, here), Scalar(low), 1, here),
            add(neg(scaled_most, here), Scalar(high), 1, here), here);
  return {cast(scale, DType::f64, here),
          cast(round(clamp(zero, low, high, here), here), DType::i64, here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_token) {
  const Location here = a.here();
  const Tensor scaled = mul(a.tensor<"input">(), reciprocal(a.tensor<"scales">(), here), here);
  return {moved_then_rounded(scaled, a.tensor<"zero_points">(), a.integer<"quant_min">(),
                             a.integer<"quant_max">(), a.dtype<"dtype">(), here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_token) {
  const Location here = a.here();
  const Tensor moved = sub(a.tensor<"input">(), a.tensor<"zero_points">(), 1, here);
  return {cast(mul(moved, a.tensor<"scales">(), here), a.dtype<"output_dtype">(), here)};
}

// ---- per group: one scale for each `group_size` elements of a row

TAPER_DECOMPOSITION(quantized_decomposed_quantize_per_channel_group) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const Tensor lines =
      in_groups(input, a.integer<"group_size">(), "quantize_per_channel_group", here);
  const auto column = [&](const Tensor& t) { return reshape(t, {-1, 1}, here); };
  const Tensor scaled = mul(lines, reciprocal(column(a.tensor<"scales">()), here), here);
  return {reshape(
      moved_then_rounded(scaled, column(a.tensor<"zero_points">()), a.integer<"quant_min">(),
                         a.integer<"quant_max">(), a.dtype<"dtype">(), here),
      input.sizes(), here)};
}
TAPER_DECOMPOSITION(quantized_decomposed_dequantize_per_channel_group) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const auto column = [&](const Tensor& t) { return reshape(t, {-1, 1}, here); };
  Tensor x = in_groups(input, a.integer<"group_size">(), "dequantize_per_channel_group", here);
  if (a.has<"zero_points">()) x = sub(x, column(a.tensor<"zero_points">()), 1, here);
  x = mul(x, column(a.tensor<"scales">()), here);
  return {cast(reshape(x, input.sizes(), here), a.dtype<"output_dtype">(), here)};
}

// ---- torchao: one scale for each block of any shape

TAPER_DECOMPOSITION(torchao_choose_qparams_affine) {
  const Location here = a.here();
  constexpr std::string_view name = "choose_qparams_affine";
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), name, here);
  const auto [low, high] = bounds_of(a, a.dtype<"target_dtype">());
  const bool keep = a.boolean<"keepdim">();
  const Tensor x = reshape(input, blocks.split, here);
  const Tensor least = clamp_max(amin(x, blocks.reduced, keep, here), 0, here),
               most = clamp_min(amax(x, blocks.reduced, keep, here), 0, here);
  const double range = static_cast<double>(high - low);
  const double eps = a.has<"eps">()                ? a.real<"eps">()
                     : input.dtype() == DType::f16 ? 0x1p-14
                     : input.dtype() == DType::f64 ? std::numeric_limits<double>::min()
                                                   : std::numeric_limits<float>::min();
  const std::string_view mapping = a.text<"mapping_type">();
  Tensor scale, zero;
  if (mapping == "ASYMMETRIC") {
    scale = clamp_min(div(sub(most, least, 1, here), Scalar(range), here), eps, here);
    zero = clamp(add(neg(round(div(least, scale, here), here), here), Scalar(low), 1, here), low,
                 high, here);
  } else if (mapping == "SYMMETRIC" || mapping == "SYMMETRIC_NO_CLIPPING_ERR") {
    if (mapping == "SYMMETRIC")
      scale = div(maximum(neg(least, here), most, here), Scalar(range / 2), here);
    else
      scale = maximum(div(least, Scalar(static_cast<double>(low)), here),
                      div(most, Scalar(static_cast<double>(high)), here), here);
    scale = clamp_min(scale, eps, here);
    zero = full_like(scale, Scalar((high + low + 1) / 2), {}, here);
  } else {
    throw EagerError(here, std::string(name) + ": mapping_type " + std::string(mapping) +
                               " must be SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or ASYMMETRIC");
  }
  return {
      cast(scale, a.has<"scale_dtype">() ? a.dtype<"scale_dtype">() : input.dtype(), here),
      cast(zero, a.has<"zero_point_dtype">() ? a.dtype<"zero_point_dtype">() : DType::i32, here)};
}
TAPER_DECOMPOSITION(torchao_quantize_affine) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), "quantize_affine", here);
  const auto [low, high] = bounds_of(a, a.dtype<"output_dtype">());
  const Tensor scale = reshape(a.tensor<"scale">(), blocks.kept, here);
  Tensor q = round(mul(reshape(input, blocks.split, here), reciprocal(scale, here), here), here);
  if (a.has<"zero_point">())
    q = add(q, reshape(a.tensor<"zero_point">(), blocks.kept, here), 1, here);
  return {cast(reshape(clamp(q, low, high, here), input.sizes(), here), a.dtype<"output_dtype">(),
               here)};
}
TAPER_DECOMPOSITION(torchao_dequantize_affine) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), "dequantize_affine", here);
  const DType dtype = a.dtype<"output_dtype">();
  Tensor x = cast(reshape(input, blocks.split, here), dtype, here);
  if (a.has<"zero_point">())
    x = sub(x, cast(reshape(a.tensor<"zero_point">(), blocks.kept, here), dtype, here), 1, here);
  x = mul(x, cast(reshape(a.tensor<"scale">(), blocks.kept, here), dtype, here), here);
  return {reshape(x, input.sizes(), here)};
}

// ---- fake quantization: to integers and back. Without the gradient of quantization-aware
// training.

TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const double scale = a.real<"scale">();
  const int64_t zero = a.integer<"zero_point">();
  const Tensor q = quantized(self, scale, zero, a.integer<"quant_min">(), a.integer<"quant_max">(),
                             DType::f32, here);
  return {cast(dequantized(q, scale, zero, DType::f32, here), self.dtype(), here)};
}
TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine_tensor_qparams) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">(), scale = a.tensor<"scale">(),
               zero = a.tensor<"zero_point">();
  const Tensor q = rounded_then_moved(mul(widened(self, here), inverse_of(scale, here), here),
                                      single(zero, DType::f32, here), a.integer<"quant_min">(),
                                      a.integer<"quant_max">(), DType::f32, here);
  const Tensor result = cast(dequantized(q, scale, zero, DType::f32, here), self.dtype(), here);
  const Tensor enabled = single(a.tensor<"fake_quant_enabled">(), DType::boolean, here);
  return {where(enabled, result, self, here)};
}
TAPER_DECOMPOSITION(fake_quantize_per_channel_affine) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const int64_t rank = self.rank(),
                axis = checked_dim(a.integer<"axis">(), rank, "fake_quantize_per_channel_affine",
                                   self, here);
  const Tensor scale = cast(along(a.tensor<"scale">(), axis, rank, here), DType::f32, here),
               zero = cast(along(a.tensor<"zero_point">(), axis, rank, here), DType::f32, here);
  const Tensor q =
      rounded_then_moved(mul(widened(self, here), reciprocal(scale, here), here), zero,
                         a.integer<"quant_min">(), a.integer<"quant_max">(), DType::f32, here);
  return {cast(mul(sub(q, zero, 1, here), scale, here), self.dtype(), here)};
}

}  // namespace taper::eager::decompositions
