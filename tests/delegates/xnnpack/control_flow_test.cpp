// Products in branches and loops, and beside them.
#include <gtest/gtest.h>

#include <algorithm>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

using Tensors = std::vector<Tensor>;

const Tensor weight = random_tensor({8, 8}, 1), other_weight = random_tensor({8, 8}, 2);

/// Half of a product, as often as it is large, behind one of two products.
Tensor branch_and_loop(const Tensor& x) {
  const Tensor y = eager::cond(
      sum(x) > 0, [](const Tensors& t) { return Tensors{relu(linear(t[0], weight))}; },
      [](const Tensors& t) { return Tensors{linear(tanh(linear(t[0], other_weight)), weight)}; },
      {x})[0];
  const Tensors last = eager::while_loop(
      [](const Tensors& t) { return sum(abs(linear(t[0], weight))) > 3; },
      [](const Tensors& t) { return Tensors{linear(t[0], other_weight) * 0.3}; }, {y});
  return linear(last[0], weight);
}

TEST(xnnpack, takes_products_in_branches_and_loops) {
  const Dim batch = Dim::symbol("batch", 1, 6);
  for (const Dim rows : {Dim(4), batch}) {
    Delegated program(branch_and_loop, {rows, 8}, false);
    EXPECT_EQ(program.delegates(), 5) << testing::PrintToString(program.report.notes);
    Result<Module> module = program.load();
    ASSERT_TRUE(module.ok()) << program.why;
    for (const int64_t n : {4, 2, 6, 4}) {
      if (rows.is_constant() && n != 4) continue;
      for (const unsigned seed : {3, 4, 5})
        for (const float low : {-3.0f, -0.1f, 0.0f}) {
          const Tensor x = random_tensor({n, 8}, seed, low, low + 3);
          expect_close(call(module.value(), x), branch_and_loop(x).to_vector<float>());
        }
    }
  }
}

/// A branch in a branch, with a loop in it: all of them read one weight.
Tensor nested(const Tensor& x) {
  const auto product = [](const Tensors& t) { return Tensors{linear(t[0], weight)}; };
  const auto loop = [](const Tensors& t) {
    return eager::while_loop([](const Tensors& u) { return sum(abs(linear(u[0], weight))) > 3; },
                             [](const Tensors& u) { return Tensors{linear(u[0], weight) * 0.3}; },
                             {t[0]});
  };
  const auto branch = [&](const Tensors& t) {
    return eager::cond(sum(t[0]) > 20, product, loop, {linear(t[0], weight)});
  };
  return linear(eager::cond(sum(x) > 0, branch, product, {x})[0], weight);
}
/// Branches that return weights.
Tensor chosen_weights(const Tensor& x) {
  const Tensors chosen = eager::cond(
      sum(x) > 0,
      [](const Tensors& t) {
        return Tensors{weight, weight, t[0]};
      },
      [](const Tensors& t) {
        return Tensors{other_weight, weight, linear(t[0], other_weight)};
      },
      {x});
  return linear(matmul(chosen[2], chosen[0]), chosen[1]);
}

TEST(xnnpack, takes_products_in_nested_bodies_and_leaves_weights_that_bodies_return) {
  for (const auto& [function, delegates] : {std::pair(&nested, 6), std::pair(&chosen_weights, 2)}) {
    Delegated program(function, {4, 8}, false);
    EXPECT_EQ(program.delegates(), delegates) << testing::PrintToString(program.report.notes);
    Result<Module> module = program.load();
    ASSERT_TRUE(module.ok()) << program.why;
    for (const unsigned seed : {3, 4, 5})
      for (const float low : {-3.0f, -0.1f, 0.0f}) {
        const Tensor x = random_tensor({4, 8}, seed, low, low + 3);
        expect_close(call(module.value(), x), function(x).to_vector<float>());
      }
  }
}

size_t count(const std::vector<std::byte>& file, const void* bytes, size_t size) {
  const auto* begin = static_cast<const std::byte*>(bytes);
  size_t found = 0;
  for (auto at = file.begin();; ++at, ++found)
    if (at = std::search(at, file.end(), begin, begin + size); at == file.end()) return found;
}

TEST(xnnpack, stores_weights_of_branches_once_and_forgets_their_sources) {
  const std::string name = "control_flow_test.cpp";
  const std::vector<float> elements = weight.to_vector<float>();
  for (const bool debug : {false, true}) {
    ExportOptions options;
    options.exact = false, options.debug = debug, options.backend = delegate().name();
    Exporter exporter;
    exporter.method("forward", branch_and_loop, {input("x", {4, 8})});
    const std::vector<std::byte> file = exporter.write(options);
    EXPECT_EQ(count(file, elements.data(), elements.size() * sizeof(float)), 1);
    EXPECT_EQ(count(file, name.data(), name.size()) > 0, debug);
  }
}

}  // namespace
}  // namespace taper::delegates::xnnpack
