// Quantization to integers and back: an integer q stands for scale * (q - zero_point). Results are
// those of PyTorch's reference (torch.ao.quantization.fx._decomposed). Each operation rounds;
// halves go to the even integer.
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/quantized.h"

namespace taper {

namespace portable {
struct UptoF32 {};     ///< f32, f16, bf16: the input of quantization, computed in f32 or f64
struct AnyFloat {};    ///< those and f64
struct AnyInteger {};  ///< the integers that a zero point may be
struct Wide {};        ///< those that hold a difference of narrow ones
}  // namespace portable
template <>
struct dtypes_of<portable::UptoF32> {
  static constexpr DTypeSet set = one(DType::f32) | one(DType::f16) | one(DType::bf16);
};
template <>
struct dtypes_of<portable::AnyFloat> {
  static constexpr DTypeSet set = dtypes_of<portable::UptoF32>::set | one(DType::f64);
};
template <>
struct dtypes_of<portable::AnyInteger> {
  static constexpr DTypeSet set = dtypes_of<portable::NarrowNumber>::set | one(DType::i64);
};
template <>
struct dtypes_of<portable::Wide> {
  static constexpr DTypeSet set = one(DType::i32) | one(DType::i64);
};

namespace portable {
namespace {

template <class T>
constexpr DType dtype_of = dtypes_of<T>::dtype;

/// The range of a call's integers.
template <class T>
struct Range {
  T low, high;
  Range(int64_t quant_min, int64_t quant_max)
      : low(static_cast<T>(quant_min)), high(static_cast<T>(quant_max)) {}
  /// NaN becomes `low`, on every machine.
  T clamp(T q) const {
    const T raised = q > low ? q : low;
    return raised < high ? raised : high;
  }
};

// ---- one scale

struct Quantize {
  using Result = double;  ///< then converted to any integer
  float inverse, zero;
  Range<float> range;
  double operator()(float x) const { return range.clamp(Round<float>()(x * inverse) + zero); }
};
struct Dequantize {
  using Result = float;
  float scale, zero;
  float operator()(int64_t q) const { return (static_cast<float>(q) - zero) * scale; }
};

template <class E>
Error prepare_one(Pointwise<1>& plan, AnyView<const E> input) {
  plan = {input.numel(), {Walk::of(input.shape())}};
  return Error::ok;
}
/// Loads the elements as Q, the argument type of F.
template <class Q, class F>
Error run_one(Context& context, const Pointwise<1>& plan, const F& f, const TensorRef& input,
              const TensorRef& out) {
  const Source sources[] = {Source(input, plan.walks[0], dtype_of<Q>)};
  using R = typename F::Result;
  run_pointwise(context, plan.count, sources, out, dtype_of<R>, &internal::block<F, R, Q>, &f);
  return Error::ok;
}

/// The only element of a tensor, as a T.
template <class T, class E>
T only_element(AnyView<const E> tensor) {
  T value;
  loader(tensor.dtype(), dtype_of<T>)(tensor.ref->data, 1, 1, &value);
  return value;
}

using Input = AnyView<const UptoF32>;
using Integers = AnyView<const NarrowNumber>;
using Scale = AnyView<const AnyFloat>;
using Zeros = AnyView<const AnyInteger>;

Error prepare_numbers(Context&, Pointwise<1>& plan, Input input, double, int64_t, int64_t, int64_t,
                      DType, View<NarrowNumber>) {
  return prepare_one(plan, input);
}
Error quantize_numbers(Context& context, const Pointwise<1>& plan, Input input, double scale,
                       int64_t zero_point, int64_t quant_min, int64_t quant_max, DType,
                       View<NarrowNumber> out) {
  const Quantize f{
      static_cast<float>(1 / scale), static_cast<float>(zero_point), {quant_min, quant_max}};
  return run_one<float>(context, plan, f, *input.ref, *out.ref);
}
Error prepare_tensors(Context&, Pointwise<1>& plan, Input input, Scale, Zeros, int64_t, int64_t,
                      DType, View<NarrowNumber>) {
  return prepare_one(plan, input);
}
Error quantize_tensors(Context& context, const Pointwise<1>& plan, Input input, Scale scale,
                       Zeros zero_point, int64_t quant_min, int64_t quant_max, DType,
                       View<NarrowNumber> out) {
  const Quantize f{static_cast<float>(1 / only_element<double>(scale)),
                   static_cast<float>(only_element<int64_t>(zero_point)),
                   {quant_min, quant_max}};
  return run_one<float>(context, plan, f, *input.ref, *out.ref);
}

// .tensor2: the ends of the range are tensors, too
Error prepare_ends(Context&, Pointwise<1>& plan, Input input, Scale, Zeros, Zeros, Zeros, DType,
                   View<NarrowNumber>) {
  return prepare_one(plan, input);
}
Error quantize_ends(Context& context, const Pointwise<1>& plan, Input input, Scale scale,
                    Zeros zero_point, Zeros quant_min, Zeros quant_max, DType dtype,
                    View<NarrowNumber> out) {
  return quantize_tensors(context, plan, input, scale, zero_point, only_element<int64_t>(quant_min),
                          only_element<int64_t>(quant_max), dtype, out);
}

Error prepare_numbers_back(Context&, Pointwise<1>& plan, Integers input, double, int64_t, int64_t,
                           int64_t, DType, Maybe<DType>, View<float>) {
  return prepare_one(plan, input);
}
Error dequantize_numbers(Context& context, const Pointwise<1>& plan, Integers input, double scale,
                         int64_t zero_point, int64_t, int64_t, DType, Maybe<DType>,
                         View<float> out) {
  const Dequantize f{static_cast<float>(scale), static_cast<float>(zero_point)};
  return run_one<int64_t>(context, plan, f, *input.ref, *out.ref);
}
Error prepare_tensors_back(Context&, Pointwise<1>& plan, Integers input, Scale, Zeros, int64_t,
                           int64_t, DType, Maybe<DType>, View<float>) {
  return prepare_one(plan, input);
}
Error dequantize_tensors(Context& context, const Pointwise<1>& plan, Integers input, Scale scale,
                         Zeros zero_point, int64_t, int64_t, DType, Maybe<DType>, View<float> out) {
  const Dequantize f{static_cast<float>(only_element<double>(scale)),
                     static_cast<float>(only_element<int64_t>(zero_point))};
  return run_one<int64_t>(context, plan, f, *input.ref, *out.ref);
}

Error prepare_ends_back(Context&, Pointwise<1>& plan, Integers input, Scale, Zeros, Zeros, Zeros,
                        DType, Maybe<DType>, View<float>) {
  return prepare_one(plan, input);
}
Error dequantize_ends(Context& context, const Pointwise<1>& plan, Integers input, Scale scale,
                      Zeros zero_point, Zeros, Zeros, DType dtype, Maybe<DType> out_dtype,
                      View<float> out) {
  return dequantize_tensors(context, plan, input, scale, zero_point, 0, 0, dtype, out_dtype, out);
}

// ---- a scale of type S for each channel, row or group; S is also the type of the arithmetic

template <class S>
struct QuantizeChannel {
  using Result = double;
  Range<S> range;
  double operator()(float x, S scale, int64_t zero) const {
    return range.clamp(Round<S>()(x * (1 / scale)) + static_cast<S>(zero));
  }
};
/// Here the zero point is added before rounding. So a half rounds differently if the zero point is
/// odd.
template <class S>
struct QuantizeRow {
  using Result = double;
  Range<S> range;
  double operator()(float x, S scale, int64_t zero) const {
    return range.clamp(Round<S>()(x * (1 / scale) + static_cast<S>(zero)));
  }
};
template <class S>
struct DequantizeChannel {
  using Result = S;
  S operator()(int64_t q, S scale, int64_t zero) const {
    return (static_cast<float>(q) - static_cast<float>(zero)) * scale;
  }
};
template <class S>
struct DequantizeRow {
  using Result = S;
  S operator()(int64_t q, S scale, int64_t zero) const { return static_cast<S>(q - zero) * scale; }
};

/// The difference is an i32 if both numbers are, and then goes round at its ends.
template <class S>
struct DequantizeGroup {
  using Result = S;
  bool is_narrow;
  S operator()(int64_t q, S scale, int64_t zero) const {
    const int64_t moved = q - zero;
    return static_cast<S>(is_narrow ? static_cast<int32_t>(moved) : moved) * scale;
  }
};

/// A vector, repeated over `space`: one element for each index along `axis`.
Walk along(const Shape& vector, int64_t axis, const Shape& space) {
  const int dim = static_cast<int>(axis < 0 ? axis + space.rank : axis);
  Shape channels = space;
  for (int d = 0; d < space.rank; ++d)
    channels.sizes[d] = d == dim ? space.sizes[d] : 1, channels.strides[d] = vector.strides[0];
  return Walk::broadcast(channels, space);
}

/// Loads the three arguments in the types that F takes.
template <class S, class Q, class F>
Error run_three(Context& context, const Pointwise<3>& plan, const F& f, const TensorRef& input,
                const TensorRef& scales, const TensorRef& zero_points, const TensorRef& out) {
  const Source sources[] = {Source(input, plan.walks[0], dtype_of<Q>),
                            Source(scales, plan.walks[1], dtype_of<S>),
                            Source(zero_points, plan.walks[2], DType::i64)};
  using R = typename F::Result;
  run_pointwise(context, plan.count, sources, out, dtype_of<R>,
                &internal::block<F, R, Q, S, int64_t>, &f);
  return Error::ok;
}

/// The value of zero points that are absent.
constexpr int64_t nought = 0;
constexpr Shape no_dimensions = {};

template <class S>
struct PerChannel {
  using Scales = AnyView<const S>;

  static Error prepare(Context&, Pointwise<3>& plan, Input input, Scales scales, Zeros zeros,
                       int64_t axis, int64_t, int64_t, DType, View<NarrowNumber>) {
    const Shape& space = input.shape();
    plan = {
        space.numel(),
        {Walk::of(space), along(scales.shape(), axis, space), along(zeros.shape(), axis, space)}};
    return Error::ok;
  }
  static Error quantize(Context& context, const Pointwise<3>& plan, Input input, Scales scales,
                        Zeros zeros, int64_t, int64_t quant_min, int64_t quant_max, DType,
                        View<NarrowNumber> out) {
    const QuantizeChannel<S> f{{quant_min, quant_max}};
    return run_three<S, float>(context, plan, f, *input.ref, *scales.ref, *zeros.ref, *out.ref);
  }

  static Error prepare_back(Context&, Pointwise<3>& plan, Integers input, Scales scales,
                            Maybe<Zeros> zeros, int64_t axis, int64_t, int64_t, DType, Maybe<DType>,
                            View<float>) {
    const Shape& space = input.shape();
    plan = {space.numel(), {Walk::of(space), along(scales.shape(), axis, space), {}}};
    if (zeros)
      plan.walks[2] = along(zeros->shape(), axis, space);
    else
      plan.walks[2].repeat(no_dimensions, space);
    return Error::ok;
  }
  static Error dequantize(Context& context, const Pointwise<3>& plan, Integers input, Scales scales,
                          Maybe<Zeros> zeros, int64_t, int64_t, int64_t, DType, Maybe<DType>,
                          View<float> out) {
    const TensorRef none{const_cast<int64_t*>(&nought), &no_dimensions, DType::i64};
    return run_three<S, int64_t>(context, plan, DequantizeChannel<S>(), *input.ref, *scales.ref,
                                 zeros ? *zeros->ref : none, *out.ref);
  }
};

template <class S>
struct PerToken {
  using Scales = AnyView<const S>;
  using Whole = AnyView<const int64_t>;

  static Error prepare(Context&, Pointwise<3>& plan, Input input, Scales scales, Zeros zeros,
                       int64_t, int64_t, DType, View<NarrowNumber>) {
    return broadcast(plan, input.shape(), scales.shape(), zeros.shape());
  }
  static Error quantize(Context& context, const Pointwise<3>& plan, Input input, Scales scales,
                        Zeros zeros, int64_t quant_min, int64_t quant_max, DType,
                        View<NarrowNumber> out) {
    const QuantizeRow<S> f{{quant_min, quant_max}};
    return run_three<S, float>(context, plan, f, *input.ref, *scales.ref, *zeros.ref, *out.ref);
  }

  static Error prepare_back(Context&, Pointwise<3>& plan, Integers input, Scales scales,
                            Whole zeros, int64_t, int64_t, DType, DType, View<float>) {
    return broadcast(plan, input.shape(), scales.shape(), zeros.shape());
  }
  static Error dequantize(Context& context, const Pointwise<3>& plan, Integers input, Scales scales,
                          Whole zeros, int64_t, int64_t, DType, DType, View<float> out) {
    return run_three<S, int64_t>(context, plan, DequantizeRow<S>(), *input.ref, *scales.ref,
                                 *zeros.ref, *out.ref);
  }

 private:
  static Error broadcast(Pointwise<3>& plan, const Shape& space, const Shape& scales,
                         const Shape& zeros) {
    plan = {space.numel(),
            {Walk::of(space), Walk::broadcast(scales, space), Walk::broadcast(zeros, space)}};
    return Error::ok;
  }
};

template <class S>
struct PerGroup {
  using Scales = AnyView<const S>;
  using Wholes = Maybe<AnyView<const Wide>>;

  static Error prepare(Context&, Pointwise<3>& plan, Input input, Scales scales, Zeros zeros,
                       int64_t, int64_t, DType, int64_t group_size, View<NarrowNumber>) {
    return repeat(plan, input.shape(), scales.shape(), &zeros.shape(), group_size);
  }
  static Error quantize(Context& context, const Pointwise<3>& plan, Input input, Scales scales,
                        Zeros zeros, int64_t quant_min, int64_t quant_max, DType, int64_t,
                        View<NarrowNumber> out) {
    const QuantizeRow<S> f{{quant_min, quant_max}};
    return run_three<S, float>(context, plan, f, *input.ref, *scales.ref, *zeros.ref, *out.ref);
  }

  static Error prepare_back(Context&, Pointwise<3>& plan, Integers input, Scales scales,
                            Wholes zeros, int64_t, int64_t, DType, int64_t group_size, DType,
                            View<float>) {
    return repeat(plan, input.shape(), scales.shape(), zeros ? &zeros->shape() : nullptr,
                  group_size);
  }
  static Error dequantize(Context& context, const Pointwise<3>& plan, Integers input, Scales scales,
                          Wholes zeros, int64_t, int64_t, DType, int64_t, DType, View<float> out) {
    const TensorRef none{const_cast<int64_t*>(&nought), &no_dimensions, DType::i64};
    const DequantizeGroup<S> f{zeros && zeros->dtype() == DType::i32};
    return run_three<S, int64_t>(context, plan, f, *input.ref, *scales.ref,
                                 zeros ? *zeros->ref : none, *out.ref);
  }

 private:
  /// Each number, `group` times one after the other.
  static Walk repeated(const Shape& numbers, index_t group) {
    Walk walk = Walk::of(numbers);
    walk.add(group, 0);
    return walk;
  }
  static Error repeat(Pointwise<3>& plan, const Shape& space, const Shape& scales,
                      const Shape* zeros, int64_t group_size) {
    const index_t row = space.sizes[space.rank - 1];
    const bool rows_are_groups =
        row > 0 && row < group_size && scales.rank > 0 && scales.sizes[scales.rank - 1] == 1;
    const index_t group = rows_are_groups ? row : static_cast<index_t>(group_size);
    plan = {space.numel(), {Walk::of(space), repeated(scales, group), {}}};
    if (zeros != nullptr)
      plan.walks[2] = repeated(*zeros, group);
    else
      plan.walks[2].repeat(no_dimensions, space);
    return Error::ok;
  }
};

}  // namespace

TAPER_KERNEL(quantized_decomposed_quantize_per_tensor, upto_f32, prepare_numbers, quantize_numbers)
TAPER_KERNEL(quantized_decomposed_quantize_per_tensor_tensor, upto_f32, prepare_tensors,
             quantize_tensors)
TAPER_KERNEL(quantized_decomposed_quantize_per_tensor_tensor2, upto_f32, prepare_ends,
             quantize_ends)
TAPER_KERNEL(quantized_decomposed_dequantize_per_tensor, f32, prepare_numbers_back,
             dequantize_numbers)
TAPER_KERNEL(quantized_decomposed_dequantize_per_tensor_tensor, f32, prepare_tensors_back,
             dequantize_tensors)
TAPER_KERNEL(quantized_decomposed_dequantize_per_tensor_tensor2, f32, prepare_ends_back,
             dequantize_ends)

#define TAPER_QUANTIZE_BY_SCALES(op, Form)                                            \
  TAPER_KERNEL(quantized_decomposed_quantize_##op, f32, Form<float>::prepare,         \
               Form<float>::quantize)                                                 \
  TAPER_KERNEL(quantized_decomposed_quantize_##op, f64, Form<double>::prepare,        \
               Form<double>::quantize)                                                \
  TAPER_KERNEL(quantized_decomposed_dequantize_##op, f32, Form<float>::prepare_back,  \
               Form<float>::dequantize)                                               \
  TAPER_KERNEL(quantized_decomposed_dequantize_##op, f64, Form<double>::prepare_back, \
               Form<double>::dequantize)
TAPER_QUANTIZE_BY_SCALES(per_channel, PerChannel)
TAPER_QUANTIZE_BY_SCALES(per_token, PerToken)
TAPER_QUANTIZE_BY_SCALES(per_channel_group, PerGroup)

}  // namespace portable
}  // namespace taper
