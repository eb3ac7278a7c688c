#include "taper/exporter/nn/init.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/nn.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::nn {
namespace {

using tests::Json;

struct Statistics {
  double mean = 0, deviation = 0, min = INFINITY, max = -INFINITY;
  double zeros = 0;  ///< the share of them
};
Statistics statistics_of(const Tensor& tensor) {
  const std::vector<float> values = tensor.detach().to_vector<float>();
  const double n = static_cast<double>(values.size());
  Statistics s;
  for (const float v : values)
    s.mean += v / n, s.min = std::min<double>(s.min, v), s.max = std::max<double>(s.max, v);
  for (const float v : values) s.zeros += (v == 0) / n;
  for (const float v : values) s.deviation += (v - s.mean) * (v - s.mean) / n;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

/// Runs the initialiser that a golden row names; false if Taper has none of this name.
bool run(const Json& row, Tensor weight) {
  const Json& args = row["args"];
  const std::string name = row["init"];
  const auto number = [&](const char* key, double fallback) { return args.value(key, fallback); };
  const init::Mode mode =
      args.value("mode", "fan_in") == "fan_in" ? init::Mode::fan_in : init::Mode::fan_out;
  const std::string nonlinearity_name = args.value("nonlinearity", "leaky_relu");
  const init::Nonlinearity nonlinearity = nonlinearity_name == "relu" ? init::Nonlinearity::relu
                                          : nonlinearity_name == "tanh"
                                              ? init::Nonlinearity::tanh
                                              : init::Nonlinearity::leaky_relu;
  if (name == "uniform_")
    init::uniform_(weight, number("a", 0), number("b", 1));
  else if (name == "normal_")
    init::normal_(weight, number("mean", 0), number("std", 1));
  else if (name == "trunc_normal_")
    init::trunc_normal_(weight, number("mean", 0), number("std", 1), number("a", -2),
                        number("b", 2));
  else if (name == "constant_")
    init::constant_(weight, number("val", 0));
  else if (name == "xavier_uniform_")
    init::xavier_uniform_(weight, number("gain", 1));
  else if (name == "xavier_normal_")
    init::xavier_normal_(weight, number("gain", 1));
  else if (name == "kaiming_uniform_")
    init::kaiming_uniform_(weight, number("a", 0), mode, nonlinearity);
  else if (name == "kaiming_normal_")
    init::kaiming_normal_(weight, number("a", 0), mode, nonlinearity);
  else if (name == "eye_")
    init::eye_(weight);
  else if (name == "dirac_")
    init::dirac_(weight);
  else if (name == "orthogonal_")
    init::orthogonal_(weight, number("gain", 1));
  else if (name == "sparse_")
    init::sparse_(weight, number("sparsity", 0), number("std", 0.01));
  else
    return false;
  return true;
}

/// The greatest difference between a matrix's product with its transpose, on the side that is
/// smaller, and the identity.
double distance_from_orthogonal(const Tensor& weight) {
  const int64_t rows = weight.size(0).value(), columns = weight.numel().value() / rows;
  Tensor matrix = weight.reshape({Dim(rows), Dim(columns)});
  if (rows > columns) matrix = matrix.t();
  const int64_t n = std::min(rows, columns);
  const std::vector<float> product = eager::mm(matrix, matrix.t()).to_vector<float>();
  double distance = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      distance = std::max<double>(
          distance, std::abs(product[static_cast<size_t>(i * n + j)] - (i == j ? 1.0f : 0.0f)));
  return distance;
}

TEST(init, has_the_fans_bounds_and_deviations_of_pytorch) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/initializers.json");
  const io::Bytes text = io::read_file(path);
  const Json golden = Json::parse(reinterpret_cast<const char*>(text.data()),
                                  reinterpret_cast<const char*>(text.data()) + text.size());
  tests::Coverage coverage("initializers");
  eager::manual_seed(1);
  for (const Json& row : golden["rows"]) {
    SCOPED_TRACE(row.dump());
    Tensor weight = Tensor::empty(row["shape"].get<eager::Ints>());
    if (!run(row, weight)) {
      coverage.left_out(row["init"]);
      continue;
    }
    coverage.ran();
    EXPECT_EQ(init::fans_of(weight).in, row["fan_in"].get<int64_t>());
    EXPECT_EQ(init::fans_of(weight).out, row["fan_out"].get<int64_t>());
    const Statistics s = statistics_of(weight);
    const double n = static_cast<double>(weight.numel().value()), deviation = row["sample"]["std"];
    EXPECT_NEAR(s.mean, row["sample"]["mean"].get<double>(), 8 * deviation / std::sqrt(n) + 1e-7);
    EXPECT_NEAR(s.deviation, deviation, 0.02 * deviation + 1e-7);
    EXPECT_NEAR(s.zeros, row["sample"]["zeros"].get<double>(), 2 / n + 1e-9);  // a draw may be 0
    if (row.contains("check")) {
      EXPECT_LT(distance_from_orthogonal(weight), 1e-5);
    }
    if (row.contains("exact")) {
      EXPECT_NEAR(s.deviation, row["exact"]["std"].get<double>(), 0.02 * deviation);
      if (row["exact"].contains("bound")) {
        const double bound = row["exact"]["bound"];
        EXPECT_LE(s.max, bound * (1 + 1e-6));
        EXPECT_GE(s.min, -bound * (1 + 1e-6));
        EXPECT_NEAR(s.max, bound, 0.01 * bound);
      }
    }
  }
  coverage.expect_complete();
  EXPECT_EQ(init::gain_of(init::Nonlinearity::tanh), golden["gain"]["tanh"].get<double>());
  EXPECT_EQ(init::gain_of(init::Nonlinearity::relu), golden["gain"]["relu"].get<double>());
  EXPECT_EQ(init::gain_of(init::Nonlinearity::selu), golden["gain"]["selu"].get<double>());
  EXPECT_DOUBLE_EQ(init::gain_of(init::Nonlinearity::leaky_relu),
                   golden["gain"]["leaky_relu"].get<double>());
}

TEST(init, scales_by_the_inputs_or_by_the_outputs) {
  eager::manual_seed(6);
  Tensor weight = Tensor::empty({400, 10, 3, 3});
  for (const init::Mode mode : {init::Mode::fan_in, init::Mode::fan_out}) {
    const double fan = mode == init::Mode::fan_in ? 10 * 9 : 400 * 9;
    init::kaiming_normal_(weight, 0, mode, init::Nonlinearity::relu);
    EXPECT_NEAR(statistics_of(weight).deviation, std::sqrt(2 / fan), 0.02 * std::sqrt(2 / fan));
    init::kaiming_uniform_(weight, 0, mode, init::Nonlinearity::relu);
    EXPECT_NEAR(statistics_of(weight).max, std::sqrt(6 / fan), 0.01 * std::sqrt(6 / fan));
  }
}

TEST(init, gives_layers_the_starting_values_that_pytorch_gives_them) {
  eager::manual_seed(2);
  Linear linear(400, 300);
  EXPECT_NEAR(statistics_of(linear.weight).max, 1 / std::sqrt(400.0), 1e-4);
  EXPECT_NEAR(statistics_of(linear.bias).max, 1 / std::sqrt(400.0), 2e-3);
  Conv2d conv(32, 64, {.kernel_size = 3, .groups = 2});
  EXPECT_NEAR(statistics_of(conv.weight).max, 1 / std::sqrt(16.0 * 9), 1e-4);
  EXPECT_NEAR(statistics_of(Embedding(300, 100).weight).deviation, 1, 0.02);
}

TEST(init, repeats_itself_after_the_same_seed) {
  eager::manual_seed(3);
  const Linear a(5, 5);
  eager::manual_seed(3);
  const Linear b(5, 5), c(5, 5);
  EXPECT_EQ(a.weight.to_vector<float>(), b.weight.to_vector<float>());
  EXPECT_NE(a.weight.to_vector<float>(), c.weight.to_vector<float>());
}

TEST(init, starts_recurrent_and_attention_layers_as_pytorch_does) {
  eager::manual_seed(4);
  LSTM lstm(300, 100);
  for (const Parameter& weight : lstm.weights()) EXPECT_NEAR(statistics_of(weight).max, 0.1, 2e-3);
  MultiheadAttention attention(200, 4, {.add_bias_kv = true});
  EXPECT_NEAR(statistics_of(attention.in_proj_weight).max, std::sqrt(6.0 / 800), 1e-4);
  EXPECT_EQ(statistics_of(attention.in_proj_bias).max, 0);
  EXPECT_EQ(statistics_of(attention.out_proj.bias).max, 0);
  EXPECT_NEAR(statistics_of(attention.out_proj.weight).max, 1 / std::sqrt(200.0), 1e-4);
  Bilinear bilinear(400, 5, 50);
  EXPECT_NEAR(statistics_of(bilinear.weight).max, 1 / std::sqrt(400.0), 1e-4);
  Transformer transformer({.d_model = 64,
                           .nhead = 2,
                           .num_encoder_layers = 1,
                           .num_decoder_layers = 1,
                           .layer = {.dim_feedforward = 32}});
  EXPECT_NEAR(statistics_of(transformer.encoder.layers[0].linear1.weight).max, std::sqrt(6.0 / 96),
              1e-3);
}

TEST(init, hands_the_channels_of_each_group_through) {
  Tensor weight = init::dirac_(Tensor::empty({4, 2, 3}), 2);
  const std::vector<float> values = weight.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], i == 1 || i == 10 || i == 13 || i == 22 ? 1 : 0) << i;
}

TEST(init, rounds_the_share_of_zeros_up) {
  eager::manual_seed(5);
  const std::vector<float> values =
      init::sparse_(Tensor::empty({7, 50}), 0.3, 1).to_vector<float>();
  for (size_t column = 0; column < 50; ++column) {
    int zeros = 0;
    for (size_t row = 0; row < 7; ++row) zeros += values[row * 50 + column] == 0;
    EXPECT_EQ(zeros, 3) << column;  // of 2.1
  }
}

TEST(init, needs_two_dimensions_for_fans) {
  EXPECT_THROW(init::kaiming_uniform_(Tensor::empty({3})), EagerError);
}

}  // namespace
}  // namespace taper::nn
