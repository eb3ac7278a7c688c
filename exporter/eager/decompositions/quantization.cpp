#include "taper/exporter/eager/decompositions/quantization.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager {
namespace {

[[noreturn]] void refuse(std::string_view op, const std::string& what) {
  throw EagerError(std::string(op) + ": " + what);
}

}  // namespace

Tensor single(const Tensor& t, std::string_view what, DType dtype, std::string_view op) {
  if (proves_different(t.numel(), 1))
    refuse(op, std::string(what) + " " + to_string(t.sizes()) + " must have one element");
  return cast(reshape(t, {}), dtype);
}

int64_t channel_of(const Tensor& vector, std::string_view what, int64_t axis, const Tensor& x,
                   std::string_view op) {
  if (x.rank() == 0) refuse(op, "a tensor of rank 0 has no channels");
  const int64_t dim = decompositions::checked_dim(axis, x.rank(), op, x);
  const Dim channels = x.size(dim);
  if (vector.rank() != 1 || proves_different(vector.size(0), channels))
    refuse(op, std::string(what) + " " + to_string(vector.sizes()) + " must have size (" +
                   channels.to_string() + "), that of " + to_string(x.sizes()) + " along axis " +
                   std::to_string(axis));
  return dim;
}

Tensor along(const Tensor& vector, std::string_view what, int64_t axis, const Tensor& x,
             std::string_view op) {
  const int64_t dim = channel_of(vector, what, axis, x, op);
  Dims sizes(static_cast<size_t>(x.rank()), Dim(1));
  sizes[static_cast<size_t>(dim)] = x.size(dim);
  return reshape(vector, sizes);
}

std::pair<int64_t, int64_t> integers_of(DType dtype, std::string_view op) {
  if (dtype != DType::u8 && dtype != DType::i8 && dtype != DType::i16 && dtype != DType::i32)
    refuse(op, std::string("the dtype must be u8, i8, i16 or i32, not ") + taper::name_of(dtype));
  const int bits = static_cast<int>(size_bytes(dtype)) * 8;
  const int64_t least = dtype == DType::u8 ? 0 : -(int64_t{1} << (bits - 1));
  return {least, least + (int64_t{1} << bits) - 1};
}
void check_range(int64_t low, int64_t high, DType dtype, std::string_view op) {
  const auto [least, most] = integers_of(dtype, op);
  if (low > high || low < least || high > most)
    refuse(op, "[quant_min, quant_max] = [" + std::to_string(low) + ", " + std::to_string(high) +
                   "] must be a range within [" + std::to_string(least) + ", " +
                   std::to_string(most) + "] of " + taper::name_of(dtype));
}

void check_dtype(const Tensor& t, DType dtype, std::string_view op) {
  integers_of(dtype, op);
  if (t.dtype() != dtype)
    refuse(op, std::string("input must be ") + taper::name_of(dtype) + ", as the call says, not " +
                   taper::name_of(t.dtype()));
}

void check_quantizable(const Tensor& t, std::string_view op) {
  if (t.dtype() != DType::f32 && !is_half(t.dtype()))
    refuse(op, std::string("input must be f32, f16 or bf16, not ") + taper::name_of(t.dtype()));
}

Grid<Scalar> grid_of(double scale, int64_t zero_point) {
  const float rounded = static_cast<float>(scale);
  return {Scalar(static_cast<double>(1 / rounded)), Scalar(static_cast<double>(rounded)),
          Scalar(zero_point)};
}
Grid<Tensor> grid_of(const Tensor& scale, const Tensor& zero_point, std::string_view op) {
  const Tensor rounded = single(scale, "scale", DType::f32, op);
  return {reciprocal(rounded), rounded, single(zero_point, "zero_point", DType::f32, op)};
}
Grid<Tensor> grid_along(int64_t axis, const Tensor& x, const Tensor& scale,
                        const Tensor& zero_point, std::string_view op) {
  const Tensor rounded = cast(along(scale, "scale", axis, x, op), DType::f32);
  return {reciprocal(rounded), rounded,
          cast(along(zero_point, "zero_point", axis, x, op), DType::f32)};
}

}  // namespace taper::eager
