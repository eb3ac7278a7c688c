#include "taper/exporter/eager/ops/norm.h"

#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"

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

/// (out, save_mean, save_invstd). Training writes the new running statistics into the old ones, if
/// there are any.
Results normalize(const char* name, BatchNorm b, Location here) {
  if (b.running_mean.defined() != b.running_var.defined())
    throw EagerError(
        here, std::string(name) + ": running_mean and running_var come together, or not at all");
  if (!b.training) {
    if (!b.running_mean.defined())
      throw EagerError(here, std::string(name) + ": evaluation needs running_mean and running_var");
    const auto [out, mean, invstd] = call<ops::_native_batch_norm_legit_no_training>(
        here, b.input, b.weight, b.bias, b.running_mean, b.running_var, b.momentum, b.eps);
    return {out, mean, invstd};
  }
  if (!b.running_mean.defined()) {
    const auto [out, mean, invstd] = call<ops::_native_batch_norm_legit_no_stats>(
        here, b.input, b.weight, b.bias, true, b.momentum, b.eps);
    return {out, mean, invstd};
  }
  const auto [out, mean, invstd, running_mean, running_var] =
      call<ops::_native_batch_norm_legit_functional>(
          here, b.input, b.weight, b.bias, b.running_mean, b.running_var, true, b.momentum, b.eps);
  NoGrad guard;
  b.running_mean.copy_(running_mean.detach(), here);
  b.running_var.copy_(running_var.detach(), here);
  return {out, mean, invstd};
}

/// x / sqrt(mean(x²) + eps) weight, and the factor 1 / sqrt(…).
Results rms(const char* name, const Tensor& input, const Dims& normalized_shape,
            const Tensor& weight, std::optional<double> eps, Location here) {
  const int inner = static_cast<int>(normalized_shape.size());
  if (inner == 0 || inner > input.rank())
    throw EagerError(here, std::string(name) + ": normalized_shape " + to_string(normalized_shape) +
                               " must name between 1 and all dimensions of input " +
                               to_string(input.sizes()));
  Ints over;
  for (int i = 0; i < inner; ++i) {
    over.push_back(i - inner);
    if (input.size(i - inner) != normalized_shape[static_cast<size_t>(i)])
      throw EagerError(here, std::string(name) + ": input " + to_string(input.sizes()) +
                                 " does not end in normalized_shape " +
                                 to_string(normalized_shape));
  }
  if (weight.defined() && weight.sizes() != normalized_shape)
    throw EagerError(here, std::string(name) + ": weight " + to_string(weight.sizes()) +
                               " must have the shape " + to_string(normalized_shape));
  const double epsilon = eps                           ? *eps
                         : input.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                       : std::numeric_limits<float>::epsilon();
  const Tensor x = input.dtype() == DType::f64
                       ? input
                       : input.to(DType::f32, here);  // f16 and bf16 compute in f32
  const Tensor factor = rsqrt(
      add(mean(mul(x, x, here), over, true, std::nullopt, here), Scalar(epsilon), 1, here), here);
  const Tensor out = mul(x, factor, here);
  return {(weight.defined() ? mul(out, weight, here) : out).to(input.dtype(), here), factor};
}

template <class A>
std::optional<double> optional_eps(const A& a) {
  return a.template has<"eps">() ? std::optional(a.template real<"eps">()) : std::nullopt;
}

}  // namespace

TAPER_DECOMPOSITION(batch_norm) { return {normalize("batch_norm", read(a), a.here())[0]}; }
TAPER_DECOMPOSITION(native_batch_norm) { return normalize("native_batch_norm", read(a), a.here()); }
TAPER_DECOMPOSITION(_native_batch_norm_legit) {
  return normalize("_native_batch_norm_legit", read(a), a.here());
}

// Each channel of each image becomes a channel of one image.
TAPER_DECOMPOSITION(instance_norm) {
  const Location here = a.here();
  const Tensor input = a.tensor<"input">();
  if (input.rank() < 2)
    throw EagerError(
        here, "instance_norm: input must have at least 2 dimensions (batch, channels, …), it is " +
                  to_string(input.sizes()));
  const Dim batch = input.size(0), channels = input.size(1);
  const auto repeated = [&](const Tensor& t) { return t.defined() ? repeat(t, {batch}, here) : t; };
  Dims sizes = input.sizes();
  sizes[0] = 1, sizes[1] = batch * channels;
  Tensor running_mean = a.tensor<"running_mean">(), running_var = a.tensor<"running_var">();
  const Tensor means = repeated(running_mean), vars = repeated(running_var);
  const Tensor out = normalize(
      "instance_norm",
      {input.reshape(sizes, here), repeated(a.tensor<"weight">()), repeated(a.tensor<"bias">()),
       means, vars, a.boolean<"use_input_stats">(), a.real<"momentum">(), a.real<"eps">()},
      here)[0];
  if (a.boolean<"use_input_stats">() && running_mean.defined()) {
    NoGrad guard;
    running_mean.copy_(mean(means.reshape({batch, channels}, here), {0}, false, std::nullopt, here),
                       here);
    running_var.copy_(mean(vars.reshape({batch, channels}, here), {0}, false, std::nullopt, here),
                      here);
  }
  return {out.reshape(input.sizes(), here)};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(layer_norm) {
  return {std::get<0>(
      call<ops::native_layer_norm>(a.here(), a.tensor<"input">(), a.dims<"normalized_shape">(),
                                   a.tensor<"weight">(), a.tensor<"bias">(), a.real<"eps">()))};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(group_norm) {
  const Tensor input = a.tensor<"input">();
  if (input.rank() < 2)
    throw EagerError(
        a.here(), "group_norm: input must have at least 2 dimensions (batch, channels, …), it is " +
                      to_string(input.sizes()));
  Dim plane(1);
  for (int i = 2; i < input.rank(); ++i) plane *= input.size(i);
  return {std::get<0>(call<ops::native_group_norm>(
      a.here(), input, a.tensor<"weight">(), a.tensor<"bias">(), input.size(0), input.size(1),
      plane, a.integer<"num_groups">(), a.real<"eps">()))};
}

TAPER_DECOMPOSITION(rms_norm) {
  return {rms("rms_norm", a.tensor<"input">(), a.dims<"normalized_shape">(), a.tensor<"weight">(),
              optional_eps(a), a.here())[0]};
}

TAPER_DECOMPOSITION(_fused_rms_norm) {
  const Ints shape = a.integers<"normalized_shape">();
  return rms("_fused_rms_norm", a.tensor<"input">(), Dims(shape.begin(), shape.end()),
             a.tensor<"weight">(), optional_eps(a), a.here());
}

}  // namespace taper::eager::decompositions
