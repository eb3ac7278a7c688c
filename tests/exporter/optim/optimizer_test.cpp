#include "taper/exporter/optim/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/optim/optim.h"

namespace taper::optim {
namespace {

Tensor parameter(std::vector<float> values, const char* name = "") {
  const auto n = static_cast<int64_t>(values.size());
  Tensor p = Tensor::from(values, {n});
  p.set_requires_grad();
  if (*name) p.set_name(name);
  return p;
}
void set_gradient(const Tensor& p, std::vector<float> values) {
  p.set_grad(Tensor::from(values, {static_cast<int64_t>(values.size())}));
}

std::vector<std::string> names(const NamedTensors& state) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : state) result.push_back(name);
  return result;
}

TEST(optimizer, has_all_its_states_by_name_before_the_first_step) {
  const Tensor w = parameter({1, 2}, "fc.weight"), b = parameter({3}, "fc.bias");
  EXPECT_THAT(names(SGD({w, b}, {.lr = 0.1, .momentum = 0.9}).state_dict()),
              testing::ElementsAre("optimizer.lr", "optimizer.momentum.fc.bias",
                                   "optimizer.momentum.fc.weight"));
  EXPECT_THAT(names(SGD({w}, {.lr = 0.1}).state_dict()), testing::ElementsAre("optimizer.lr"));
  EXPECT_THAT(names(Adam({b}).state_dict()),
              testing::ElementsAre("optimizer.exp_avg.fc.bias", "optimizer.exp_avg_sq.fc.bias",
                                   "optimizer.lr", "optimizer.step"));
}

TEST(optimizer, names_parameters_outside_modules_by_their_place) {
  EXPECT_THAT(names(SGD({parameter({1}), parameter({2})}, {.momentum = 0.9}).state_dict()),
              testing::Contains("optimizer.momentum.1"));
}

TEST(optimizer, keeps_parameters_without_gradient) {
  const Tensor a = parameter({1}), b = parameter({2});
  SGD optimizer({a, b}, {.lr = 0.5});
  set_gradient(a, {1});
  optimizer.step();
  EXPECT_EQ(a.item(), 0.5);
  EXPECT_EQ(b.item(), 2);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(optimizer, follows_its_learning_rate) {
  const Tensor a = parameter({1});
  SGD optimizer({a}, {.lr = 0.5});
  optimizer.set_lr(0.25);
  set_gradient(a, {1});
  optimizer.step();
  EXPECT_EQ(a.item(), 0.75);
  EXPECT_EQ(optimizer.lr(), 0.25);
}

TEST(optimizer, gives_back_its_state) {
  const Tensor a = parameter({1}, "a"), b = parameter({1}, "a");
  Adam first({a}, {.lr = 0.1}), second({b}, {.lr = 0.5});
  for (int step = 0; step < 3; ++step) {
    set_gradient(a, {1.5f});
    first.step();
  }
  second.load_state_dict(first.state_dict());
  EXPECT_FLOAT_EQ(static_cast<float>(second.lr()), 0.1f);
  b.set_requires_grad(false);
  Tensor copy = b;
  copy.copy_(a.detach());
  b.set_requires_grad(true);
  set_gradient(a, {-1});
  set_gradient(b, {-1});
  first.step();
  second.step();
  EXPECT_EQ(a.item(), b.item());
}

TEST(optimizer, refuses_states_and_parameters_that_do_not_fit) {
  const Tensor a = parameter({1}, "a"), wide = parameter({1, 2}, "a");
  Adam optimizer({a}), other({wide});
  EXPECT_THROW(optimizer.load_state_dict({}), ExportError);
  EXPECT_THROW(optimizer.load_state_dict(other.state_dict()), ExportError);
  EXPECT_THROW(SGD(std::vector<Tensor>{}), ExportError);
  EXPECT_THROW(SGD({Tensor::from<float>({1}, {1})}), ExportError);
  EXPECT_THROW(SGD({a, a}), ExportError);
  EXPECT_THROW(SGD({a}, {.nesterov = true}), ExportError);
  EXPECT_THROW(SGD({a}).set_momentum(0.5), ExportError);
}

/// What `make` throws, from its line on: "optimizer_test.cpp:<line>: " is cut off.
template <class Make>
std::string refusal(const Make& make) {
  try {
    make();
  } catch (const EagerError& e) {
    const std::string text = e.what();
    EXPECT_THAT(text, testing::StartsWith("optimizer_test.cpp:"));
    return text.substr(text.find(": ") + 2);
  }
  return "nothing";
}

TEST(optimizer, says_at_the_line_that_makes_it_which_parameter_does_not_fit) {
  const Tensor a = parameter({1}), b = parameter({1, 2}, "fc.bias");
  EXPECT_EQ(refusal([&] { Adam({b, a, b}); }), "Adam: parameter 2 'fc.bias' (2) is given twice");
  EXPECT_EQ(refusal([&] { SGD({a, a}); }), "SGD: parameter 1 (1) is given twice");
  EXPECT_EQ(refusal([&] { AdamW(std::vector<Tensor>{}); }),
            "AdamW: the list of parameters is empty");
  EXPECT_EQ(refusal([&] {
              SGD(std::vector<ParameterGroup<SGDOptions>>{{{a}, {}}, {{}, {}}});
            }),
            "SGD: the list of parameters of group 1 is empty");
  EXPECT_EQ(refusal([&] { LBFGS({Tensor::from<float>({1}, {1})}); }),
            "LBFGS: parameter 0 (1) does not want a gradient");
  EXPECT_EQ(refusal([&] { RMSprop({a.clone()}); }),
            "RMSprop: parameter 0 (1) is the result of an operation, not a leaf");
  const Tensor z = Tensor::from<Complex64>({{1, 2}}, {1}).set_requires_grad();
  EXPECT_EQ(refusal([&] { Adam({z}); }),
            "Adam: parameter 0 (1) is complex; train its parts (view_as_real), and call "
            "view_as_complex in the model");
  EXPECT_EQ(refusal([&] { Muon({b}); }), "Muon: it takes matrices, parameter 'fc.bias' is (2)");
}

TEST(optimizer, refuses_options_outside_their_ranges) {
  const Tensor a = parameter({1});
  const double nan = std::nan("");
  EXPECT_EQ(refusal([&] { SGD({a}, {.lr = -1}); }), "SGD: lr must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] { SGD({a}, {.lr = nan}); }), "SGD: lr must be 0 or more, got nan");
  EXPECT_EQ(refusal([&] { SGD({a}, {.momentum = -0.5}); }),
            "SGD: momentum must be 0 or more, got -0.5");
  EXPECT_EQ(refusal([&] { SGD({a}, {.weight_decay = -1}); }),
            "SGD: weight_decay must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] {
              Adam({a}, {.betas = {0.9, 1}});
            }),
            "Adam: betas must be in [0, 1), got 1");
  EXPECT_EQ(refusal([&] { AdamW({a}, {.eps = -1e-8}); }),
            "AdamW: eps must be 0 or more, got -1e-08");
  EXPECT_EQ(refusal([&] { Adagrad({a}, {.lr_decay = -1}); }),
            "Adagrad: lr_decay must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] { RMSprop({a}, {.alpha = -1}); }),
            "RMSprop: alpha must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] { Adadelta({a}, {.rho = 1.5}); }),
            "Adadelta: rho must be in [0, 1], got 1.5");
  EXPECT_EQ(refusal([&] { Adamax({a}, {.eps = -1}); }), "Adamax: eps must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] { NAdam({a}, {.momentum_decay = -1}); }),
            "NAdam: momentum_decay must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] { RAdam({a}, {.weight_decay = -1}); }),
            "RAdam: weight_decay must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] {
              Lion({a}, {.betas = {-1, 0.99}});
            }),
            "Lion: betas must be in [0, 1), got -1");
  EXPECT_EQ(refusal([&] { LowBitAdam({a}, {.eps = -1}); }),
            "LowBitAdam: eps must be 0 or more, got -1");
  EXPECT_EQ(refusal([&] {
              Rprop({a}, {.etas = {0.5, 1}});
            }),
            "Rprop: etas must be one in (0, 1) and one above 1, got 0.5 and 1");
  EXPECT_EQ(refusal([&] { Adafactor({a}, {.d = 0.5}); }),
            "Adafactor: d must be 1 or more, got 0.5");
  EXPECT_EQ(refusal([&] { LBFGS({a}, {.max_iter = 0}); }),
            "LBFGS: max_iter must be 1 or more, got 0");
}

TEST(optimizer, says_at_the_users_line_that_it_has_no_momentum) {
  SGD plain({parameter({1})});
  EXPECT_EQ(refusal([&] { plain.set_momentum(0.5); }), "SGD: group 0 was made without momentum");
  EXPECT_EQ(refusal([&] { OneCycleLR(plain, {.total_steps = 5}); }),
            "SGD: group 0 was made without momentum");
  Adagrad without({parameter({1})});
  EXPECT_EQ(refusal([&] { CyclicLR(without, {}); }),
            "Adagrad: it has no momentum that a scheduler could move");
}

TEST(scheduler, says_at_the_line_that_makes_it_what_it_takes) {
  SGD optimizer({parameter({1})}), other({parameter({1})});
  EXPECT_EQ(refusal([&] { StepLR(optimizer, 0); }), "StepLR: step_size must be 1 or more, got 0");
  EXPECT_EQ(refusal([&] { ConstantLR(optimizer, 2); }),
            "ConstantLR: factor must be in [0, 1], got 2");
  EXPECT_EQ(refusal([&] { LinearLR(optimizer, {.end_factor = 2}); }),
            "LinearLR: end_factor must be in [0, 1], got 2");
  EXPECT_EQ(refusal([&] { PolynomialLR(optimizer, 0); }),
            "PolynomialLR: total_iters must be 1 or more, got 0");
  EXPECT_EQ(refusal([&] { LambdaLR(optimizer, nullptr); }), "LambdaLR: factor is no function");
  EXPECT_EQ(
      refusal([&] { SequentialLR(optimizer, {std::make_shared<ExponentialLR>(other, 0.5)}, {}); }),
      "SequentialLR: its schedulers must move its own optimizer");
  EXPECT_EQ(refusal([&] { ReduceLROnPlateau(optimizer, {.factor = 1}); }),
            "ReduceLROnPlateau: factor must be below 1, got 1");
  OneCycleLR once(optimizer, {.total_steps = 1, .cycle_momentum = false});
  EXPECT_EQ(refusal([&] { once.step(); }), "OneCycleLR: step() goes beyond total_steps 1");
}

TEST(scheduler, refuses_what_it_would_divide_by) {
  SGD optimizer({parameter({1})});
  EXPECT_THROW(CosineAnnealingLR(optimizer, 0), ExportError);
  EXPECT_THROW(LinearLR(optimizer, {.start_factor = 0}), ExportError);
}

TEST(clipping, sums_the_squares_of_halves_in_f32) {
  const Tensor p = Tensor::from<float>({0, 0, 0}, {3}).to(DType::f16);
  p.set_grad(Tensor::from<float>({300, 600, 900}, {3}).to(DType::f16));
  EXPECT_NEAR(clip_grad_norm_({p}, 1).item(), 1122.5, 0.1);
  EXPECT_NEAR(p.grad().to(DType::f32).to_vector<float>()[2], 0.8018, 1e-3);
}
TEST(clipping, leaves_small_gradients_alone_and_gives_the_norm_before) {
  const Tensor a = parameter({0, 0}), b = parameter({0});
  set_gradient(a, {3, 0});
  set_gradient(b, {4});
  EXPECT_FLOAT_EQ(clip_grad_norm_({a, b}, 10).item<float>(), 5);
  EXPECT_EQ(b.grad().item(), 4);
  clip_grad_norm_({a, b}, 1);
  EXPECT_NEAR(b.grad().item(), 0.8, 1e-5);
  EXPECT_EQ(clip_grad_norm_({parameter({1})}, 1).item(), 0);
}

// The first step's mean is half of the gradient: of 448, a scale of 1, and of numbers that float8
// e4m3 does not have. From 16 to 32 its steps are 2, and the byte of 20 is even.
TEST(low_bit_adam, rounds_float8_to_the_nearest_and_in_the_middle_to_the_even_byte) {
  const std::vector<std::pair<float, int>> cases{
      {448, 0x7e},  {16, 0x58},          {17, 0x58},          {17.5f, 0x59},
      {18, 0x59},   {18.5f, 0x59},       {19, 0x5a},          {20, 0x5a},
      {21, 0x5a},   {-17, 0xd8},         {-19, 0xda},         {-21, 0xda},
      {0.5f, 0x30}, {1.0f / 1024, 0x00}, {3.0f / 1024, 0x02}, {-3.0f / 1024, 0x82}};
  std::vector<float> gradient(4096, 0);
  for (size_t i = 0; i < cases.size(); ++i) gradient[i] = 2 * cases[i].first;
  const Tensor w = parameter(std::vector<float>(4096, 0), "w");
  LowBitAdam optimizer({w}, {.betas = {0.5, 0.5}, .format = StateFormat::fp8});
  set_gradient(w, gradient);
  optimizer.step();
  const NamedTensors state = optimizer.state_dict();
  EXPECT_EQ(state.at("optimizer.exp_avg.scale.w").to_vector<float>()[0], 1);
  const std::vector<uint8_t> codes = state.at("optimizer.exp_avg.codes.w").to_vector<uint8_t>();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(codes[i], cases[i].second) << cases[i].first;
}

}  // namespace
}  // namespace taper::optim
