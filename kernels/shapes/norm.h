// Rules of normalisation: batch, layer and group norm, forward and backward.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {

namespace internal {

/// Whether `v` is absent or has an element for each of `channels`. `name` is a literal: how
/// messages call it.
#define TAPER_CHANNEL_VECTOR(facts, v, channels, input, name)                 \
  optional_vector(facts, v, channels, (input).dtype,                          \
                  TAPER_TEXT(name " must have 1 dimension, it has {}"),       \
                  TAPER_TEXT(name " has {} elements, input has {} channels"), \
                  TAPER_TEXT(name " must have the dtype of input"))

/// input (batch, channels, …), with weight and bias (channels) or absent.
template <class D>
bool check_batch_norm(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                      const TensorType<D>* bias) {
  if (!facts.require(is_floating(input.dtype), TAPER_TEXT("input must have a floating dtype")) ||
      !facts.require(
          input.rank >= 2,
          TAPER_TEXT("input must have at least 2 dimensions (batch, channels, …), it has {}"),
          input.rank))
    return false;
  return TAPER_CHANNEL_VECTOR(facts, weight, input[1], input, "weight") &&
         TAPER_CHANNEL_VECTOR(facts, bias, input[1], input, "bias");
}
template <class D>
bool check_running(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* mean,
                   const TensorType<D>* var) {
  return TAPER_CHANNEL_VECTOR(facts, mean, input[1], input, "running_mean") &&
         TAPER_CHANNEL_VECTOR(facts, var, input[1], input, "running_var");
}
template <class D>
void make_vector(TensorType<D>& t, DType dtype, const D& count) {
  t.dtype = dtype, t.rank = 1, t.sizes[0] = count;
}
/// A result for training only: the statistics, or no elements.
template <class D>
void make_statistics(TensorType<D>& t, const TensorType<D>& input, bool training) {
  make_vector(t, input.dtype, training ? input[1] : D(0));
}
template <class D>
bool more_than_one_value(Facts<D>& facts, const TensorType<D>& input) {
  D count = input[0];
  for (int i = 2; i < input.rank; ++i) count = count * input[i];
  return facts.at_least(
      count, D(1), TAPER_TEXT("training needs at least one value for each channel, input has {}"));
}

}  // namespace internal

template <>
struct Rule<ops::_native_batch_norm_legit_no_training> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                    const TensorType<D>* bias, const TensorType<D>& running_mean,
                    const TensorType<D>& running_var, double, double, TensorType<D>& out,
                    TensorType<D>& save_mean, TensorType<D>& save_invstd) {
    if (!internal::check_batch_norm(facts, input, weight, bias) ||
        !internal::check_running(facts, input, &running_mean, &running_var))
      return false;
    out.like(input);
    internal::make_statistics(save_mean, input, false);
    internal::make_statistics(save_invstd, input, false);
    return true;
  }
};

template <>
struct Rule<ops::_native_batch_norm_legit_no_stats> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                    const TensorType<D>* bias, bool training, double, double, TensorType<D>& out,
                    TensorType<D>& save_mean, TensorType<D>& save_invstd) {
    if (!internal::check_batch_norm(facts, input, weight, bias) ||
        !facts.require(
            training,
            TAPER_TEXT(
                "training must be true: without running statistics there is nothing else to use")))
      return false;
    for (int i = 0; i < input.rank; ++i)
      if (!facts.at_least(input[i], D(1),
                          TAPER_TEXT("input has an extent of {}; statistics need at least {}")))
        return false;
    out.like(input);
    internal::make_statistics(save_mean, input, true);
    internal::make_statistics(save_invstd, input, true);
    return true;
  }
};

template <>
struct Rule<ops::_native_batch_norm_legit_functional> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                    const TensorType<D>* bias, const TensorType<D>& running_mean,
                    const TensorType<D>& running_var, bool training, double, double,
                    TensorType<D>& out, TensorType<D>& save_mean, TensorType<D>& save_invstd,
                    TensorType<D>& running_mean_out, TensorType<D>& running_var_out) {
    if (!internal::check_batch_norm(facts, input, weight, bias) ||
        !internal::check_running(facts, input, &running_mean, &running_var) ||
        (training && !internal::more_than_one_value(facts, input)))
      return false;
    out.like(input);
    internal::make_statistics(save_mean, input, training);
    internal::make_statistics(save_invstd, input, training);
    running_mean_out.like(running_mean);
    running_var_out.like(running_var);
    return true;
  }
};

template <>
struct Rule<ops::native_batch_norm_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_out, const TensorType<D>& input,
                    const TensorType<D>* weight, const TensorType<D>* running_mean,
                    const TensorType<D>* running_var, const TensorType<D>* save_mean,
                    const TensorType<D>* save_invstd, bool train, double,
                    Span<const int64_t> output_mask, TensorType<D>& grad_input,
                    TensorType<D>& grad_weight, TensorType<D>& grad_bias) {
    if (!internal::check_batch_norm(facts, input, weight,
                                    static_cast<const TensorType<D>*>(nullptr)) ||
        !internal::same_sizes(facts, grad_out, input,
                              TAPER_TEXT("grad_out has {} dimensions, input {}"),
                              TAPER_TEXT("grad_out has extent {} where input has {}")) ||
        !facts.require(grad_out.dtype == input.dtype,
                       TAPER_TEXT("grad_out must have the dtype of input")) ||
        !facts.require(output_mask.size() == 3,
                       TAPER_TEXT("output_mask must have 3 elements, it has {}"),
                       output_mask.size()))
      return false;
    if (train) {
      if (!facts.require(save_mean != nullptr && save_invstd != nullptr,
                         TAPER_TEXT("training needs save_mean and save_invstd")) ||
          !internal::check_running(facts, input, save_mean, save_invstd))
        return false;
    } else if (!facts.require(running_mean != nullptr && running_var != nullptr,
                              TAPER_TEXT("evaluation needs running_mean and running_var")) ||
               !internal::check_running(facts, input, running_mean, running_var)) {
      return false;
    }
    grad_input.like(input), grad_input.present = output_mask[0] != 0;
    internal::make_vector(grad_weight, input.dtype, input[1]),
        grad_weight.present = output_mask[1] != 0;
    internal::make_vector(grad_bias, input.dtype, input[1]),
        grad_bias.present = output_mask[2] != 0;
    return true;
  }
};

namespace internal {

/// Requires that `normalized_shape` are the last extents of input, and that weight and bias have
/// exactly that shape. `inner` is the number of these extents.
template <class D>
bool check_layer_norm(Facts<D>& facts, const TensorType<D>& input,
                      const DimList<D>& normalized_shape, const TensorType<D>* weight,
                      const TensorType<D>* bias, int& inner) {
  inner = static_cast<int>(normalized_shape.size());
  if (!facts.require(is_floating(input.dtype), TAPER_TEXT("input must have a floating dtype")) ||
      !facts.require(inner >= 1, TAPER_TEXT("normalized_shape must name at least one dimension")) ||
      !facts.require(inner <= input.rank,
                     TAPER_TEXT("normalized_shape has {} dimensions, input only {}"), inner,
                     input.rank))
    return false;
  const auto check = [&](const TensorType<D>* t, const char* rank, const char* extent,
                         const char* dtype) {
    if (t == nullptr) return true;
    if (!facts.require(t->rank == inner, rank, t->rank, inner) ||
        !facts.require(t->dtype == input.dtype, dtype))
      return false;
    for (int i = 0; i < inner; ++i)
      if (!facts.equal((*t)[i], normalized_shape[i], extent)) return false;
    return true;
  };
  for (int i = 0; i < inner; ++i)
    if (!facts.equal(input[input.rank - inner + i], normalized_shape[i],
                     TAPER_TEXT("input has extent {} where normalized_shape says {}")))
      return false;
  return check(weight, TAPER_TEXT("weight has {} dimensions, normalized_shape {}"),
               TAPER_TEXT("weight has extent {} where normalized_shape says {}"),
               TAPER_TEXT("weight must have the dtype of input")) &&
         check(bias, TAPER_TEXT("bias has {} dimensions, normalized_shape {}"),
               TAPER_TEXT("bias has extent {} where normalized_shape says {}"),
               TAPER_TEXT("bias must have the dtype of input"));
}

/// The shape of a row's statistics: that of input, with 1 in place of the normalised extents.
template <class D>
void make_row_statistics(TensorType<D>& t, const TensorType<D>& input, int inner) {
  t.like(input);
  for (int i = input.rank - inner; i < input.rank; ++i) t.sizes[i] = D(1);
}

}  // namespace internal

template <>
struct Rule<ops::native_layer_norm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, DimList<D> normalized_shape,
                    const TensorType<D>* weight, const TensorType<D>* bias, double,
                    TensorType<D>& out, TensorType<D>& mean, TensorType<D>& rstd) {
    int inner = 0;
    if (!internal::check_layer_norm(facts, input, normalized_shape, weight, bias, inner))
      return false;
    out.like(input);
    internal::make_row_statistics(mean, input, inner);
    internal::make_row_statistics(rstd, input, inner);
    return true;
  }
};

/// `normalized_shape` holds no symbols here: -1 stands for any extent of the input.
template <>
struct Rule<ops::_fused_rms_norm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input,
                    Span<const int64_t> normalized_shape, const TensorType<D>* weight,
                    Maybe<double>, TensorType<D>& out, TensorType<D>& rstd) {
    const int count = static_cast<int>(normalized_shape.size());
    D sizes[max_rank];
    for (int i = 0; i < count && count <= input.rank; ++i)
      sizes[i] = normalized_shape[i] == -1 ? input[input.rank - count + i] : D(normalized_shape[i]);
    const DimList<D> shape{sizes, normalized_shape.size(), [](const void* source, index_t i) {
                             return static_cast<const D*>(source)[i];
                           }};
    int inner = 0;
    if (!internal::check_layer_norm(facts, input, shape, weight,
                                    static_cast<const TensorType<D>*>(nullptr), inner))
      return false;
    out.like(input);
    internal::make_row_statistics(rstd, input, inner);
    if (input.dtype != DType::f64) rstd.dtype = DType::f32;  // f16 and bf16 compute in f32
    return true;
  }
};

template <>
struct Rule<ops::native_layer_norm_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_out, const TensorType<D>& input,
                    DimList<D> normalized_shape, const TensorType<D>& mean,
                    const TensorType<D>& rstd, const TensorType<D>* weight,
                    const TensorType<D>* bias, Span<const int64_t> output_mask,
                    TensorType<D>& grad_input, TensorType<D>& grad_weight,
                    TensorType<D>& grad_bias) {
    int inner = 0;
    if (!internal::check_layer_norm(facts, input, normalized_shape, weight, bias, inner) ||
        !internal::same_sizes(facts, grad_out, input,
                              TAPER_TEXT("grad_out has {} dimensions, input {}"),
                              TAPER_TEXT("grad_out has extent {} where input has {}")))
      return false;
    TensorType<D> row;
    internal::make_row_statistics(row, input, inner);
    if (!internal::same_sizes(facts, mean, row, TAPER_TEXT("mean has {} dimensions, input {}"),
                              TAPER_TEXT("mean has extent {}, it must be {}")) ||
        !internal::same_sizes(facts, rstd, row, TAPER_TEXT("rstd has {} dimensions, input {}"),
                              TAPER_TEXT("rstd has extent {}, it must be {}")) ||
        !facts.require(
            grad_out.dtype == input.dtype && mean.dtype == input.dtype && rstd.dtype == input.dtype,
            TAPER_TEXT("grad_out, mean and rstd must have the dtype of input")) ||
        !facts.require(output_mask.size() == 3,
                       TAPER_TEXT("output_mask must have 3 elements, it has {}"),
                       output_mask.size()))
      return false;
    grad_input.like(input), grad_input.present = output_mask[0] != 0;
    for (TensorType<D>* t : {&grad_weight, &grad_bias}) {
      t->dtype = input.dtype, t->rank = inner;
      for (int i = 0; i < inner; ++i) t->sizes[i] = input[input.rank - inner + i];
    }
    grad_weight.present = output_mask[1] != 0, grad_bias.present = output_mask[2] != 0;
    return true;
  }
};

namespace internal {

/// Requires that input holds N·C·HxW elements, that `group` divides C, and that weight is (C).
template <class D>
bool check_group_norm(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                      const TensorType<D>* bias, const D& n, const D& c, const D& hxw,
                      int64_t group) {
  return facts.require(is_floating(input.dtype), TAPER_TEXT("input must have a floating dtype")) &&
         facts.require(group > 0, TAPER_TEXT("group must be positive, got {}"), group) &&
         facts.at_least(n, D(0), TAPER_TEXT("N must not be negative, got {}")) &&
         facts.at_least(c, D(1), TAPER_TEXT("C must be positive, got {}")) &&
         facts.at_least(hxw, D(1), TAPER_TEXT("an image needs at least one pixel: HxW is {}")) &&
         facts.equal(
             c % D(group), D(0),
             TAPER_TEXT(
                 "the channels must be a multiple of the groups: the remainder is {}, not {}")) &&
         facts.equal(input.numel(), n * c * hxw,
                     TAPER_TEXT("input has {} elements, N * C * HxW is {}")) &&
         TAPER_CHANNEL_VECTOR(facts, weight, c, input, "weight") &&
         TAPER_CHANNEL_VECTOR(facts, bias, c, input, "bias");
}

}  // namespace internal

template <>
struct Rule<ops::native_group_norm> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>* weight,
                    const TensorType<D>* bias, D n, D c, D hxw, int64_t group, double,
                    TensorType<D>& out, TensorType<D>& mean, TensorType<D>& rstd) {
    if (!internal::check_group_norm(facts, input, weight, bias, n, c, hxw, group)) return false;
    out.like(input);
    for (TensorType<D>* t : {&mean, &rstd})
      t->dtype = input.dtype, t->rank = 2, t->sizes[0] = n, t->sizes[1] = D(group);
    return true;
  }
};

template <>
struct Rule<ops::native_group_norm_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_out, const TensorType<D>& input,
                    const TensorType<D>& mean, const TensorType<D>& rstd,
                    const TensorType<D>* weight, D n, D c, D hxw, int64_t group,
                    Span<const int64_t> output_mask, TensorType<D>& grad_input,
                    TensorType<D>& grad_weight, TensorType<D>& grad_bias) {
    if (!internal::check_group_norm(facts, input, weight,
                                    static_cast<const TensorType<D>*>(nullptr), n, c, hxw, group) ||
        !internal::same_sizes(facts, grad_out, input,
                              TAPER_TEXT("grad_out has {} dimensions, input {}"),
                              TAPER_TEXT("grad_out has extent {} where input has {}")) ||
        !facts.equal(mean.numel(), n * D(group),
                     TAPER_TEXT("mean has {} elements, N * group is {}")) ||
        !facts.equal(rstd.numel(), n * D(group),
                     TAPER_TEXT("rstd has {} elements, N * group is {}")) ||
        !facts.require(
            grad_out.dtype == input.dtype && mean.dtype == input.dtype && rstd.dtype == input.dtype,
            TAPER_TEXT("grad_out, mean and rstd must have the dtype of input")) ||
        !facts.require(output_mask.size() == 3,
                       TAPER_TEXT("output_mask must have 3 elements, it has {}"),
                       output_mask.size()))
      return false;
    grad_input.like(input), grad_input.present = output_mask[0] != 0;
    internal::make_vector(grad_weight, input.dtype, c), grad_weight.present = output_mask[1] != 0;
    internal::make_vector(grad_bias, input.dtype, c), grad_bias.present = output_mask[2] != 0;
    return true;
  }
};

#undef TAPER_CHANNEL_VECTOR

}  // namespace taper
