#include "taper/exporter/eager/ops/norm.h"

#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/checkpoint.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

struct BatchNorm {
  Tensor input, weight, bias, running_mean, running_var;
  bool training;
  double momentum, eps;
};

template <class A>
BatchNorm read(const A& a) {
  return {a.template tensor<"input">(),       a.template tensor<"weight">(),
          a.template tensor<"bias">(),        a.template tensor<"running_mean">(),
          a.template tensor<"running_var">(), a.template boolean<"training">(),
          a.template real<"momentum">(),      a.template real<"eps">()};
}

/// Returns (out, save_mean, save_invstd). Training writes the new running statistics to the tensors
/// of the old ones, if there are any.
Results normalize(const char* name, BatchNorm b) {
  // f32 weights or statistics may come with a half input; then it is computed in f32, too
  const DType dtype = b.input.dtype();
  const auto is_f32 = [](const Tensor& t) { return t.defined() && t.dtype() == DType::f32; };
  if ((dtype == DType::f16 || dtype == DType::bf16) &&
      (is_f32(b.weight) || is_f32(b.running_mean))) {
    b.input = b.input.to(DType::f32);
    Results results = normalize(name, b);
    results[0] = results[0].to(dtype);
    return results;
  }
  if (b.running_mean.defined() != b.running_var.defined())
    throw EagerError(std::string(name) +
                     ": running_mean and running_var come together, or not at all");
  if (!b.training) {
    if (!b.running_mean.defined())
      throw EagerError(std::string(name) + ": evaluation needs running_mean and running_var");
    const auto [out, mean, invstd] = call<ops::_native_batch_norm_legit_no_training>(
        b.input, b.weight, b.bias, b.running_mean, b.running_var, b.momentum, b.eps);
    return {out, mean, invstd};
  }
  if (!b.running_mean.defined()) {
    const auto [out, mean, invstd] = call<ops::_native_batch_norm_legit_no_stats>(
        b.input, b.weight, b.bias, true, b.momentum, b.eps);
    return {out, mean, invstd};
  }
  const auto [out, mean, invstd, running_mean, running_var] =
      call<ops::_native_batch_norm_legit_functional>(b.input, b.weight, b.bias, b.running_mean,
                                                     b.running_var, true, b.momentum, b.eps);
  if (computes_again()) return {out, mean, invstd};
  NoGrad guard;
  b.running_mean.copy_(running_mean.detach());
  b.running_var.copy_(running_var.detach());
  return {out, mean, invstd};
}

/// Returns `out` alone. An input without elements has no statistics. As in PyTorch, such an input
/// may be a vector, and the first weight and bias apply to everything.
Tensor normalize_if_any(const char* name, const BatchNorm& b) {
  for (const Dim& d : b.input.sizes()) {
    if (!proves_equal(d, Dim(0))) continue;
    Tensor out = clone(b.input);
    if (b.weight.defined()) out = mul(out, select(b.weight, 0, 0));
    if (b.bias.defined()) out = add(out, select(b.bias, 0, 0));
    return out;
  }
  return normalize(name, b)[0];
}

}  // namespace

TAPER_DECOMPOSITION(batch_norm) { return {normalize_if_any("batch_norm", read(a))}; }
TAPER_DECOMPOSITION(native_batch_norm) { return normalize("native_batch_norm", read(a)); }
TAPER_DECOMPOSITION(_native_batch_norm_legit) {
  return normalize("_native_batch_norm_legit", read(a));
}

// The last result is what other devices keep for the gradient; here it is empty.
TAPER_DECOMPOSITION(_batch_norm_with_update) {
  Results results = normalize(
      "_batch_norm_with_update",
      {a.tensor<"input">(), a.tensor<"weight">(), a.tensor<"bias">(), a.tensor<"running_mean">(),
       a.tensor<"running_var">(), true, a.real<"momentum">(), a.real<"eps">()});
  results.push_back(zeros({0}, DType::u8));
  return results;
}

// Turns each channel of each image into a channel of one image.
TAPER_DECOMPOSITION(instance_norm) {
  const Tensor input = a.tensor<"input">();
  if (input.rank() < 2)
    throw EagerError(
        "instance_norm: input must have at least 2 dimensions (batch, channels, …), it is " +
        to_string(input.sizes()));
  const Dim batch = input.size(0), channels = input.size(1);
  const auto repeated = [&](const Tensor& t) { return t.defined() ? repeat(t, {batch}) : t; };
  Dims sizes = input.sizes();
  sizes[0] = 1, sizes[1] = batch * channels;
  Tensor running_mean = a.tensor<"running_mean">(), running_var = a.tensor<"running_var">();
  const Tensor means = repeated(running_mean), vars = repeated(running_var);
  const Tensor out = normalize_if_any(
      "instance_norm",
      {input.reshape(sizes), repeated(a.tensor<"weight">()), repeated(a.tensor<"bias">()), means,
       vars, a.boolean<"use_input_stats">(), a.real<"momentum">(), a.real<"eps">()});
  if (a.boolean<"use_input_stats">() && running_mean.defined() && !computes_again()) {
    NoGrad guard;
    running_mean.copy_(mean(means.reshape({batch, channels}), {0}));
    running_var.copy_(mean(vars.reshape({batch, channels}), {0}));
  }
  return {out.reshape(input.sizes())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(layer_norm, "input") {
  return {std::get<0>(
      call<ops::native_layer_norm>(a.tensor<"input">(), a.dims<"normalized_shape">(),
                                   a.tensor<"weight">(), a.tensor<"bias">(), a.real<"eps">()))};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(group_norm, "input") {
  const Tensor input = a.tensor<"input">();
  if (input.rank() < 2)
    throw EagerError(
        "group_norm: input must have at least 2 dimensions (batch, channels, …), it is " +
        to_string(input.sizes()));
  Dim plane(1);
  for (int i = 2; i < input.rank(); ++i) plane *= input.size(i);
  return {std::get<0>(call<ops::native_group_norm>(input, a.tensor<"weight">(), a.tensor<"bias">(),
                                                   input.size(0), input.size(1), plane,
                                                   a.integer<"num_groups">(), a.real<"eps">()))};
}

TAPER_DECOMPOSITION(rms_norm) {
  const Tensor input = a.tensor<"input">(), weight = a.tensor<"weight">();
  const Dims extents = a.dims<"normalized_shape">();
  Ints shape;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t from_the_end = static_cast<int64_t>(i) - static_cast<int64_t>(extents.size());
    const bool is_own = -from_the_end <= input.rank() && same(extents[i], input.size(from_the_end));
    if (!is_own && (!extents[i].is_constant() || extents[i].value() < 0))
      throw EagerError("rms_norm: normalized_shape " + to_string(extents) +
                       " must be the last sizes of input " + to_string(input.sizes()));
    shape.push_back(extents[i].is_constant() ? extents[i].value() : -1);
  }
  const std::optional<double> eps = a.has<"eps">() ? std::optional(a.real<"eps">()) : std::nullopt;
  const bool apart = weight.defined() && weight.dtype() != input.dtype();
  const Tensor out =
      std::get<0>(call<ops::_fused_rms_norm>(input, shape, apart ? Tensor() : weight, eps));
  return {apart ? mul(out, weight).to(input.dtype()) : out};
}

// v g / |v|, with the length of each slice of v along dim, or of the whole v if dim is -1, as in
// PyTorch. T. Salimans and D. P. Kingma, "Weight Normalization", arXiv:1602.07868.
TAPER_DECOMPOSITION_ROUNDED_ONCE(_weight_norm) {
  const Tensor v = a.tensor<"v">();
  const bool whole = a.integer<"dim">() == -1;
  Ints others;
  if (!whole) {
    const int64_t dim = checked_dim(a.integer<"dim">(), v.rank(), "_weight_norm", v);
    for (int64_t i = 0; i < v.rank(); ++i)
      if (i != dim) others.push_back(i);
  }
  for (const Dim& d : v.sizes())  // without elements there is no length to divide g by
    if (proves_equal(d, Dim(0))) return {mul(v, a.tensor<"g">())};
  // slices of a vector have one element, so nothing is summed
  const Tensor length = !whole && others.empty() ? abs(v) : vector_norm(v, 2, others, !whole);
  return {mul(v, div(a.tensor<"g">(), length))};
}

}  // namespace taper::eager::decompositions
