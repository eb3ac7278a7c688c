#include "taper/tests/exporter/nn/factories.h"

namespace taper::tests {
namespace {

nn::PaddingMode padding_mode(const Json& args) {
  const std::string name = argument<std::string>(args, "padding_mode", "zeros");
  return name == "reflect"     ? nn::PaddingMode::reflect
         : name == "replicate" ? nn::PaddingMode::replicate
         : name == "circular"  ? nn::PaddingMode::circular
                               : nn::PaddingMode::zeros;
}

template <int n>
Callable conv(const Json& args) {
  nn::ConvOptions<n> options{.kernel_size = extents<n>(args, "kernel_size", 1)};
  options.stride = extents<n>(args, "stride", 1);
  options.dilation = extents<n>(args, "dilation", 1);
  options.groups = argument<int64_t>(args, "groups", 1);
  options.bias = argument(args, "bias", true);
  options.padding_mode = padding_mode(args);
  if (args.contains("padding") && args["padding"].is_string())
    options.padding = args["padding"].get<std::string>().c_str();
  else
    options.padding.extents = extents<n>(args, "padding", 0);
  return make_layer<nn::Conv<n>>(args["in_channels"].get<int64_t>(),
                                 args["out_channels"].get<int64_t>(), options);
}

template <int n>
Callable conv_transpose(const Json& args) {
  nn::ConvTransposeOptions<n> options{.kernel_size = extents<n>(args, "kernel_size", 1)};
  options.stride = extents<n>(args, "stride", 1);
  options.padding = extents<n>(args, "padding", 0);
  options.output_padding = extents<n>(args, "output_padding", 0);
  options.dilation = extents<n>(args, "dilation", 1);
  options.groups = argument<int64_t>(args, "groups", 1);
  options.bias = argument(args, "bias", true);
  const auto m = std::make_shared<nn::ConvTranspose<n>>(
      args["in_channels"].get<int64_t>(), args["out_channels"].get<int64_t>(), options);
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            if (!c.options.contains("output_size")) return {(*m)(c.inputs[0])};
            return {m->forward(c.inputs[0], extents<n>(c.options, "output_size", 0))};
          }};
}

template <class B>
Callable batch_norm(const Json& args) {
  nn::BatchNormOptions options;
  options.eps = argument(args, "eps", options.eps);
  if (args.contains("momentum")) options.momentum = optional_argument<double>(args, "momentum");
  options.affine = argument(args, "affine", true);
  options.track_running_stats = argument(args, "track_running_stats", true);
  return make_layer<B>(args["num_features"].get<int64_t>(), options);
}

template <class N>
Callable instance_norm(const Json& args) {
  return make_layer<N>(
      args["num_features"].get<int64_t>(),
      nn::InstanceNormOptions{.eps = argument(args, "eps", 1e-5),
                              .momentum = argument(args, "momentum", 0.1),
                              .affine = argument(args, "affine", false),
                              .track_running_stats = argument(args, "track_running_stats", false)});
}

eager::Ints normalized_shape(const Json& args) {
  const Json& shape = args["normalized_shape"];
  return shape.is_number() ? eager::Ints{shape.get<int64_t>()} : shape.get<eager::Ints>();
}

Callable embedding(const Json& args) {
  nn::EmbeddingOptions options;
  options.padding_idx = optional_argument<int64_t>(args, "padding_idx");
  options.scale_grad_by_freq = argument(args, "scale_grad_by_freq", false);
  options.max_norm = optional_argument<double>(args, "max_norm");
  options.norm_type = argument(args, "norm_type", 2.0);
  return make_layer<nn::Embedding>(args["num_embeddings"].get<int64_t>(),
                                   args["embedding_dim"].get<int64_t>(), options);
}

Callable embedding_bag(const Json& args) {
  using Mode = nn::EmbeddingBagOptions::Mode;
  const std::string mode = argument<std::string>(args, "mode", "mean");
  nn::EmbeddingBagOptions options;
  options.mode = mode == "sum" ? Mode::sum : mode == "max" ? Mode::max : Mode::mean;
  options.padding_idx = optional_argument<int64_t>(args, "padding_idx");
  options.include_last_offset = argument(args, "include_last_offset", false);
  const auto m = std::make_shared<nn::EmbeddingBag>(args["num_embeddings"].get<int64_t>(),
                                                    args["embedding_dim"].get<int64_t>(), options);
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            return {(*m)(c.input(0), c.input(1), c.keyword("per_sample_weights"))};
          }};
}

Callable max_pool(const Json& args) {
  nn::MaxPool2dOptions options{.kernel_size = extents<2>(args, "kernel_size", 1)};
  options.stride = optional_extents<2>(args, "stride");
  options.padding = extents<2>(args, "padding", 0);
  options.ceil_mode = argument(args, "ceil_mode", false);
  return make_layer<nn::MaxPool2d>(options);
}

Callable avg_pool(const Json& args) {
  nn::AvgPool2dOptions options{.kernel_size = extents<2>(args, "kernel_size", 1)};
  options.stride = optional_extents<2>(args, "stride");
  options.padding = extents<2>(args, "padding", 0);
  options.ceil_mode = argument(args, "ceil_mode", false);
  options.count_include_pad = argument(args, "count_include_pad", true);
  return make_layer<nn::AvgPool2d>(options);
}

template <int n>
Callable lp_pool(const Json& args) {
  return make_layer<nn::LPPool<n>>(args["norm_type"].get<double>(),
                                   extents<n>(args, "kernel_size", 1),
                                   optional_extents<n>(args, "stride"));
}

template <int n>
nn::Sides<n> sides(const Json& padding) {
  nn::Sides<n> s = 0;
  if (padding.is_number()) return padding.get<int64_t>();
  for (size_t i = 0; i < 2 * n; ++i) s.values[i] = padding[i].get<int64_t>();
  return s;
}

Callable upsample(const Json& args) {
  nn::UpsampleOptions options;
  if (args.contains("size")) options.size = args["size"].get<eager::Ints>();
  if (args.contains("scale_factor")) options.scale_factor = {args["scale_factor"].get<double>()};
  options.mode = args["mode"].get<std::string>();
  options.align_corners = argument(args, "align_corners", false);
  return make_layer<nn::Upsample>(options);
}

nn::WindowOptions windows(const Json& args) {
  return {extents<2>(args, "dilation", 1), extents<2>(args, "padding", 0),
          extents<2>(args, "stride", 1)};
}

/// A module of two inputs.
template <class M>
Callable of_two(std::shared_ptr<M> m) {
  return {m,
          [m](const Call& c) -> std::vector<Tensor> { return {(*m)(c.inputs[0], c.inputs[1])}; }};
}

template <class L>
Callable plain(const Json&) {
  return make_layer<L>();
}
/// A layer with one number.
template <class L, class T = double>
Factory with(const char* name, T fallback) {
  return [=](const Json& a) { return make_layer<L>(argument<T>(a, name, fallback)); };
}

/// A layer that is made of the arguments `a`.
#define LAYER(name, ...)                            \
  {                                                 \
    name, [](const Json& a) { return __VA_ARGS__; } \
  }

}  // namespace

std::map<std::string, Factory> layer_factories() {
  return {
      {"AdaptiveAvgPool2d",
       [](const Json& a) {
         const auto size = [&](size_t i) {
           return a["output_size"][i].is_null() ? std::nullopt
                                                : std::optional(a["output_size"][i].get<int64_t>());
         };
         return make_layer<nn::AdaptiveAvgPool2d>(size(0), size(1));
       }},
      {"AdaptiveMaxPool1d", with<nn::AdaptiveMaxPool1d>("output_size", int64_t{1})},
      {"AvgPool2d", avg_pool},
      {"BatchNorm1d", batch_norm<nn::BatchNorm1d>},
      {"BatchNorm2d", batch_norm<nn::BatchNorm2d>},
      {"BatchNorm3d", batch_norm<nn::BatchNorm3d>},
      LAYER("Bilinear",
            of_two(std::make_shared<nn::Bilinear>(
                a["in1_features"].get<int64_t>(), a["in2_features"].get<int64_t>(),
                a["out_features"].get<int64_t>(), nn::LinearOptions{argument(a, "bias", true)}))),
      {"CELU", with<nn::CELU>("alpha", 1.0)},
      {"ChannelShuffle", with<nn::ChannelShuffle>("groups", int64_t{1})},
      LAYER("CircularPad2d", make_layer<nn::CircularPad2d>(sides<2>(a["padding"]))),
      LAYER("ConstantPad1d",
            make_layer<nn::ConstantPad1d>(sides<1>(a["padding"]), a["value"].get<double>())),
      {"Conv1d", conv<1>},
      {"Conv2d", conv<2>},
      {"Conv3d", conv<3>},
      {"ConvTranspose1d", conv_transpose<1>},
      {"ConvTranspose2d", conv_transpose<2>},
      {"ConvTranspose3d", conv_transpose<3>},
      LAYER("CosineSimilarity", of_two(std::make_shared<nn::CosineSimilarity>(
                                    argument<int64_t>(a, "dim", 1), argument(a, "eps", 1e-8)))),
      {"ELU", with<nn::ELU>("alpha", 1.0)},
      {"Embedding", embedding},
      {"EmbeddingBag", embedding_bag},
      LAYER("Flatten", make_layer<nn::Flatten>(argument<int64_t>(a, "start_dim", 1),
                                               argument<int64_t>(a, "end_dim", -1))),
      LAYER("Fold", make_layer<nn::Fold>(extents<2>(a, "output_size", 1),
                                         extents<2>(a, "kernel_size", 1), windows(a))),
      {"GELU", with<nn::GELU>("approximate", std::string("none"))},
      {"GLU", with<nn::GLU>("dim", int64_t{-1})},
      LAYER("GroupNorm",
            make_layer<nn::GroupNorm>(
                a["num_groups"].get<int64_t>(), a["num_channels"].get<int64_t>(),
                nn::GroupNormOptions{argument(a, "eps", 1e-5), argument(a, "affine", true)})),
      {"Hardshrink", with<nn::Hardshrink>("lambd", 0.5)},
      {"Hardsigmoid", plain<nn::Hardsigmoid>},
      {"Hardswish", plain<nn::Hardswish>},
      LAYER("Hardtanh",
            make_layer<nn::Hardtanh>(argument(a, "min_val", -1.0), argument(a, "max_val", 1.0))),
      {"InstanceNorm1d", instance_norm<nn::InstanceNorm1d>},
      {"InstanceNorm2d", instance_norm<nn::InstanceNorm2d>},
      {"InstanceNorm3d", instance_norm<nn::InstanceNorm3d>},
      {"LPPool1d", lp_pool<1>},
      {"LPPool2d", lp_pool<2>},
      LAYER("LayerNorm",
            make_layer<nn::LayerNorm>(
                normalized_shape(a),
                nn::LayerNormOptions{.eps = argument(a, "eps", 1e-5),
                                     .elementwise_affine = argument(a, "elementwise_affine", true),
                                     .bias = argument(a, "bias", true)})),
      {"LeakyReLU", with<nn::LeakyReLU>("negative_slope", 0.01)},
      LAYER("Linear", make_layer<nn::Linear>(a["in_features"].get<int64_t>(),
                                             a["out_features"].get<int64_t>(),
                                             nn::LinearOptions{argument(a, "bias", true)})),
      {"LocalResponseNorm", with<nn::LocalResponseNorm>("size", int64_t{1})},
      {"LogSigmoid", plain<nn::LogSigmoid>},
      {"LogSoftmax", with<nn::LogSoftmax>("dim", int64_t{0})},
      {"MaxPool2d", max_pool},
      {"Mish", plain<nn::Mish>},
      LAYER("PReLU", make_layer<nn::PReLU>(argument<int64_t>(a, "num_parameters", 1),
                                           argument(a, "init", 0.25))),
      LAYER("PairwiseDistance",
            of_two(std::make_shared<nn::PairwiseDistance>(argument(a, "p", 2.0)))),
      {"PixelShuffle", with<nn::PixelShuffle>("upscale_factor", int64_t{1})},
      {"PixelUnshuffle", with<nn::PixelUnshuffle>("downscale_factor", int64_t{1})},
      LAYER("RMSNorm",
            make_layer<nn::RMSNorm>(
                normalized_shape(a),
                nn::RMSNormOptions{.eps = optional_argument<double>(a, "eps"),
                                   .elementwise_affine = argument(a, "elementwise_affine", true)})),
      {"ReLU6", plain<nn::ReLU6>},
      LAYER("ReflectionPad2d", make_layer<nn::ReflectionPad2d>(sides<2>(a["padding"]))),
      LAYER("ReplicationPad3d", make_layer<nn::ReplicationPad3d>(sides<3>(a["padding"]))),
      {"SELU", plain<nn::SELU>},
      {"SiLU", plain<nn::SiLU>},
      {"Softmax", with<nn::Softmax>("dim", int64_t{0})},
      {"Softmax2d", plain<nn::Softmax2d>},
      {"Softmin", with<nn::Softmin>("dim", int64_t{0})},
      LAYER("Softplus",
            make_layer<nn::Softplus>(argument(a, "beta", 1.0), argument(a, "threshold", 20.0))),
      {"Softshrink", with<nn::Softshrink>("lambd", 0.5)},
      {"Softsign", plain<nn::Softsign>},
      {"Tanhshrink", plain<nn::Tanhshrink>},
      LAYER("Threshold",
            make_layer<nn::Threshold>(a["threshold"].get<double>(), a["value"].get<double>())),
      LAYER("Unflatten", make_layer<nn::Unflatten>(a["dim"].get<int64_t>(),
                                                   a["unflattened_size"].get<eager::Ints>())),
      LAYER("Unfold", make_layer<nn::Unfold>(extents<2>(a, "kernel_size", 1), windows(a))),
      {"Upsample", upsample},
      LAYER("ZeroPad2d", make_layer<nn::ZeroPad2d>(sides<2>(a["padding"]))),
  };
}

}  // namespace taper::tests
