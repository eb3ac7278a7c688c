// Modules of tests/data/golden/modules.py.
#include "taper/exporter/eager/eager.h"
#include "taper/tests/exporter/nn/factories.h"

namespace taper::tests {
namespace {

template <int n>
Callable fractional_max_pool(const Json& args) {
  nn::FractionalMaxPoolOptions<n> options{.kernel_size = extents<n>(args, "kernel_size", 1)};
  options.output_size = optional_extents<n>(args, "output_size");
  if (args.contains("output_ratio"))
    options.output_ratio = args["output_ratio"].get<std::array<double, n>>();
  const auto m = std::make_shared<nn::FractionalMaxPool<n>>(options);
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            const auto [y, indices] = m->with_indices(c.input(0), c.keyword("random_samples"));
            return {y, indices};
          }};
}

Callable triplet(const Json& args) {
  nn::TripletMarginWithDistanceLossOptions options;
  options.margin = args["margin"].get<double>();
  options.swap = args["swap"].get<bool>();
  const std::string distance = args["distance"], reduction = args["reduction"];
  options.reduction = reduction == "none"   ? nn::Reduction::none
                      : reduction == "mean" ? nn::Reduction::mean
                                            : nn::Reduction::sum;
  if (distance == "cosine")
    options.distance_function = [](const Tensor& a, const Tensor& b) {
      return 1 - eager::cosine_similarity(a, b);
    };
  if (distance == "l1")
    options.distance_function = [](const Tensor& a, const Tensor& b) {
      return eager::sum(eager::abs(a - b), {-1});
    };
  const auto m = std::make_shared<nn::TripletMarginWithDistanceLoss>(options);
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            return {(*m)(c.input(0), c.input(1), c.input(2))};
          }};
}

Callable adaptive_softmax(const Json& args) {
  const auto m = std::make_shared<nn::AdaptiveLogSoftmaxWithLoss>(
      args["in_features"].get<int64_t>(), args["n_classes"].get<int64_t>(),
      args["cutoffs"].get<std::vector<int64_t>>(),
      nn::AdaptiveLogSoftmaxOptions{.div_value = args["div_value"].get<double>(),
                                    .head_bias = args["head_bias"].get<bool>()});
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            const std::string method = argument<std::string>(c.options, "method", "forward");
            if (method == "log_prob") return {m->log_prob(c.input(0))};
            if (method == "predict") return {m->predict(c.input(0))};
            const auto [output, loss] = (*m)(c.input(0), c.input(1));
            return {output, loss};
          }};
}

// ---- packed sequences ----

template <class Options>
Options recurrent_options(const Json& a) {
  Options o;
  o.num_layers = argument<int64_t>(a, "num_layers", 1);
  o.bias = argument(a, "bias", true);
  o.bidirectional = argument(a, "bidirectional", false);
  if constexpr (requires { o.proj_size; }) o.proj_size = argument<int64_t>(a, "proj_size", 0);
  if constexpr (requires { o.relu; })
    o.relu = argument<std::string>(a, "nonlinearity", "tanh") == "relu";
  return o;
}

template <class M, class Options>
Callable packed(const Json& args) {
  const auto m =
      std::make_shared<M>(args["input_size"].get<int64_t>(), args["hidden_size"].get<int64_t>(),
                          recurrent_options<Options>(args));
  return {m, [m](const Call& c) -> std::vector<Tensor> {
            const bool batch_first = c.options["batch_first"];
            const auto sequence =
                nn::pack_padded_sequence(c.input(0), c.keyword("lengths"),
                                         {.batch_first = batch_first, .enforce_sorted = false});
            const auto padded = [&](const nn::PackedSequence& output) {
              return nn::pad_packed_sequence(output, {.batch_first = batch_first,
                                                      .padding_value = -2,
                                                      .total_length = optional_argument<int64_t>(
                                                          c.options, "total_length")})
                  .first;
            };
            if constexpr (std::is_same_v<M, nn::LSTM>) {
              const auto [output, h, cell] = (*m)(sequence, c.input(1), c.input(2));
              return {padded(output), h, cell};
            } else {
              const auto [output, h] = (*m)(sequence, c.input(1));
              return {padded(output), h};
            }
          }};
}

// ---- parametrized layers ----

nn::Linear linear() { return nn::Linear(4, 3); }
nn::Conv2d convolution() { return nn::Conv2d(2, 3, {.kernel_size = 3}); }

template <auto make>
Callable weight_norm(const Json& args) {
  return layer(std::make_shared<nn::WeightNorm<decltype(make())>>(make(), args["dim"]));
}
template <auto make>
Callable spectral_norm(const Json& args) {
  return layer(std::make_shared<nn::SpectralNorm<decltype(make())>>(
      make(), nn::SpectralNormOptions{.n_power_iterations =
                                          argument<int64_t>(args, "n_power_iterations", 1)}));
}

}  // namespace

std::map<std::string, Factory> more_factories() {
  return {
      {"RReLU",
       [](const Json& a) {
         return make_layer<nn::RReLU>(argument(a, "lower", 1.0 / 8), argument(a, "upper", 1.0 / 3));
       }},
      {"FeatureAlphaDropout",
       [](const Json& a) { return make_layer<nn::FeatureAlphaDropout>(a["p"].get<double>()); }},
      {"CrossMapLRN2d",
       [](const Json& a) {
         return make_layer<nn::CrossMapLRN2d>(a["size"].get<int64_t>(), a["alpha"].get<double>(),
                                              a["beta"].get<double>(), a["k"].get<double>());
       }},
      {"SyncBatchNorm",
       [](const Json& a) {
         return make_layer<nn::SyncBatchNorm>(a["num_features"].get<int64_t>(),
                                              nn::BatchNormOptions{.eps = a["eps"].get<double>()});
       }},
      {"FractionalMaxPool2d", fractional_max_pool<2>},
      {"FractionalMaxPool3d", fractional_max_pool<3>},
      {"TripletMarginWithDistanceLoss", triplet},
      {"AdaptiveLogSoftmaxWithLoss", adaptive_softmax},
      {"LSTM.packed", packed<nn::LSTM, nn::LSTMOptions>},
      {"GRU.packed", packed<nn::GRU, nn::RecurrentOptions>},
      {"RNN.packed", packed<nn::RNN, nn::RNNOptions>},
      {"WeightNorm.Linear", weight_norm<linear>},
      {"WeightNorm.Conv2d", weight_norm<convolution>},
      {"SpectralNorm.Linear", spectral_norm<linear>},
      {"SpectralNorm.Conv2d", spectral_norm<convolution>},
  };
}

}  // namespace taper::tests
