#include "taper/exporter/nn/module.h"

#include <gmock/gmock.h>

#include <functional>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/nn/nn.h"
#include "taper/tests/support/data.h"

namespace taper::nn {
namespace {

struct Block : Module {
  Linear inner{2, 2};
  TAPER_MODULE(inner)
  Tensor forward(Tensor x) { return inner(x); }
};

struct Model : Module {
  Linear first{3, 2};
  BatchNorm1d norm{2};
  std::vector<Block> blocks{Block(), Block()};
  std::shared_ptr<Linear> optional;
  Parameter scale = Tensor::from<float>({1, 2}, {2});
  Tensor offset = Tensor::from<float>({3}, {1});
  TAPER_MODULE(first, norm, blocks, optional, scale, offset)
  Tensor forward(Tensor x) {
    x = norm(first(x));
    for (Block& block : blocks) x = block(x);
    return x;
  }
};

struct Tied : Module {
  Linear a{2, 2}, b{2, 2};
  Tied() { b.weight = a.weight; }
  TAPER_MODULE(a, b)
};

std::vector<std::string> names(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : named) result.push_back(name);
  return result;
}

TEST(module, names_parameters_and_buffers_by_their_paths_in_order) {
  Model model;
  EXPECT_THAT(names(model.named_parameters()),
              testing::ElementsAre("first.weight", "first.bias", "norm.weight", "norm.bias",
                                   "blocks.0.inner.weight", "blocks.0.inner.bias",
                                   "blocks.1.inner.weight", "blocks.1.inner.bias", "scale"));
  EXPECT_THAT(names(model.named_buffers()),
              testing::ElementsAre("norm.running_mean", "norm.running_var",
                                   "norm.num_batches_tracked", "offset"));
}

TEST(module, names_its_tensors_and_modules_as_soon_as_it_exists) {
  Model model;
  EXPECT_EQ(model.first.weight.name(), "first.weight");
  EXPECT_EQ(model.blocks[1].inner.bias.name(), "blocks.1.inner.bias");
  EXPECT_EQ(model.blocks[1].name(), "blocks.1");
}

TEST(module, lists_a_shared_parameter_once) {
  Tied tied;
  EXPECT_THAT(names(tied.named_parameters()), testing::ElementsAre("a.weight", "a.bias", "b.bias"));
  EXPECT_EQ(tied.state_dict().size(), 4u);
  EXPECT_EQ(tied.a.weight.name(), "a.weight");
}

TEST(module, shares_parameters_with_its_copy) {
  Linear linear(2, 2);
  Linear copy = linear;
  EXPECT_TRUE(copy.weight.is_same(linear.weight));
}

TEST(module, sets_training_in_all_modules_below) {
  Model model;
  model.eval();
  EXPECT_FALSE(model.norm.training());
  EXPECT_FALSE(model.blocks[1].inner.training());
  model.train();
  EXPECT_TRUE(model.blocks[1].inner.training());
}

TEST(module, gives_back_its_state_through_a_file) {
  const auto path = tests::scratch_file("model.safetensors");
  Model a, b;
  a.save(path);
  EXPECT_NE(a.first.weight.to_vector<float>(), b.first.weight.to_vector<float>());
  b.load(path);
  EXPECT_EQ(a.first.weight.to_vector<float>(), b.first.weight.to_vector<float>());
  EXPECT_TRUE(b.first.weight.requires_grad());
}

TEST(module, refuses_a_state_that_does_not_fit_and_stays_as_it_was) {
  Model model;
  NamedTensors state = model.state_dict();
  state["extra"] = Tensor::from<float>({1}, {1});
  state.erase("scale");
  try {
    model.load_state_dict(state);
    ADD_FAILURE();
  } catch (const ExportError& error) {
    EXPECT_STREQ(error.what(),
                 "load_state_dict: the state lacks scale; the module has no extra; pass strict = "
                 "false to load the others");
  }
  model.load_state_dict(state, false);
  state["offset"] = Tensor::from<float>({1, 2}, {2});
  try {
    model.load_state_dict(state, false);
    ADD_FAILURE();
  } catch (const ExportError& error) {
    EXPECT_STREQ(error.what(), "load_state_dict: 'offset' is (2) in the state, (1) in the module");
  }
}

TEST(module, casts_its_floating_point_tensors) {
  Model model;
  model.to(DType::f64);
  EXPECT_EQ(model.first.weight.dtype(), DType::f64);
  EXPECT_EQ(model.norm.running_mean.dtype(), DType::f64);
  EXPECT_EQ(model.norm.num_batches_tracked.dtype(), DType::i64);
  EXPECT_TRUE(model.first.weight.requires_grad());
  EXPECT_EQ(model.first.weight.name(), "first.weight");
}

TEST(module, can_be_frozen) {
  Model model;
  model.set_requires_grad(false);
  EXPECT_FALSE(model.first.weight.requires_grad());
  EXPECT_EQ(model.named_parameters().size(), 9u);
}

TEST(sequential, runs_layers_and_user_modules_in_order) {
  Sequential net(Linear(3, 2), ReLU(), Block());
  EXPECT_THAT(names(net.named_parameters()),
              testing::ElementsAre("0.weight", "0.bias", "2.inner.weight", "2.inner.bias"));
  EXPECT_EQ(eager::to_string(net(Tensor::from<float>({1, 2, 3}, {1, 3})).sizes()), "(1, 2)");
  EXPECT_EQ(net.size(), 3u);
}

TEST(dropout, zeroes_and_scales_while_training_only) {
  Dropout dropout(0.25);
  const Tensor x = Tensor::from(std::vector<float>(10000, 3), {10000});
  int zeros = 0;
  for (const float y : dropout(x).to_vector<float>()) {
    EXPECT_TRUE(y == 0 || y == 4);
    zeros += y == 0;
  }
  EXPECT_NEAR(zeros, 2500, 200);
  dropout.eval();
  EXPECT_EQ(dropout(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_THROW(Dropout(1.5), EagerError);
}

TEST(batch_norm, says_which_ranks_it_takes) {
  BatchNorm2d norm(3);
  try {
    norm(Tensor::from(std::vector<float>(6), {2, 3}));
    ADD_FAILURE();
  } catch (const EagerError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("module_test.cpp:"));
    EXPECT_THAT(error.what(),
                testing::HasSubstr("BatchNorm2d: input (2, 3) has 2 dimensions, it takes 4"));
  }
}

TEST(batch_norm, without_a_momentum_keeps_the_mean_over_all_batches) {
  BatchNorm1d norm(1, {.momentum = std::nullopt});
  norm(Tensor::from<float>({0, 2}, {2, 1}));   // mean 1, variance 2
  norm(Tensor::from<float>({4, 10}, {2, 1}));  // mean 7, variance 18
  EXPECT_EQ(norm.num_batches_tracked.item(), 2);
  EXPECT_EQ(norm.running_mean.item(), 4);
  EXPECT_EQ(norm.running_var.item(), 10);
}

TEST(batch_norm, needs_more_than_one_value_a_channel_to_train) {
  const auto expect_refused = [](const std::string& message, const std::function<void()>& run) {
    EXPECT_THAT(run, testing::ThrowsMessage<EagerError>(testing::HasSubstr(
                         message + " has one value for each channel; training needs more")));
  };
  BatchNorm1d line(3);
  BatchNorm2d plane(3), without_statistics(3, {.track_running_stats = false});
  const Tensor one = eager::ones({1, 3}), pixel = eager::ones({1, 3, 1, 1});
  expect_refused("BatchNorm1d: input (1, 3)", [&] { line(one); });
  expect_refused("BatchNorm2d: input (1, 3, 1, 1)", [&] { plane(pixel); });
  plane.eval(), without_statistics.eval();
  EXPECT_EQ(plane(pixel).numel().value(), 3);
  expect_refused("BatchNorm2d: input (1, 3, 1, 1)", [&] { without_statistics(pixel); });
  EXPECT_EQ(line(eager::ones({2, 3})).numel().value(), 6);
}

TEST(conv, refuses_options_that_do_not_fit) {
  EXPECT_THROW(Conv2d(3, 4, {.kernel_size = 3, .groups = 2}), ExportError);
  EXPECT_THROW(Conv2d(3, 4, {.kernel_size = 3, .stride = 2, .padding = "same"}), ExportError);
  EXPECT_THROW(Conv2d(3, 4, {.kernel_size = 3, .padding = "some"}), ExportError);
}

TEST(embedding, starts_its_padding_row_at_zero) {
  Embedding embedding(4, 2, {.padding_idx = -1});
  EXPECT_EQ(embedding(Tensor::from<int64_t>({3}, {1})).to_vector<float>(),
            (std::vector<float>{0, 0}));
  EXPECT_THROW(Embedding(4, 2, {.padding_idx = 4}), EagerError);
}

}  // namespace
}  // namespace taper::nn
