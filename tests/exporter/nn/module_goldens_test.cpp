// Every module that Taper has against PyTorch's results, call by call: outputs, gradients of inputs
// and parameters, running statistics.
#include <functional>
#include <optional>

#include "taper/exporter/nn/nn.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

template <class T>
T argument(const Json& args, const char* name, T fallback) {
  return args.contains(name) && !args[name].is_null() ? args[name].get<T>() : fallback;
}
std::optional<int64_t> number_or_none(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<int64_t>());
}

template <int n>
nn::Extents<n> extents(const Json& args, const char* name, int64_t fallback) {
  nn::Extents<n> e = fallback;
  if (!args.contains(name) || args[name].is_null()) return e;
  if (args[name].is_number()) return args[name].get<int64_t>();
  for (size_t i = 0; i < n; ++i) e.values[i] = args[name][i].get<int64_t>();
  return e;
}

template <int n>
LayerPtr conv(const Json& args) {
  if (argument<std::string>(args, "padding_mode", "zeros") != "zeros") return nullptr;
  nn::ConvOptions<n> options{.kernel_size = extents<n>(args, "kernel_size", 1)};
  options.stride = extents<n>(args, "stride", 1);
  options.dilation = extents<n>(args, "dilation", 1);
  options.groups = argument<int64_t>(args, "groups", 1);
  options.bias = argument(args, "bias", true);
  if (args.contains("padding") && args["padding"].is_string())
    options.padding = args["padding"].get<std::string>().c_str();
  else
    options.padding.extents = extents<n>(args, "padding", 0);
  return std::make_unique<nn::Conv<n>>(args["in_channels"], args["out_channels"], options);
}

template <class B>
LayerPtr batch_norm(const Json& args) {
  nn::BatchNormOptions options;
  options.eps = argument(args, "eps", options.eps);
  if (args.contains("momentum"))
    options.momentum =
        args["momentum"].is_null() ? std::nullopt : std::optional(args["momentum"].get<double>());
  options.affine = argument(args, "affine", true);
  options.track_running_stats = argument(args, "track_running_stats", true);
  return std::make_unique<B>(args["num_features"].get<int64_t>(), options);
}

LayerPtr embedding(const Json& args) {
  if (args.contains("max_norm")) return nullptr;
  nn::EmbeddingOptions options;
  if (args.contains("padding_idx")) options.padding_idx = args["padding_idx"].get<int64_t>();
  options.scale_grad_by_freq = argument(args, "scale_grad_by_freq", false);
  return std::make_unique<nn::Embedding>(args["num_embeddings"], args["embedding_dim"], options);
}

LayerPtr layer_norm(const Json& args) {
  const nn::LayerNormOptions options{
      .eps = argument(args, "eps", 1e-5),
      .elementwise_affine = argument(args, "elementwise_affine", true),
      .bias = argument(args, "bias", true)};
  const Json& shape = args["normalized_shape"];
  return std::make_unique<nn::LayerNorm>(
      shape.is_number() ? eager::Ints{shape.get<int64_t>()} : shape.get<eager::Ints>(), options);
}

LayerPtr max_pool(const Json& args) {
  nn::MaxPool2dOptions options{.kernel_size = extents<2>(args, "kernel_size", 1)};
  if (args.contains("stride")) options.stride = extents<2>(args, "stride", 1);
  options.padding = extents<2>(args, "padding", 0);
  options.ceil_mode = argument(args, "ceil_mode", false);
  return std::make_unique<nn::MaxPool2d>(options);
}

LayerPtr avg_pool(const Json& args) {
  nn::AvgPool2dOptions options{.kernel_size = extents<2>(args, "kernel_size", 1)};
  if (args.contains("stride")) options.stride = extents<2>(args, "stride", 1);
  options.padding = extents<2>(args, "padding", 0);
  options.ceil_mode = argument(args, "ceil_mode", false);
  options.count_include_pad = argument(args, "count_include_pad", true);
  return std::make_unique<nn::AvgPool2d>(options);
}

template <class L>
LayerPtr plain(const Json&) {
  return std::make_unique<L>();
}

const std::map<std::string, std::function<LayerPtr(const Json&)>> factories = {
    {"AdaptiveAvgPool2d",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::AdaptiveAvgPool2d>(number_or_none(a["output_size"][0]),
                                                      number_or_none(a["output_size"][1]));
     }},
    {"AvgPool2d", avg_pool},
    {"BatchNorm1d", batch_norm<nn::BatchNorm1d>},
    {"BatchNorm2d", batch_norm<nn::BatchNorm2d>},
    {"BatchNorm3d", batch_norm<nn::BatchNorm3d>},
    {"CELU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::CELU>(argument(a, "alpha", 1.0));
     }},
    {"Conv1d", conv<1>},
    {"Conv2d", conv<2>},
    {"Conv3d", conv<3>},
    {"ELU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::ELU>(argument(a, "alpha", 1.0));
     }},
    {"Embedding", embedding},
    {"Flatten",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Flatten>(argument<int64_t>(a, "start_dim", 1),
                                            argument<int64_t>(a, "end_dim", -1));
     }},
    {"GELU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::GELU>(argument<std::string>(a, "approximate", "none"));
     }},
    {"GLU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::GLU>(argument<int64_t>(a, "dim", -1));
     }},
    {"GroupNorm",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::GroupNorm>(
           a["num_groups"].get<int64_t>(), a["num_channels"].get<int64_t>(),
           nn::GroupNormOptions{argument(a, "eps", 1e-5), argument(a, "affine", true)});
     }},
    {"Hardsigmoid", plain<nn::Hardsigmoid>},
    {"Hardswish", plain<nn::Hardswish>},
    {"Hardtanh",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Hardtanh>(argument(a, "min_val", -1.0),
                                             argument(a, "max_val", 1.0));
     }},
    {"LayerNorm", layer_norm},
    {"LeakyReLU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::LeakyReLU>(argument(a, "negative_slope", 0.01));
     }},
    {"Linear",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Linear>(a["in_features"].get<int64_t>(),
                                           a["out_features"].get<int64_t>(),
                                           nn::LinearOptions{argument(a, "bias", true)});
     }},
    {"LogSigmoid", plain<nn::LogSigmoid>},
    {"LogSoftmax",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::LogSoftmax>(a["dim"].get<int64_t>());
     }},
    {"MaxPool2d", max_pool},
    {"Mish", plain<nn::Mish>},
    {"PReLU",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::PReLU>(argument<int64_t>(a, "num_parameters", 1),
                                          argument(a, "init", 0.25));
     }},
    {"ReLU6", plain<nn::ReLU6>},
    {"SELU", plain<nn::SELU>},
    {"SiLU", plain<nn::SiLU>},
    {"Softmax",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Softmax>(a["dim"].get<int64_t>());
     }},
    {"Softmin",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Softmin>(a["dim"].get<int64_t>());
     }},
    {"Softplus",
     [](const Json& a) -> LayerPtr {
       return std::make_unique<nn::Softplus>(argument(a, "beta", 1.0),
                                             argument(a, "threshold", 20.0));
     }},
    {"Softsign", plain<nn::Softsign>},
    {"Tanhshrink", plain<nn::Tanhshrink>},
};

void compare_call(const GoldenFile& file, nn::Layer& module, const std::string& call, double rtol,
                  double atol) {
  const Tensor input = file.tensor(call + ".in0");
  const bool wants_gradient = file.has(call + ".in0.grad");
  if (wants_gradient) input.set_requires_grad();
  module.zero_grad();
  const Tensor output = module(input);
  expect_close(output, file.tensor(call + ".out0"), rtol, atol, call + " output");
  if (file.has(call + ".out0.grad")) {
    output.backward(file.tensor(call + ".out0.grad"));
    if (wants_gradient)
      expect_close(input.grad(), file.tensor(call + ".in0.grad"), rtol, atol,
                   call + " gradient of the input");
    std::map<std::string, Tensor> parameters;
    for (const auto& [name, parameter] : module.named_parameters()) parameters[name] = parameter;
    for (const auto& [name, gradient] : file.all(call + ".grad."))
      expect_close(parameters[name].grad(), gradient, rtol, atol, call + " gradient of " + name);
  }
  const eager::NamedTensors state = module.state_dict();
  for (const auto& [name, value] : file.all(call + ".after."))
    expect_close(state.at(name), value, rtol, atol, call + " afterwards " + name);
}

void compare_file(const std::string& name) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/" + name + ".safetensors");
  const GoldenFile file(path);
  Coverage coverage(name);
  for (const Json& c : file.cases) {
    const std::string class_name = c["class"], id = c["id"];
    const auto factory = factories.find(class_name);
    LayerPtr module = factory == factories.end() ? nullptr : factory->second(c["args"]);
    if (module == nullptr) {
      coverage.left_out(factory == factories.end() ? class_name
                                                   : class_name + " with " + c["args"].dump());
      continue;
    }
    SCOPED_TRACE(id + " " + c["args"].dump());
    coverage.ran();
    try {
      module->load_state_dict(file.all(id + ".state."));
      module->train(c["train"].get<bool>());
      for (size_t k = 0; k < c["calls"].size(); ++k)
        compare_call(file, *module, id + "." + std::to_string(k), c["rtol"], c["atol"]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  coverage.print();
  EXPECT_GT(coverage.count(), 0);
}

TEST(modules, agree_with_pytorch_on_small_ones) { compare_file("modules_small"); }
TEST(modules, agree_with_pytorch_on_convolutions) { compare_file("modules_conv"); }
TEST(modules, agree_with_pytorch_on_norms) { compare_file("modules_norm"); }

}  // namespace
}  // namespace taper::tests
