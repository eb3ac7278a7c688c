// Operators that ExecuTorch adds to quantized_decomposed, after its references
// (exir/passes/_quant_patterns_and_replacements.py): lookups in tables of small integers, products
// with integer weights, and sums of quantized tensors.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
[[noreturn]] void refuse(const Arguments<op>&, const std::string& what) {
  throw EagerError(std::string(schema<op>.name) + ": " + what);
}

// ---- tables

/// Unpacks integers of `bits` bits from the bytes of rows. Of two integers in a byte, the first is
/// the upper half. Of four, the first is in the lowest bits. They are stored without a sign.
template <int bits>
Tensor unpacked(const Tensor& rows) {
  if (bits == 8) return rows;
  std::vector<Tensor> parts;
  for (int i = 0; i < 8 / bits; ++i) {
    const int shift = bits == 4 ? 4 - 4 * i : bits * i;
    parts.push_back(bitwise_and(bitwise_right_shift(rows, Scalar(shift)), Scalar((1 << bits) - 1)));
  }
  const Tensor unsigned_ones = flatten(stack(parts, -1), -2);
  return sub(cast(unsigned_ones, DType::i8), Scalar(1 << (bits - 1)));
}

template <int bits, const Operator& op>
void check_table(const Arguments<op>& a) {
  const Tensor weight = a.template tensor<"weight">(),
               scales = a.template tensor<"weight_scales">();
  if (weight.rank() != 2 ||
      (weight.dtype() != DType::u8 && (bits != 8 || weight.dtype() != DType::i8)))
    refuse(a, std::string("weight must be a matrix of ") + (bits == 8 ? "u8 or i8" : "u8") +
                  ", got " + to_string(weight.sizes()) + " " + taper::name_of(weight.dtype()));
  if ((scales.rank() != 1 && scales.rank() != 2) || !is_floating(scales.dtype()) ||
      proves_different(scales.size(0), weight.size(0)))
    refuse(a, "weight_scales " + to_string(scales.sizes()) +
                  " must be floating, with one row for each of " + to_string(weight.sizes()));
  if (const Tensor zero = a.template tensor<"weight_zero_points">();
      zero.defined() && !same_sizes(zero.sizes(), scales.sizes()))
    refuse(a, "weight_zero_points " + to_string(zero.sizes()) + " must have the sizes of " +
                  "weight_scales, " + to_string(scales.sizes()));
  const int64_t low = a.template integer<"weight_quant_min">(),
                high = a.template integer<"weight_quant_max">();
  if (bits < 8 && (low != -(1 << (bits - 1)) || high != (1 << (bits - 1)) - 1))
    refuse(a, "the integers must lie in [" + std::to_string(-(1 << (bits - 1))) + ", " +
                  std::to_string((1 << (bits - 1)) - 1) + "], the call says [" +
                  std::to_string(low) + ", " + std::to_string(high) + "]");
}

/// Looks up rows of a table (words, features) with one scale for each group of features. Only these
/// rows are dequantized.
template <int bits, const Operator& op>
Results embedded(const Arguments<op>& a, DType dtype) {
  check_table<bits>(a);
  const Tensor indices = a.template tensor<"indices">(),
               scales = a.template tensor<"weight_scales">(),
               zeros = a.template tensor<"weight_zero_points">();
  const auto rows_of = [&](const Tensor& table) { return embedding(table, indices); };
  const Tensor rows = unpacked<bits>(rows_of(a.template tensor<"weight">()));
  const Dim features = rows.size(-1), groups = scales.rank() == 2 ? scales.size(1) : Dim(1);
  if (!proves_equal(features % groups, 0) || proves_less(features / groups, 2))
    refuse(a, groups.to_string() + " groups must divide the " + features.to_string() +
                  " features into pieces of 2 or more");
  const auto of_groups = [&](const Tensor& t) {
    return unsqueeze(rows_of(reshape(t, {t.size(0), groups})), -1);
  };
  Dims grouped = rows.sizes();
  grouped.back() = groups, grouped.push_back(features / groups);
  Tensor x = reshape(rows, grouped);
  if (zeros.defined()) x = sub(x, of_groups(zeros));
  x = mul(x, of_groups(scales));
  return {cast(reshape(x, rows.sizes()), dtype)};
}
template <const Operator& op>
DType dtype_of_scales(const Arguments<op>& a) {
  return a.template tensor<"weight_scales">().dtype();
}
template <const Operator& op>
DType dtype_of_call(const Arguments<op>& a) {
  return a.template has<"dtype">() ? a.template dtype<"dtype">() : dtype_of_scales(a);
}

// ---- products

/// An i8 weight, dequantized in f32. There is one scale for each row, or for each group of a row.
template <const Operator& op>
Tensor dequantized_weight(const Arguments<op>& a) {
  const Tensor weight = a.template tensor<"weight">(),
               scales = a.template tensor<"weight_scales">(),
               zero = a.template tensor<"weight_zero_points">();
  if (weight.rank() != 2 || weight.dtype() != DType::i8)
    refuse(a, "weight must be a matrix of i8, got " + to_string(weight.sizes()) + " " +
                  taper::name_of(weight.dtype()));
  const Dim groups = scales.rank() == 2 ? scales.size(1) : Dim(1);
  if ((scales.rank() != 1 && scales.rank() != 2) ||
      proves_different(scales.size(0), weight.size(0)) || !proves_equal(weight.size(1) % groups, 0))
    refuse(a, "weight_scales " + to_string(scales.sizes()) +
                  " must have one row for each of weight's, and groups that divide one: " +
                  to_string(weight.sizes()));
  if (zero.defined() && !same_sizes(zero.sizes(), scales.sizes()))
    refuse(a, "weight_zero_points " + to_string(zero.sizes()) +
                  " must have the sizes of weight_scales, " + to_string(scales.sizes()));
  const auto of_groups = [&](const Tensor& t) {
    return reshape(widened(t), {weight.size(0), groups, 1});
  };
  Tensor x = reshape(cast(weight, DType::f32), {weight.size(0), groups, weight.size(1) / groups});
  if (zero.defined()) x = sub(x, of_groups(zero));
  return reshape(mul(x, of_groups(scales)), weight.sizes());
}

// ---- sums

template <const Operator& op>
Tensor first_number(const Arguments<op>& a, const Tensor& integers, DType dtype) {
  return call<ops::quantized_decomposed_dequantize_per_tensor>(
      integers, a.template real<"a_scale">(), a.template integer<"a_zero_point">(),
      a.template integer<"a_quant_min">(), a.template integer<"a_quant_max">(), dtype,
      std::nullopt);
}
template <const Operator& op>
Tensor second_number(const Arguments<op>& a) {
  const Tensor b = a.template tensor<"b">();
  return call<ops::quantized_decomposed_dequantize_per_tensor>(
      b, a.template real<"b_scale">(), a.template integer<"b_zero_point">(),
      a.template integer<"b_quant_min">(), a.template integer<"b_quant_max">(), b.dtype(),
      std::nullopt);
}
template <const Operator& op>
Results quantized_sum(const Arguments<op>& a, const Tensor& sum, DType dtype) {
  return {call<ops::quantized_decomposed_quantize_per_tensor>(
      sum, a.template real<"out_scale">(), a.template integer<"out_zero_point">(),
      a.template integer<"out_quant_min">(), a.template integer<"out_quant_max">(), dtype)};
}

}  // namespace

TAPER_DECOMPOSITION(quantized_decomposed_embedding_byte) {
  return embedded<8>(a, dtype_of_scales(a));
}
TAPER_DECOMPOSITION(quantized_decomposed_embedding_byte_dtype) {
  return embedded<8>(a, dtype_of_call(a));
}
TAPER_DECOMPOSITION(quantized_decomposed_embedding_4bit) {
  return embedded<4>(a, dtype_of_scales(a));
}
TAPER_DECOMPOSITION(quantized_decomposed_embedding_4bit_dtype) {
  return embedded<4>(a, dtype_of_call(a));
}
TAPER_DECOMPOSITION(quantized_decomposed_embedding_2bit) {
  return embedded<2>(a, dtype_of_scales(a));
}
TAPER_DECOMPOSITION(quantized_decomposed_embedding_2bit_dtype) {
  return embedded<2>(a, dtype_of_call(a));
}

// Computed in f32. The result has the dtype of input, or the dtype that the call names.
TAPER_DECOMPOSITION(quantized_decomposed_mixed_mm) {
  const Tensor input = a.tensor<"input">();
  return {cast(mm(widened(input), dequantized_weight(a)), input.dtype())};
}
TAPER_DECOMPOSITION(quantized_decomposed_mixed_linear) {
  const Tensor input = a.tensor<"input">();
  return {cast(linear(widened(input), dequantized_weight(a)),
               a.has<"dtype">() ? a.dtype<"dtype">() : input.dtype())};
}

TAPER_DECOMPOSITION(quantized_decomposed_add) {
  const Tensor x = a.tensor<"a">();
  return quantized_sum(a, add(first_number(a, x, x.dtype()), second_number(a)), x.dtype());
}
TAPER_DECOMPOSITION(quantized_decomposed_add_relu) {
  const Tensor x = a.tensor<"a">();
  const Tensor sum = add(first_number(a, x, x.dtype()), second_number(a));
  return quantized_sum(a, relu(sum), x.dtype());
}
TAPER_DECOMPOSITION(quantized_decomposed_add_scalar) {
  const Tensor x = first_number(a, a.tensor<"qa">(), a.dtype<"a_dtype">());
  return quantized_sum(a, add(x, a.scalar<"b">()), a.dtype<"out_dtype">());
}

}  // namespace taper::eager::decompositions
