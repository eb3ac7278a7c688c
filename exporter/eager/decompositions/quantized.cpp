// Quantization as in PyTorch's reference (torch.ao.quantization.fx._decomposed): an integer stands
// for scale * (integer - zero_point). Halves round to even.
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
constexpr std::string_view name_of(const Arguments<op>&) {
  return schema<op>.name;
}

/// Clamps to the range of the call and casts to its dtype.
template <const Operator& op>
Tensor as_integers(const Arguments<op>& a, const Tensor& x) {
  const int64_t low = a.template integer<"quant_min">(), high = a.template integer<"quant_max">();
  const DType dtype = a.template dtype<"dtype">();
  check_range(low, high, dtype, name_of(a));
  return cast(clamp(x, low, high), dtype);
}
/// The same, but the zero point is added before rounding.
template <const Operator& op>
Tensor moved_then_rounded(const Arguments<op>& a, const Tensor& scaled, const Tensor& zero_point) {
  return as_integers(a, round(add(scaled, zero_point)));
}

/// The input of an operator that quantizes, checked.
template <const Operator& op>
Tensor to_quantize(const Arguments<op>& a) {
  check_quantizable(a.template tensor<"input">(), name_of(a));
  return a.template tensor<"input">();
}
/// The input of an operator that dequantizes, checked.
template <const Operator& op>
Tensor quantized(const Arguments<op>& a) {
  check_dtype(a.template tensor<"input">(), a.template dtype<"dtype">(), name_of(a));
  return a.template tensor<"input">();
}

template <const Operator& op>
Tensor single(const Arguments<op>& a, const Tensor& t, std::string_view what, DType dtype) {
  return eager::single(t, what, dtype, name_of(a));
}
/// 1 / scale in double, rounded to f32. A division by the scale would round other elements at ties.
template <const Operator& op>
Tensor inverse_scale(const Arguments<op>& a) {
  const Tensor scale = single(a, a.template tensor<"scale">(), "scale", DType::f64);
  return cast(reciprocal(scale), DType::f32);
}

template <const Operator& op>
DType out_dtype(const Arguments<op>& a) {
  return a.template has<"out_dtype">() ? a.template dtype<"out_dtype">() : DType::f32;
}
/// Dequantizes with a scale and a zero point that are tensors.
template <const Operator& op>
Tensor dequantized(const Arguments<op>& a) {
  const DType dtype = out_dtype(a);
  const Tensor zero = single(a, a.template tensor<"zero_point">(), "zero_point", dtype);
  return mul(sub(cast(quantized(a), dtype), zero),
             single(a, a.template tensor<"scale">(), "scale", dtype));
}

template <const Operator& op>
Tensor along_axis(const Arguments<op>& a, const Tensor& vector, std::string_view what) {
  return along(vector, what, a.template integer<"axis">(), a.template tensor<"input">(),
               name_of(a));
}

/// Throws unless scales and zero points have one element for each row of the input.
template <const Operator& op>
void check_tokens(const Arguments<op>& a) {
  const Tensor input = a.template tensor<"input">();
  Dim tokens = 1;
  for (int d = 0; d + 1 < input.rank(); ++d) tokens = tokens * input.size(d);
  for (const Tensor& t : {a.template tensor<"scales">(), a.template tensor<"zero_points">()})
    if (proves_different(t.numel(), tokens))
      throw EagerError(std::string(name_of(a)) + ": scales and zero_points " +
                       to_string(t.sizes()) + " must have one element for each of " +
                       tokens.to_string() + " rows of " + to_string(input.sizes()));
}

/// The elements of a group. If a group is longer than a row and each row has one scale, a group is
/// a row (single columns in GPTQ). Throws unless groups divide the rows.
template <const Operator& op>
Dim group_of(const Arguments<op>& a) {
  const Tensor x = a.template tensor<"input">(), scales = a.template tensor<"scales">();
  Dim group = a.template integer<"group_size">();
  const auto refuse = [&](const std::string& what) {
    throw EagerError(std::string(name_of(a)) + ": group_size " + group.to_string() + what);
  };
  if (proves_less(group, 2)) refuse(" must be at least 2");
  if (x.rank() > 0 && scales.rank() > 0 && proves_less(x.size(-1), group) &&
      proves_at_least(x.size(-1), 1) && proves_equal(scales.size(-1), 1))
    group = x.size(-1);
  if (x.rank() == 0 || !proves_equal(x.size(-1) % group, 0))
    refuse(" does not divide the last dimension of " + to_string(x.sizes()));
  return group;
}
/// The input as lines (count, group).
template <const Operator& op>
Tensor in_groups(const Arguments<op>& a) {
  const Tensor x = a.template tensor<"input">();
  const Dim group = group_of(a);
  return reshape(x, {x.numel() / group, group});
}
/// Whether a tensor has NaN. A trace does not know the elements.
bool has_nan(const Tensor& x) { return recorder() == nullptr && any(isnan(x)).scalar().to<bool>(); }
/// One number for each line, as a column.
template <const Operator& op>
Tensor column(const Arguments<op>& a, const Tensor& t, std::string_view what, const Tensor& lines) {
  if (proves_different(t.numel(), lines.size(0)))
    throw EagerError(std::string(name_of(a)) + ": " + std::string(what) + " " +
                     to_string(t.sizes()) + " must have one element for each of " +
                     lines.size(0).to_string() + " groups");
  return reshape(t, {-1, 1});
}

/// The range of the elements, extended to contain 0.
template <const Operator& op>
std::pair<Tensor, Tensor> range_of_elements(const Arguments<op>& a) {
  const int64_t low = a.template integer<"quant_min">(), high = a.template integer<"quant_max">();
  check_range(low, high, a.template dtype<"dtype">(), name_of(a));
  if (low > 0 || high < 0 || low == high)
    throw EagerError(std::string(name_of(a)) + ": [quant_min, quant_max] = [" +
                     std::to_string(low) + ", " + std::to_string(high) +
                     "] must contain 0 and another integer");
  const Tensor x = to_quantize(a);
  return with_zero(min(x), max(x));
}

template <const Operator& op>
constexpr bool has(std::string_view parameter) {
  return position_of(schema<op>, parameter) >= 0;
}
/// Whether the range is given as tensors.
template <const Operator& op>
constexpr bool takes_ends =
    std::string_view(op.text).find("Tensor quant_min") != std::string_view::npos;
/// Whether the kernel leaves the call to its decomposition: for results in half precision, for
/// scales that broadcast over several dimensions, and for wrong arguments, because the
/// decomposition says what is wrong.
template <const Operator& op>
bool in_parts(const Boxed* arguments) try {
  const Arguments<op> a(arguments);
  const Tensor input = a.template tensor<"input">();
  if constexpr (has<op>("out_dtype") || has<op>("output_dtype")) {
    quantized(a);
    if constexpr (has<op>("out_dtype")) {
      if (out_dtype(a) != DType::f32) return true;
    } else if (a.template dtype<"output_dtype">() != DType::f32) {
      return true;
    }
  } else {
    to_quantize(a);
    if constexpr (takes_ends<op>)
      integers_of(a.template dtype<"dtype">(), name_of(a));
    else
      check_range(a.template integer<"quant_min">(), a.template integer<"quant_max">(),
                  a.template dtype<"dtype">(), name_of(a));
  }
  if constexpr (has<op>("axis")) {
    channel_of(a.template tensor<"scales">(), "scales", a.template integer<"axis">(), input,
               name_of(a));
    if (a.template has<"zero_points">())
      channel_of(a.template tensor<"zero_points">(), "zero_points", a.template integer<"axis">(),
                 input, name_of(a));
  } else if constexpr (has<op>("group_size")) {
    const Dim groups = input.numel() / group_of(a);
    for (const Tensor& t : {a.template tensor<"scales">(), a.template tensor<"zero_points">()})
      if (t.defined() && (!proves_equal(t.numel(), groups) || t.rank() == max_rank)) return true;
    if constexpr (!has<op>("output_dtype")) return has_nan(input);
  } else if constexpr (has<op>("scales")) {
    check_tokens(a);
    for (const Tensor& t : {a.template tensor<"scales">(), a.template tensor<"zero_points">()})
      if (t.rank() != input.rank() || t.rank() == 0 || !proves_equal(t.size(-1), 1)) return true;
  } else if constexpr (std::string_view(op.text).find("Tensor scale") != std::string_view::npos) {
    for (const Tensor& t : {a.template tensor<"scale">(), a.template tensor<"zero_point">()})
      if (!proves_equal(t.numel(), 1)) return true;
    if constexpr (takes_ends<op>)
      for (const Tensor& t : {a.template tensor<"quant_min">(), a.template tensor<"quant_max">()})
        if (!proves_equal(t.numel(), 1)) return true;
  }
  return false;
} catch (const EagerError&) {
  return true;
}

}  // namespace

// ---- per tensor

TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_tensor, false,
                       in_parts<ops::quantized_decomposed_quantize_per_tensor>) {
  const Tensor steps = mul(widened(to_quantize(a)), Scalar(1 / a.real<"scale">()));
  const Tensor whole = round(steps);
  const int64_t zero = a.integer<"zero_point">();
  return {as_integers(a, zero == 0 ? whole : add(whole, Scalar(zero)))};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_tensor_tensor, false,
                       in_parts<ops::quantized_decomposed_quantize_per_tensor_tensor>) {
  const Tensor zero = single(a, a.tensor<"zero_point">(), "zero_point", DType::f32);
  return {as_integers(a, unclamped(to_quantize(a), inverse_scale(a), zero))};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_tensor_tensor2, false,
                       in_parts<ops::quantized_decomposed_quantize_per_tensor_tensor2>) {
  integers_of(a.dtype<"dtype">(), name_of(a));
  const auto number = [&](const Tensor& t, std::string_view what) {
    return single(a, t, what, DType::f32);
  };
  const Tensor moved =
      unclamped(to_quantize(a), inverse_scale(a), number(a.tensor<"zero_point">(), "zero_point"));
  const Tensor raised = maximum(moved, number(a.tensor<"quant_min">(), "quant_min"));
  return {cast(minimum(raised, number(a.tensor<"quant_max">(), "quant_max")), a.dtype<"dtype">())};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_tensor, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_tensor>) {
  const Tensor x = cast(quantized(a), out_dtype(a));
  const int64_t zero = a.integer<"zero_point">();
  return {mul(zero == 0 ? x : sub(x, Scalar(zero)), Scalar(a.real<"scale">()))};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_tensor_tensor, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_tensor_tensor>) {
  return {dequantized(a)};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_tensor_tensor2, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_tensor_tensor2>) {
  return {dequantized(a)};
}

// The division is still in half precision. The rest is computed in f32, and the zero point in
// integers.
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_tensor) {
  const auto [least, most] = range_of_elements(a);
  const int64_t low = a.integer<"quant_min">(), high = a.integer<"quant_max">();
  const Tensor step = div(sub(most, least), Scalar(static_cast<double>(high - low)));
  const Tensor scale = clamp_min(widened(step), a.real<"eps">());
  const Tensor steps = cast(round(div(widened(least), scale)), DType::i64);
  const Tensor zero = clamp(add(neg(steps), Scalar(low)), low, high);
  return {cast(reshape(scale, {1}), DType::f64), reshape(zero, {1})};
}
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_symmetric_tensor) {
  const auto [least, most] = range_of_elements(a);
  const double half_range =
      static_cast<double>(a.integer<"quant_max">() - a.integer<"quant_min">()) / 2;
  const Tensor step = div(maximum(neg(least), most), Scalar(half_range));
  const Tensor scale = clamp_min(widened(step), a.real<"eps">());
  const int64_t zero = a.dtype<"dtype">() == DType::u8 ? 128 : 0;
  return {cast(reshape(scale, {1}), DType::f64), full({1}, Scalar(zero), DType::i64)};
}

// ---- per channel

TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_channel, false,
                       in_parts<ops::quantized_decomposed_quantize_per_channel>) {
  const Tensor inverse = reciprocal(along_axis(a, a.tensor<"scales">(), "scales"));
  const Tensor zero = along_axis(a, a.tensor<"zero_points">(), "zero_points");
  return {as_integers(a, unclamped(to_quantize(a), inverse, zero))};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_channel, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_channel>) {
  const DType dtype = out_dtype(a);
  Tensor x = cast(quantized(a), dtype);
  if (a.has<"zero_points">())
    x = sub(x, cast(along_axis(a, a.tensor<"zero_points">(), "zero_points"), dtype));
  return {cast(mul(x, along_axis(a, a.tensor<"scales">(), "scales")), dtype)};
}

// ---- per token: one scale for each row

TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_per_token) {
  Tensor largest = amax(abs(to_quantize(a)), {-1}, true);
  if (largest.dtype() == DType::f16) largest = widened(largest);  // bf16 has the range of f32
  const Tensor scales = div(clamp_min(largest, 1e-5), Scalar(127.0));
  return {scales, zeros_like(scales)};
}
// The zero point is computed from the end of the range that gives the smaller error.
TAPER_DECOMPOSITION(quantized_decomposed_choose_qparams_per_token_asymmetric) {
  const Tensor x = to_quantize(a);
  constexpr double low = -128, high = 127;
  const auto [least, most] = with_zero(amin(x, {-1}, true), amax(x, {-1}, true));
  const Tensor scale = clamp_min(div(sub(most, least), Scalar(high - low)),
                                 static_cast<double>(std::numeric_limits<float>::epsilon()));
  const Tensor scaled_least = div(least, scale), scaled_most = div(most, scale);
  const Tensor error = add(add(scaled_least, Scalar(low)), add(scaled_most, Scalar(high)));
  const Tensor zero = where(gt(error, Scalar(0)), add(neg(scaled_least), Scalar(low)),
                            add(neg(scaled_most), Scalar(high)));
  return {cast(scale, DType::f64), cast(round(clamp(zero, low, high)), DType::i64)};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_token, false,
                       in_parts<ops::quantized_decomposed_quantize_per_token>) {
  check_tokens(a);
  const Tensor scaled = mul(to_quantize(a), reciprocal(a.tensor<"scales">()));
  return {moved_then_rounded(a, scaled, a.tensor<"zero_points">())};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_token, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_token>) {
  check_tokens(a);
  const Tensor moved = sub(quantized(a), a.tensor<"zero_points">());
  return {cast(mul(moved, a.tensor<"scales">()), a.dtype<"output_dtype">())};
}

// ---- per group: one scale for each `group_size` elements of a row

TAPER_DECOMPOSITION_AS(quantized_decomposed_quantize_per_channel_group, false,
                       in_parts<ops::quantized_decomposed_quantize_per_channel_group>) {
  const Tensor input = to_quantize(a), lines = in_groups(a);
  if (has_nan(input)) throw EagerError(std::string(name_of(a)) + ": input must not contain NaN");
  const Tensor inverse = reciprocal(column(a, a.tensor<"scales">(), "scales", lines));
  const Tensor zero = column(a, a.tensor<"zero_points">(), "zero_points", lines);
  return {reshape(moved_then_rounded(a, mul(lines, inverse), zero), input.sizes())};
}
TAPER_DECOMPOSITION_AS(quantized_decomposed_dequantize_per_channel_group, false,
                       in_parts<ops::quantized_decomposed_dequantize_per_channel_group>) {
  const Tensor input = quantized(a), lines = in_groups(a);
  Tensor x = lines;
  if (a.has<"zero_points">())
    x = sub(x, column(a, a.tensor<"zero_points">(), "zero_points", lines));
  x = mul(x, column(a, a.tensor<"scales">(), "scales", lines));
  return {cast(reshape(x, input.sizes()), a.dtype<"output_dtype">())};
}

// A plain cast. PyTorch has this operator so that its passes do not fuse the cast.
TAPER_DECOMPOSITION(quantized_decomposed_convert_element_type_no_fuse) {
  return {cast(a.tensor<"input">(), a.dtype<"dtype">())};
}

}  // namespace taper::eager::decompositions
