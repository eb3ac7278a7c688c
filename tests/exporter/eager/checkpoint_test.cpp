// Checkpoints in eager. The reference is the same function without a checkpoint.
#include "taper/exporter/eager/checkpoint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

Tensor values_of(const Ints& sizes, int64_t seed) {
  Generator generator(seed);
  return randn(Dims(sizes.begin(), sizes.end()), DType::f32, generator);
}
Tensor leaf(const Ints& sizes, int64_t seed = 1) {
  return values_of(sizes, seed).set_requires_grad();
}
std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

Tensors plain(const Function& function, const Tensors& inputs) { return function(inputs); }
Tensors checkpointed(const Function& function, const Tensors& inputs) {
  return checkpoint(function, inputs);
}
using Caller = Tensors (*)(const Function&, const Tensors&);

/// The gradients of leaves after the backward pass of a loss.
std::vector<std::vector<float>> gradients(const Tensor& loss, const Tensors& leaves) {
  for (const Tensor& t : leaves) t.set_grad({});
  loss.backward();
  std::vector<std::vector<float>> all;
  for (const Tensor& t : leaves)
    all.push_back(t.grad().defined() ? values(t.grad()) : std::vector<float>());
  return all;
}

/// Two layers with a residual sum.
struct Block {
  Tensor w1 = leaf({8, 8}, 3), b1 = leaf({8}, 4), w2 = leaf({8, 8}, 5);
  Tensor operator()(const Tensor& x) const { return x + linear(gelu(linear(x, w1, b1)), w2); }
};

TEST(checkpoint, gives_the_gradients_without_it_bit_for_bit) {
  const Block block;
  const Tensor x = leaf({4, 8});
  const Tensors leaves{x, block.w1, block.b1, block.w2};
  const auto loss = [&](Caller call) {
    const Tensor y = call([&](const Tensors& in) -> Tensors { return {block(in[0])}; }, {x})[0];
    return sum(y * y);
  };
  EXPECT_EQ(values(loss(checkpointed)), values(loss(plain)));
  EXPECT_EQ(gradients(loss(checkpointed), leaves), gradients(loss(plain), leaves));
}

TEST(checkpoint, of_one_input_and_one_result_takes_a_plain_function) {
  const Block block;
  const Tensor x = leaf({4, 8});
  EXPECT_EQ(gradients(sum(checkpoint([&](const Tensor& t) { return block(t); }, x)), {x, block.w1}),
            gradients(sum(block(x)), {x, block.w1}));
}

TEST(checkpoint, runs_the_function_once_more_for_a_whole_backward_pass) {
  const Block block;
  const Tensor x = leaf({4, 8});
  int calls = 0, ends = 0;
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        ++calls;
        const Tensor result = block(block(t));
        ++ends;
        return result;
      },
      x);
  EXPECT_EQ(calls, 1);
  sum(y).backward();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ends, 1) << "the last sum is not needed again";
}

TEST(checkpoint, runs_the_function_once_where_no_gradient_is_wanted) {
  const Block block;
  int calls = 0;
  const auto function = [&](const Tensor& t) {
    ++calls;
    return block(t);
  };
  NoGrad guard;
  EXPECT_FALSE(checkpoint(function, leaf({4, 8})).requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST(checkpoint, may_have_several_results_and_inputs_without_gradients) {
  const Tensor x = leaf({3, 4}), y = leaf({3, 4}, 2), mask = gt(values_of({3, 4}, 3), 0);
  const Tensor index = Tensor::from<int64_t>({2, 0}, {2});
  const Function function = [](const Tensors& in) -> Tensors {
    const Tensor a = where(in[2], exp(in[0]), tanh(in[1]));
    return {a * a, index_select(sin(a), 0, in[3]), in[3] + 1};
  };
  const auto loss = [&](Caller call, bool second) {
    const Tensors r = call(function, {x, y, mask, index});
    EXPECT_THAT(r[2].to_vector<int64_t>(), testing::ElementsAre(3, 1));
    return second ? sum(r[0]) + sum(r[1]) : sum(r[0]);
  };
  for (const bool second : {false, true})
    EXPECT_EQ(gradients(loss(checkpointed, second), {x, y}),
              gradients(loss(plain, second), {x, y}));
}

TEST(checkpoint, may_be_nested) {
  const Block a, b;
  const Tensor x = leaf({4, 8});
  int inner = 0;
  const auto loss = [&](Caller call) {
    const Function deep = [&, call](const Tensors& in) -> Tensors {  // backward runs it, too
      const Tensor y = call(
          [&](const Tensors& t) -> Tensors {
            ++inner;
            return {a(t[0])};
          },
          {sin(in[0])})[0];
      return {b(tanh(y))};
    };
    return sum(call(deep, {x})[0]);
  };
  const Tensors leaves{x, a.w1, a.w2, b.w1, b.b1};
  const auto expected = gradients(loss(plain), leaves);
  inner = 0;
  EXPECT_EQ(gradients(loss(checkpointed), leaves), expected);
  EXPECT_EQ(inner, 3) << "forward, for the outer checkpoint, for the inner one";
}

TEST(checkpoint, draws_the_same_random_numbers_again) {
  const Block block;
  const Tensor x = leaf({16, 8});
  Generator own(7);
  const auto loss = [&](Caller call) {
    manual_seed(5);
    own.seed(7);
    const Tensor y = call(
        [&](const Tensors& in) -> Tensors {
          const Tensor first = dropout(block(in[0]), 0.5);
          const Tensor noise = rand_like(first) + rand(first.sizes(), DType::f32, own);
          return {dropout(exp(first * noise), 0.3, true, own)};
        },
        {x})[0];
    return sum(y);
  };
  const auto run = [&](Caller call) {
    auto all = gradients(loss(call), {x, block.w1, block.w2});
    all.push_back(values(rand({3})));  // the streams go on behind the first draws
    all.push_back(values(rand({3}, DType::f32, own)));
    return all;
  };
  EXPECT_EQ(run(checkpointed), run(plain));
}

TEST(checkpoint, can_be_differentiated_again) {
  const Block block;
  const Tensor x = leaf({4, 8});
  const auto second = [&](Caller call) {
    const Tensor y =
        call([&](const Tensors& in) -> Tensors { return {tanh(block(in[0]))}; }, {sin(x)})[0];
    const Tensor first = grad({sum(y * y)}, {x}, {}, /*create_graph=*/true)[0];
    return gradients(sum(first * first), {x, block.w1, block.w2});
  };
  EXPECT_EQ(second(checkpointed), second(plain));
  EXPECT_EQ(gradgradcheck(
                [](const Tensors& in) {
                  return sum(checkpoint([](const Tensor& t) { return exp(sin(t)); }, in[0]));
                },
                {leaf({3}, 2)}),
            "");
}

TEST(checkpoint, serves_several_backward_passes) {
  const Tensor x = leaf({4});
  int calls = 0;
  const Tensor y = sum(checkpoint(
      [&](const Tensor& t) {
        ++calls;
        return exp(sin(t));
      },
      x));
  y.backward({}, /*retain_graph=*/true);
  const std::vector<float> once = values(x.grad());
  EXPECT_EQ(calls, 2);
  y.backward();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(values(x.grad()), values(Tensor::from(once, {4}) * 2));
  EXPECT_THROW_MESSAGE(y.backward(), "retain_graph = true");
}

TEST(checkpoint, gives_gradients_of_chosen_tensors) {
  const Block block;
  const Tensor x = leaf({4, 8});
  const auto of = [&](Caller call) {
    const Tensor middle = tanh(x);
    const Tensor y =
        call([&](const Tensors& in) -> Tensors { return {block(in[0])}; }, {middle})[0];
    std::vector<std::vector<float>> all;
    for (const Tensor& g : grad({sum(y * y)}, {middle, block.w2})) all.push_back(values(g));
    return all;
  };
  EXPECT_EQ(of(checkpointed), of(plain));
}

TEST(checkpoint, may_compute_gradients_itself) {
  const Block block;
  const Tensor x = leaf({4, 8});
  const auto loss = [&](Caller call) {
    const Function penalty = [&](const Tensors& in) -> Tensors {
      const Tensor y = sum(tanh(block(in[0])));
      const Tensor slope = grad({y}, {in[0]}, {}, /*create_graph=*/true)[0];
      return {y + sum(slope * slope)};
    };
    return call(penalty, {x})[0];
  };
  EXPECT_EQ(gradients(loss(checkpointed), {x, block.w1, block.w2}),
            gradients(loss(plain), {x, block.w1, block.w2}));
}

TEST(checkpoint, holds_custom_functions_views_and_writes_in_place) {
  const CustomFunction cube{
      "cube", [](const Tensors& in) -> Tensors { return {in[0] * in[0] * in[0]}; },
      [](const Tensors& in, const Tensors&, const Gradients& dy) -> Gradients {
        return {in[0] * in[0] * 3 * dy[0]};
      }};
  const Tensor x = leaf({4, 6});
  const auto loss = [&](Caller call) {
    const Function function = [&](const Tensors& in) -> Tensors {
      Tensor y = sin(in[0]);
      y.slice(1, 0, 3).mul_(2);
      y = apply(cube, {y.transpose(0, 1)})[0] + in[0].transpose(0, 1);
      y.select(0, 1).add_(y.select(0, 2));
      return {tanh(y.reshape({3, 8}))};
    };
    const Tensor y = call(function, {x})[0];
    return sum(y * y);
  };
  EXPECT_EQ(gradients(loss(checkpointed), {x}), gradients(loss(plain), {x}));
}

// ---- memory ----

/// The most bytes that live while functions of a deep network run.
size_t peak_of(Caller call, int layers) {
  constexpr int64_t rows = 256, features = 64;
  Tensors weights;
  for (int i = 0; i < layers; ++i) weights.push_back(leaf({features, features}, i));
  const Tensor input = values_of({rows, features}, 99);
  const size_t before = memory_use().live_bytes;
  size_t peak = 0;
  const auto look = [&] { peak = std::max(peak, memory_use().live_bytes - before); };
  Tensor x = input;
  for (const Tensor& w : weights)
    x = call(
        [&look, &w](const Tensors& in) -> Tensors {
          const Tensor y = sigmoid(tanh(gelu(sin(linear(in[0], w)))));
          look();
          return {in[0] + y};
        },
        {x})[0];
  const Tensor loss = sum(x);
  x.register_hook([&](const Tensor&) {
    look();
    return Tensor();
  });
  x = {};
  loss.backward();
  look();
  return peak;
}

TEST(checkpoint, needs_less_memory) {
  const size_t without = peak_of(plain, 12), with = peak_of(checkpointed, 12);
  std::cout << "peak of live bytes, 12 layers: " << without << " without checkpoints, " << with
            << " with\n";
  // without: five values of each layer; with: one, and those of one layer
  EXPECT_LT(with, without / 2);
}

TEST(checkpoint, frees_its_values_after_backward) {
  const Tensor x = leaf({64, 64});
  const auto function = [](const Tensor& t) { return sin(exp(tanh(t))); };
  Tensor loss = sum(checkpoint(function, x));
  x.set_grad(zeros({64, 64}));
  const size_t before = memory_use().live_bytes;
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_EQ(memory_use().live_bytes, before) << "values must not stay for a second backward";
  loss.backward();
  loss = {};
  EXPECT_LE(memory_use().live_bytes, before);
}

TEST(checkpoint, frees_a_long_chain_without_recursion) {
  Tensor x = leaf({1});
  for (int i = 0; i < 100'000; ++i) x = checkpoint([](const Tensor& t) { return sin(t); }, x);
  x = {};
}

// ---- errors ----

TEST(checkpoint, names_the_line_of_an_error_in_the_function) {
  const Tensor x = leaf({2, 3});
  const int line = __LINE__ + 1;
  const auto wrong = [&] { checkpoint([](const Tensor& t) { return matmul(t, t); }, x); };
  EXPECT_THAT(wrong, ThrowsMessage<EagerError>(
                         HasSubstr("checkpoint_test.cpp:" + std::to_string(line) + ": matmul")));
  int calls = 0;
  const int second = __LINE__ + 1;
  const Tensor y = checkpoint([&](const Tensor& t) { return exp(calls++ ? matmul(t, t) : t); }, x);
  EXPECT_THAT([&] { sum(y).backward(); },
              ThrowsMessage<EagerError>(
                  HasSubstr("checkpoint_test.cpp:" + std::to_string(second) + ": matmul")));
}

TEST(checkpoint, says_when_the_function_does_something_else) {
  const Tensor x = leaf({2, 3});
  int calls = 0;
  Tensor y = checkpoint([&](const Tensor& t) { return exp(calls++ ? t.transpose(0, 1) : t); }, x);
  EXPECT_THROW_MESSAGE(
      sum(y).backward(),
      "checkpoint: the function must do the same in both calls; the first call kept f32 (2, 3) for "
      "backward, the second call f32 (3, 2)");
  calls = 0;
  y = checkpoint([&](const Tensor& t) { return calls++ ? t + 1 : exp(exp(t)); }, x);
  EXPECT_THROW_MESSAGE(sum(y).backward(), "kept 2 tensors for backward, the second call 0");
}

TEST(checkpoint, notices_that_an_input_or_a_captured_tensor_was_overwritten) {
  const Tensor w = leaf({3});
  Tensor input = values_of({3}, 2), captured = values_of({3}, 3);
  const auto run = [&] {
    return sum(checkpoint([&](const Tensor& t) { return exp(t * w * w) * captured; }, input));
  };
  Tensor loss = run();
  const int line = __LINE__ + 1;
  input.add_(1);
  const std::string place = "checkpoint_test.cpp:" + std::to_string(line);
  EXPECT_THROW_MESSAGE(loss.backward(),
                       "add_ at " + place + " overwrote a value that checkpoint at");
  loss = run();
  captured.mul_(2);
  EXPECT_THROW_MESSAGE(loss.backward(), "overwrote a value that checkpoint at");
  loss = run();
  {
    NoGrad guard;
    Tensor(w).mul_(2);
  }
  EXPECT_THROW_MESSAGE(loss.backward(), "overwrote a value that mul at");
}

TEST(checkpoint, refuses_what_it_cannot_call) {
  const Tensor x = leaf({3});
  EXPECT_THROW_MESSAGE(checkpoint(Function(), {x}), "checkpoint: there is no function");
  EXPECT_THROW_MESSAGE(checkpoint(std::function<Tensor(const Tensor&)>(), x),
                       "checkpoint: there is no function");
  EXPECT_THROW_MESSAGE(
      checkpoint([](const Tensors& in) -> Tensors { return {in[0]}; }, {x, Tensor()}),
      "checkpoint: input 1 is an undefined tensor");
}

TEST(checkpoint, knows_when_it_computes_again) {
  std::vector<bool> seen;
  const Tensor x = leaf({3});
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        seen.push_back(computes_again());
        return exp(t);
      },
      x);
  sum(y).backward();
  EXPECT_THAT(seen, testing::ElementsAre(false, true));
  EXPECT_FALSE(computes_again());
}

}  // namespace
}  // namespace taper::eager
