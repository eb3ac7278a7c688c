// Quantization as in torchao's reference (torchao.quantization.quant_primitives): one scale for
// each block, which may have any shape.
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/eager.h"

namespace taper::eager::decompositions {
namespace {

/// The integers of an affine quantization: those that the call names, or all of the dtype.
template <const Operator& op>
std::pair<int64_t, int64_t> range_of(const Arguments<op>& a, DType dtype) {
  const auto [least, most] = integers_of(dtype, schema<op>.name);
  const int64_t low = a.template has<"quant_min">()
                          ? a.template scalar<"quant_min">().template to<int64_t>()
                          : least;
  const int64_t high = a.template has<"quant_max">()
                           ? a.template scalar<"quant_max">().template to<int64_t>()
                           : most;
  check_range(low, high, dtype, schema<op>.name);
  return {low, high};
}

/// round, with the gradient of the identity.
Tensor rounded(const Tensor& x) {
  return apply(
      {"round", [](const std::vector<Tensor>& in) -> std::vector<Tensor> { return {round(in[0])}; },
       [](const std::vector<Tensor>&, const std::vector<Tensor>&, const Gradients& dy) {
         return dy;
       }},
      {x})[0];
}
/// The larger of two, or b if a is NaN. a is 0 / 0 if the range has no negative integers.
Tensor larger(const Tensor& a, const Tensor& b) { return where(gt(a, b), a, b); }

/// Blocks as dimensions of their own. `split` has the sizes, with each divided dimension as
/// (blocks, block). `reduced` are the dimensions of `split` within a block. `kept` is `split` with
/// 1 for these. `counts` are the numbers of blocks along each dimension of the tensor.
struct Blocks {
  Dims split, kept, counts;
  Ints reduced;

  Blocks(const Tensor& x, const Dims& block_size, std::string_view op) {
    if (block_size.size() != static_cast<size_t>(x.rank()))
      throw EagerError(std::string(op) + ": block_size " + to_string(block_size) +
                       " must have one entry for each dimension of " + to_string(x.sizes()));
    for (int d = 0; d < x.rank(); ++d) {
      const Dim size = x.size(d), block = block_size[static_cast<size_t>(d)];
      if (proves_less(block, 1) || proves_different(size % block, 0))
        throw EagerError(std::string(op) + ": block_size " + to_string(block_size) +
                         " does not divide " + to_string(x.sizes()));
      counts.push_back(proves_equal(block, size) ? Dim(1) : size / block);
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

TAPER_DECOMPOSITION(torchao_choose_qparams_affine) {
  constexpr std::string_view name = "choose_qparams_affine";
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), name);
  const auto [low, high] = range_of(a, a.dtype<"target_dtype">());
  const Tensor x = reshape(input, blocks.split);
  const auto [least, most] = with_zero(amin(x, blocks.reduced), amax(x, blocks.reduced));
  const double range = static_cast<double>(high - low);
  const double eps = a.has<"eps">()                ? a.real<"eps">()
                     : input.dtype() == DType::f16 ? 0x1p-14
                     : input.dtype() == DType::f64 ? std::numeric_limits<double>::min()
                                                   : std::numeric_limits<float>::min();
  const std::string_view mapping = a.text<"mapping_type">();
  Tensor scale, zero;
  if (mapping == "ASYMMETRIC") {
    scale = clamp_min(div(sub(most, least), Scalar(range)), eps);
    zero = clamp(add(neg(rounded(div(least, scale))), Scalar(low)), low, high);
  } else if (mapping == "SYMMETRIC" || mapping == "SYMMETRIC_NO_CLIPPING_ERR") {
    if (mapping == "SYMMETRIC")
      scale = div(maximum(neg(least), most), Scalar(range / 2));
    else
      scale = larger(div(least, Scalar(static_cast<double>(low))),
                     div(most, Scalar(static_cast<double>(high))));
    scale = clamp_min(scale, eps);
    zero = full_like(scale, Scalar((high + low + 1) / 2));
  } else {
    throw EagerError(std::string(name) + ": mapping_type " + std::string(mapping) +
                     " must be SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or ASYMMETRIC");
  }
  if (a.boolean<"keepdim">())
    scale = reshape(scale, blocks.counts), zero = reshape(zero, blocks.counts);
  return {cast(scale, a.has<"scale_dtype">() ? a.dtype<"scale_dtype">() : input.dtype()),
          cast(zero, a.has<"zero_point_dtype">() ? a.dtype<"zero_point_dtype">() : DType::i32)};
}
TAPER_DECOMPOSITION(torchao_quantize_affine) {
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), "quantize_affine");
  const auto [low, high] = range_of(a, a.dtype<"output_dtype">());
  const Tensor scale = reshape(a.tensor<"scale">(), blocks.kept);
  Tensor q = round(mul(reshape(input, blocks.split), reciprocal(scale)));
  if (a.has<"zero_point">()) q = add(q, reshape(a.tensor<"zero_point">(), blocks.kept));
  return {cast(reshape(clamp(q, low, high), input.sizes()), a.dtype<"output_dtype">())};
}
TAPER_DECOMPOSITION(torchao_dequantize_affine) {
  const Tensor input = a.tensor<"input">();
  const Blocks blocks(input, a.dims<"block_size">(), "dequantize_affine");
  const DType dtype = a.dtype<"output_dtype">();
  check_dtype(input, a.dtype<"input_dtype">(), schema<ops::torchao_dequantize_affine>.name);
  Tensor x = cast(reshape(input, blocks.split), dtype);
  if (a.has<"zero_point">())
    x = sub(x, cast(reshape(a.tensor<"zero_point">(), blocks.kept), dtype));
  x = mul(x, reshape(a.tensor<"scale">(), blocks.kept));
  return {cast(reshape(x, input.sizes()), dtype)};
}

// ---- products of integers

TAPER_DECOMPOSITION(torchao_int_matmul) {
  return {call<ops::_int_mm>(a.tensor<"a">(), a.tensor<"b">())};
}
// There is one scale for each row of the product, or one for all.
TAPER_DECOMPOSITION(torchao_int_scaled_matmul) {
  const Tensor x = a.tensor<"a">(), scales = a.tensor<"scales1">();
  if (scales.rank() != 2 ||
      (!proves_equal(scales.numel(), 1) &&
       (proves_different(scales.size(0), x.size(0)) || proves_different(scales.size(1), 1))))
    throw EagerError("int_scaled_matmul: scales1 " + to_string(scales.sizes()) +
                     " must be (1, 1) or have one element for each row of a " +
                     to_string(x.sizes()));
  return {mul(call<ops::_int_mm>(x, a.tensor<"b">()), scales)};
}

}  // namespace taper::eager::decompositions
