// The modules of tests/data/golden/modules.py beside their golden cases: in programs, with random
// numbers, and with mistakes. Containers and layers that are made late.
#include <gtest/gtest.h>

#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/nn/nn.h"
#include "taper/exporter/trace/trace.h"
#include "taper/tests/support/throw_message.h"

namespace taper::nn {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

Tensor random(const Ints& sizes, int64_t seed = 1) {
  eager::Generator generator(seed);
  return eager::randn(Dims(sizes.begin(), sizes.end()), DType::f32, generator);
}
std::vector<float> elements(const Tensor& t) {
  return t.detach().to(DType::f32).to_vector<float>();
}

/// Traces the function and compares what the graph gives with eager.
void expect_traced(const Function& function, const std::vector<InputSpec>& specs,
                   const std::vector<Tensors>& calls) {
  const auto graph = trace("forward", function, specs);
  ir::verify(*graph);
  ir::Interpreter interpreter(*graph);
  for (const Tensors& in : calls) {
    const Tensors got = interpreter.run(in).outputs, want = function(in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(elements(got[i]), elements(want[i])) << i;
  }
}

// ---- random numbers ----

TEST(rrelu, draws_a_slope_for_each_negative_element) {
  RReLU layer(0.2, 0.6);
  eager::manual_seed(1);
  const Tensor x = eager::cat({eager::full({500}, -1.0), eager::full({10}, 2.0)}).detach();
  x.set_requires_grad();
  const Tensor y = layer(x);
  eager::sum(y).backward();
  const std::vector<float> out = elements(y), slopes = elements(x.grad());
  double mean = 0;
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(out[i], -slopes[i]);
    EXPECT_GE(slopes[i], 0.2f);
    EXPECT_LT(slopes[i], 0.6f);
    mean += slopes[i] / 500;
  }
  EXPECT_NEAR(mean, 0.4, 0.03);
  EXPECT_GT(*std::max_element(slopes.begin(), slopes.begin() + 500),
            *std::min_element(slopes.begin(), slopes.begin() + 500) + 0.3f);
  for (size_t i = 500; i < 510; ++i) {
    EXPECT_EQ(out[i], 2);
    EXPECT_EQ(slopes[i], 1);
  }
  EXPECT_THROW_MESSAGE(RReLU(0.5, 0.2), "RReLU: lower 0.5 must be at most upper 0.2");
}

TEST(feature_alpha_dropout, drops_whole_channels_and_keeps_mean_and_variance) {
  FeatureAlphaDropout layer(0.25);
  eager::manual_seed(3);
  const Tensor x = random({4000, 16, 2});
  const std::vector<float> in = elements(x), out = elements(layer(x));
  double mean = 0, square = 0;
  for (const float v : out) mean += v / out.size(), square += v * v / out.size();
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(square, 1, 0.03);
  int dropped = 0;  // then both elements of a channel are one number
  for (size_t i = 0; i < out.size(); i += 2) dropped += out[i] == out[i + 1] && in[i] != in[i + 1];
  EXPECT_NEAR(dropped / 64000.0, 0.25, 0.01);
  EXPECT_THROW_MESSAGE(FeatureAlphaDropout(1.5), "is not a probability");
}

TEST(fractional_max_pool, draws_windows_that_hold_their_maximum) {
  FractionalMaxPool2d pool({.kernel_size = 2, .output_ratio = {{0.7, 0.6}}});
  const Tensor x = random({2, 3, 10, 11});
  eager::manual_seed(1);
  const auto [y, indices] = pool.with_indices(x);
  EXPECT_EQ(eager::to_string(y.sizes()), "(2, 3, 7, 6)");
  EXPECT_EQ(elements(eager::gather(eager::flatten(x, 2), 2, eager::flatten(indices, 2))),
            elements(eager::flatten(y, 2)));
  EXPECT_NE(elements(pool.with_indices(x).second), elements(indices)) << "draws again";
  EXPECT_THROW_MESSAGE(FractionalMaxPool2d({.kernel_size = 2}),
                       "give either output_size or output_ratio");
  EXPECT_THROW_MESSAGE(FractionalMaxPool2d({.kernel_size = 2, .output_ratio = {{1.5, 0.5}}}),
                       "output_ratio 1.5 must lie between 0 and 1");
  EXPECT_THROW_MESSAGE(pool(random({3, 4})), "has 2 dimensions, it takes 3 or 4");
}

TEST(fractional_max_pool, of_volumes_draws_windows_that_hold_their_maximum) {
  FractionalMaxPool3d pool({.kernel_size = {1, 2, 3}, .output_ratio = {{0.5, 0.7, 0.4}}});
  const Tensor x = random({2, 3, 6, 10, 11});
  eager::manual_seed(1);
  const auto [y, indices] = pool.with_indices(x);
  EXPECT_EQ(eager::to_string(y.sizes()), "(2, 3, 3, 7, 4)");
  EXPECT_EQ(elements(eager::gather(eager::flatten(x, 2), 2, eager::flatten(indices, 2))),
            elements(eager::flatten(y, 2)));
  EXPECT_THROW_MESSAGE(FractionalMaxPool3d({.kernel_size = 2}),
                       "FractionalMaxPool3d: give either output_size or output_ratio");
  EXPECT_THROW_MESSAGE(pool(random({3, 4, 5})), "has 3 dimensions, it takes 4 or 5");
}

// ---- norms ----

TEST(sync_batch_norm, trains_as_batch_norm) {
  SyncBatchNorm sync(3);
  BatchNorm2d plain(3);
  const Tensor x = random({4, 3, 2, 5});
  EXPECT_EQ(elements(sync(x)), elements(plain(x)));
  EXPECT_EQ(elements(sync.running_var), elements(plain.running_var));
  EXPECT_EQ(elements(sync(random({4, 3}))).size(), 12u);
}

TEST(cross_map_lrn, has_the_derivative_of_its_sums) {
  const auto lrn = [](const Tensors& in) {
    CrossMapLRN2d layer(3, 0.5, 0.6, 1.5);
    return eager::sum(layer(in[0]) * layer(in[0]));
  };
  EXPECT_EQ(eager::gradcheck(lrn, {random({2, 6, 2, 2}).set_requires_grad()}), "");
  EXPECT_THROW_MESSAGE(CrossMapLRN2d(0), "size must be 1 or more");
}

// ---- adaptive softmax ----

struct Words : Module {
  AdaptiveLogSoftmaxWithLoss softmax{16, 20, {4, 9}};
  TAPER_MODULE(softmax)
};

TEST(adaptive_log_softmax, adds_up_to_one_and_agrees_with_its_parts) {
  Words words;
  const Tensor x = random({7, 16});
  const Tensor all = words.softmax.log_prob(x);
  EXPECT_EQ(eager::to_string(all.sizes()), "(7, 20)");
  for (const float total : elements(eager::sum(eager::exp(all), {1}))) EXPECT_NEAR(total, 1, 1e-5);
  for (int64_t k = 0; k < 20; ++k) {
    const auto [output, loss] = words.softmax(x, eager::full({7}, k, DType::i64));
    EXPECT_EQ(elements(output), elements(all.select(1, k))) << "class " << k;
  }
}

TEST(adaptive_log_softmax, is_a_graph_with_a_symbolic_batch) {
  Words words;
  const Dim batch = Dim::symbol("batch", 1, 9);
  const auto function = [&](const Tensors& in) -> Tensors {
    words.zero_grad();
    const auto [output, loss] = words.softmax(in[0], in[1]);
    loss.backward();
    return {output, loss, words.softmax.head.weight.grad(), words.softmax.log_prob(in[0]),
            words.softmax.predict(in[0])};
  };
  std::vector<Tensors> calls;
  for (const int64_t n : {1, 5})
    calls.push_back({random({n, 16}, n), eager::randint(20, {Dim(n)})});
  expect_traced(function, {input("x", {batch, 16}), input("classes", {batch}, DType::i64)}, calls);
}

TEST(adaptive_log_softmax, refuses_cutoffs_and_targets_that_do_not_fit) {
  const auto make = [](std::vector<int64_t> cutoffs) {
    AdaptiveLogSoftmaxWithLoss(8, 10, std::move(cutoffs));
  };
  EXPECT_THROW_MESSAGE(make({}), "there is no cutoff");
  EXPECT_THROW_MESSAGE(make({0, 3}), "cutoff 0 must be above 0 and below 10");
  EXPECT_THROW_MESSAGE(make({5, 5}), "cutoff 5 must be above 5");
  EXPECT_THROW_MESSAGE(make({5, 10}), "cutoff 10 must be above 5 and below 10");
  Words words;
  EXPECT_THROW_MESSAGE(words.softmax(random({2, 16}), Tensor::from<int64_t>({1, 20}, {2})),
                       "targets must lie in [0, 20), got 1 to 20");
  EXPECT_THROW_MESSAGE(words.softmax(random({2, 15}), Tensor::from<int64_t>({1, 2}, {2})),
                       "must be (N, 16) or (16)");
  EXPECT_THROW_MESSAGE(words.softmax(random({2, 16}), Tensor::from<int64_t>({1}, {})),
                       "does not belong to the input");
}

// ---- packed sequences ----

TEST(packed_sequences, are_sequences_one_by_one) {
  LSTM lstm(3, 5, {.num_layers = 2, .bidirectional = true});
  const Tensors sequences{random({4, 3}, 1), random({1, 3}, 2), random({6, 3}, 3)};
  const auto [output, h, c] = lstm(pack_sequence(sequences, /*enforce_sorted=*/false));
  const Tensors outputs = unpack_sequence(output);
  ASSERT_EQ(outputs.size(), 3u);
  for (size_t b = 0; b < 3; ++b) {
    const auto [one, h1, c1] = lstm(sequences[b]);
    const int64_t at = static_cast<int64_t>(b);
    EXPECT_EQ(elements(outputs[b]), elements(one));
    EXPECT_EQ(elements(h.select(1, at)), elements(h1));
    EXPECT_EQ(elements(c.select(1, at)), elements(c1));
  }
}

struct Two : Module {
  GRU gru{3, 5, {.num_layers = 2, .bidirectional = true}};
  LSTM lstm{10, 4};
  TAPER_MODULE(gru, lstm)
};

TEST(packed_sequences, are_a_graph_whose_lengths_are_an_input) {
  Two two;
  const Dim time = Dim::symbol("time", 1, 8), batch = Dim::symbol("batch", 1, 4);
  const auto function = [&](const Tensors& in) -> Tensors {
    const auto [middle, h] = two.gru(pack_padded_sequence(in[0], in[1], {.enforce_sorted = false}));
    const auto [last, h2, c2] = two.lstm(middle);
    return {pad_packed_sequence(last).first, h, h2, c2};
  };
  expect_traced(function, {input("x", {time, batch, 3}), input("lengths", {batch}, DType::i64)},
                {{random({5, 3, 3}), Tensor::from<int64_t>({2, 5, 1}, {3})},
                 {random({1, 2, 3}), Tensor::from<int64_t>({1, 1}, {2})}});
}

TEST(packed_sequences, refuse_lengths_that_do_not_fit) {
  const Tensor x = random({4, 2, 3});
  const auto pack = [&](std::vector<int64_t> lengths, bool sorted = false) {
    return pack_padded_sequence(x, lengths, {.enforce_sorted = sorted});
  };
  EXPECT_THROW_MESSAGE(pack({0, 1}), "length 0 of sequence 0 must lie in [1, 4]");
  EXPECT_THROW_MESSAGE(pack({1, 5}), "length 5 of sequence 1 must lie in [1, 4]");
  EXPECT_THROW_MESSAGE(pack({1, 2}, true), "sort the batch, or pass enforce_sorted = false");
  EXPECT_THROW_MESSAGE(pack({1, 2, 3}), "there are 3 lengths for a batch of 2");
  EXPECT_THROW_MESSAGE(pad_packed_sequence(pack({2, 4}), {.total_length = 3}),
                       "total_length 3 is less than 4");
  EXPECT_EQ(eager::to_string(pad_packed_sequence(pack({2, 3})).first.sizes()), "(3, 2, 3)");
  EXPECT_THROW_MESSAGE(LSTM(4, 5)(pack({2, 3})), "packed sequences must be (time, batch, 4)");
}

// ---- containers ----

struct Chooser : Module {
  ModuleDict<std::shared_ptr<Layer>> choices{
      {"wide", std::make_shared<Linear>(4, 8)},
      {"act", std::make_shared<ReLU>()},
      {"conv", std::make_shared<Conv1d>(2, 3, ConvOptions<1>{.kernel_size = 1})}};
  ParameterDict scales{{"z", Parameter(eager::ones({2}))}, {"a", Parameter(eager::ones({1}))}};
  ParameterList shifts{Parameter(eager::zeros({3})), Parameter(eager::zeros({1}))};
  TAPER_MODULE(choices, scales, shifts)
  Tensor forward(const Tensor& x) { return (*choices["wide"])(x); }
};

TEST(containers, name_their_members_in_the_order_in_which_they_came) {
  Chooser chooser;
  std::vector<std::string> names;
  for (const auto& [path, tensor] : chooser.named_parameters()) {
    names.push_back(path);
    EXPECT_EQ(tensor.name(), path);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"choices.wide.weight", "choices.wide.bias",
                                             "choices.conv.weight", "choices.conv.bias", "scales.z",
                                             "scales.a", "shifts.0", "shifts.1"}));
  EXPECT_EQ(eager::to_string(chooser(random({2, 4})).sizes()), "(2, 8)");
  chooser.eval();
  EXPECT_FALSE(chooser.choices["conv"]->training());
}

TEST(containers, find_replace_and_erase_by_name) {
  ModuleDict<Linear> dict{{"a", Linear(1, 2)}, {"b", Linear(2, 3)}};
  EXPECT_TRUE(dict.contains("a"));
  dict.insert("a", Linear(5, 6));
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_EQ(eager::to_string(dict["a"].weight.sizes()), "(6, 5)");
  EXPECT_TRUE(dict.erase("a"));
  EXPECT_FALSE(dict.erase("a"));
  EXPECT_EXPORT_ERROR(dict["a"], "there is no \"a\"; the names are b");
  EXPECT_EXPORT_ERROR(dict.insert("x.y", Linear(1, 1)), "must not be empty or contain a dot");
  EXPECT_EXPORT_ERROR(dict.insert("", Linear(1, 1)), "must not be empty");
}

// ---- layers that are made late ----

struct Late : Module {
  LazyConv2d conv{4, {.kernel_size = 3}};
  LazyBatchNorm2d norm;
  LazyLinear fc{5};
  TAPER_MODULE(conv, norm, fc)
  Tensor forward(const Tensor& x) { return fc(eager::flatten(norm(conv(x)), 1)); }
};
struct Early : Module {
  Conv2d conv{2, 4, {.kernel_size = 3}};
  BatchNorm2d norm{4};
  Linear fc{36, 5};
  TAPER_MODULE(conv, norm, fc)
  Tensor forward(const Tensor& x) { return fc(eager::flatten(norm(conv(x)), 1)); }
};

TEST(lazy_layers, are_the_layers_that_the_first_input_asks_for) {
  Late late;
  Early early;
  EXPECT_TRUE(late.parameters().empty());
  EXPECT_FALSE(late.conv.is_made());
  EXPECT_EXPORT_ERROR(late.fc.layer(), "run it once on an input");
  const Tensor x = random({3, 2, 5, 5});
  late(x);
  for (const auto& [name, tensor] : late.state_dict()) EXPECT_EQ(tensor.name(), name);
  early.load_state_dict(late.state_dict());
  EXPECT_EQ(elements(late(x)), elements(early(x)));
  late.eval(), early.eval();
  EXPECT_EQ(elements(late(x)), elements(early(x)));
  EXPECT_THROW_MESSAGE(late(random({3, 1, 5, 5})), "conv");
}

TEST(lazy_layers, have_the_names_of_their_module_before_it_is_asked) {
  Late late;
  late(random({3, 2, 5, 5}));
  EXPECT_EQ(late.conv.layer().weight.name(), "conv.weight");
}

TEST(lazy_layers, of_every_kind_take_their_channels_from_the_right_dimension) {
  EXPECT_EQ(eager::to_string(LazyConv1d(4, {.kernel_size = 2})(random({3, 6})).sizes()), "(4, 5)");
  EXPECT_EQ(eager::to_string(LazyConv3d(4, {.kernel_size = 1})(random({1, 2, 3, 3, 3})).sizes()),
            "(1, 4, 3, 3, 3)");
  EXPECT_EQ(
      eager::to_string(LazyConvTranspose2d(4, {.kernel_size = 2})(random({1, 3, 4, 4})).sizes()),
      "(1, 4, 5, 5)");
  EXPECT_EQ(eager::to_string(LazyBatchNorm1d()(random({4, 3})).sizes()), "(4, 3)");
  EXPECT_EQ(eager::to_string(LazyInstanceNorm1d({.affine = true})(random({3, 4})).sizes()),
            "(3, 4)");
}

TEST(lazy_layers, must_be_made_before_a_trace) {
  LazyLinear late(3);
  EXPECT_THROW_MESSAGE(
      trace("f", [&](const Tensors& in) -> Tensors { return {late(in[0])}; }, {input("x", {2, 4})}),
      "LazyLinear: the layer has no parameters yet; run it once on an input before the trace");
}

TEST(lazy_layers, share_a_layer_between_copies) {
  LazyLinear first(3), second = first;
  first(random({2, 4}));
  EXPECT_TRUE(second.is_made());
  EXPECT_TRUE(second.layer().weight.is_same(first.layer().weight));
}

// ---- parametrized layers and vectors ----

TEST(weight_norm, keeps_the_function_and_trains_length_and_direction) {
  Linear plain(4, 3);
  const Tensor x = random({5, 4});
  WeightNorm normed(plain);
  const std::vector<float> want = elements(plain(x)), got = elements(normed(x));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
  EXPECT_EQ(normed.parameters().size(), 3u);
  expect_traced(
      [&](const Tensors& in) -> Tensors {
        normed.zero_grad();
        eager::sum(normed(in[0])).backward();
        return {normed.parameters()[1].grad(), normed.parameters()[2].grad()};
      },
      {input("x", {5, 4})}, {{x}});
  EXPECT_THROW_MESSAGE(WeightNorm(Linear(2, 2), 2), "dim 2 is outside of the weight (2, 2)");
}

TEST(spectral_norm, comes_to_a_largest_singular_value_of_one) {
  SpectralNorm normed(Linear(6, 4, {.bias = false}), {.n_power_iterations = 50});
  normed(random({1, 6}));
  normed.eval();
  const Tensor weight = normed(eager::eye(6));  // its transpose
  Tensor x = random({4});
  for (int i = 0; i < 100; ++i) {
    const Tensor y = eager::mv(weight.transpose(0, 1), eager::mv(weight, x.slice(0, 0, 4)));
    x = y / eager::vector_norm(y);
  }
  EXPECT_NEAR(eager::vector_norm(eager::mv(weight, x)).item<float>(), 1, 1e-4);
}

TEST(vectors_of_parameters, go_there_and_back) {
  Linear a(3, 2), b(3, 2);
  const Tensor vector = parameters_to_vector(a.parameters());
  EXPECT_EQ(eager::to_string(vector.sizes()), "(8)");
  vector_to_parameters(vector, b.parameters());
  EXPECT_EQ(elements(b.weight), elements(a.weight));
  EXPECT_EQ(elements(b.bias), elements(a.bias));
  EXPECT_THROW_MESSAGE(vector_to_parameters(eager::zeros({7}), b.parameters()),
                       "the parameters have 8 elements, the vector is (7)");
}

}  // namespace
}  // namespace taper::nn
