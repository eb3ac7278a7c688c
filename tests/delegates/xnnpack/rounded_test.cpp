// Products whose input is rounded to 8 bits while the program runs.
#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr auto no_tensor = std::optional<DType>();

/// How torch.ao (PT2E) rounds a whole tensor.
Tensor rounded_at_once(const Tensor& x) {
  const auto here = Location::current();
  const auto [scale, zero] = eager::call<ops::quantized_decomposed_choose_qparams_tensor>(
      here, x, -128, 127, 1e-5, DType::i8);
  const Tensor q = eager::call<ops::quantized_decomposed_quantize_per_tensor_tensor>(
      here, x, scale, zero, -128, 127, DType::i8);
  return eager::call<ops::quantized_decomposed_dequantize_per_tensor_tensor>(
      here, q, scale, zero, -128, 127, DType::i8, no_tensor);
}
/// How ExecuTorch rounds each row.
Tensor rounded_by_rows(const Tensor& x) {
  const auto here = Location::current();
  const auto [scales, zeros] =
      eager::call<ops::quantized_decomposed_choose_qparams_per_token_asymmetric>(here, x,
                                                                                 DType::i8);
  const Tensor q = eager::call<ops::quantized_decomposed_quantize_per_token>(here, x, scales, zeros,
                                                                             -128, 127, DType::i8);
  return eager::call<ops::quantized_decomposed_dequantize_per_token>(here, q, scales, zeros, -128,
                                                                     127, DType::i8, DType::f32);
}

/// A weight of integers in [-most, most], with a scale for each `block` elements of a row.
struct Weight {
  Weight(int64_t outputs, int64_t inputs, int64_t block, float most, unsigned seed) : block(block) {
    const std::vector<float> q =
        random_tensor({outputs, inputs}, seed, -most, most).to_vector<float>();
    integers = Tensor::from<int8_t>({q.begin(), q.end()}, {outputs, inputs});
    // numbers of bf16, which the library keeps for blocks
    std::vector<float> s =
        random_tensor({outputs, inputs / block}, seed + 1, 0.001f, 0.01f).to_vector<float>();
    for (float& x : s) x = BFloat16(x);
    scales = Tensor::from<float>(s, {outputs, inputs / block});
  }
  Tensor operator()() const {
    const auto here = Location::current();
    if (block == integers.size(1).value())
      return eager::call<ops::quantized_decomposed_dequantize_per_channel>(
          here, integers, scales.reshape({-1}), Tensor(), 0, -128, 127, DType::i8, no_tensor);
    return eager::call<ops::quantized_decomposed_dequantize_per_channel_group>(
        here, integers, scales, Tensor(), -128, 127, DType::i8, block, DType::f32);
  }
  Tensor integers, scales;
  int64_t block;
};

// The library rounds rows in its own way. One of them may be a step beside eager's, so results
// differ by some hundredths of a percent.
constexpr float tolerance = 3e-3f;

TEST(xnnpack_rounded, multiplies_weights_of_8_bits) {
  const Weight weight(20, 40, 40, 127, 1);
  const Tensor bias = random_tensor({20}, 3), x = random_tensor({3, 5, 40}, 4, -2, 3);
  expect_as_eager([&](const Tensor& t) { return linear(rounded_by_rows(t), weight(), bias); }, x,
                  tolerance);
  expect_as_eager([&](const Tensor& t) { return linear(rounded_by_rows(t), weight()); }, x,
                  tolerance);
}

TEST(xnnpack_rounded, multiplies_weights_of_4_bits) {
  const Tensor bias = random_tensor({24}, 3), x = random_tensor({7, 128}, 4, -2, 3);
  for (const int64_t block : {32, 64, 128}) {
    const Weight weight(24, 128, block, 7.9f, 10);
    expect_as_eager([&](const Tensor& t) { return linear(rounded_by_rows(t), weight(), bias); }, x,
                    tolerance);
  }
}

TEST(xnnpack_rounded, multiplies_any_number_of_rows) {
  // kernels compute up to 16 rows at a time, and the last ones may have fewer
  const Weight of_8_bits(24, 64, 64, 127, 12), of_4_bits(24, 64, 64, 7.9f, 14),
      blocks(24, 64, 32, 7.9f, 16);
  for (const Weight* weight : {&of_8_bits, &of_4_bits, &blocks}) {
    const auto product = [&](const Tensor& t) { return linear(rounded_by_rows(t), (*weight)()); };
    Delegated program(product, {Dim::symbol("m", 1, 40), 64});
    Result<Module> module = program.load();
    ASSERT_TRUE(module.ok()) << program.why;
    for (int64_t rows = 1; rows <= 34; ++rows) {
      SCOPED_TRACE(rows);
      const Tensor x = random_tensor({rows, 64}, 18, -2, 3);
      expect_close(call(module.value(), x), product(x).to_vector<float>(), tolerance);
    }
  }
}

TEST(xnnpack_rounded, rounds_rows_at_least_as_finely_as_a_tensor) {
  const Weight weight(16, 64, 64, 127, 20);
  const Tensor x = random_tensor({4, 64}, 21), exact = linear(x, weight());
  const auto whole = [&](const Tensor& t) { return linear(rounded_at_once(t), weight()); };
  Delegated program(whole, {4, 64});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  const auto error = [&](const std::vector<float>& y) {
    const std::vector<float> want = exact.to_vector<float>();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += (y[i] - want[i]) * (y[i] - want[i]);
    return sum;
  };
  EXPECT_LT(error(call(module.value(), x)), 1.05 * error(whole(x).to_vector<float>()));
  EXPECT_GT(error(call(module.value(), x)), 0) << "it rounds";
}

TEST(xnnpack_rounded, rounds_a_value_once_for_all_that_read_it) {
  const Weight a(8, 32, 32, 127, 30), b(8, 32, 32, 127, 32);
  const auto two = [&](const Tensor& t) {
    const Tensor q = rounded_by_rows(t);
    return relu(linear(q, a())) * linear(q, b());
  };
  expect_as_eager(two, random_tensor({3, 32}, 34), tolerance);
}

TEST(xnnpack_rounded, runs_symbolic_sizes_and_allocates_nothing_for_those_it_has_seen) {
  const Weight weight(8, 32, 32, 127, 40);
  const auto product = [&](const Tensor& t) { return linear(rounded_by_rows(t), weight()); };
  const Dim n = Dim::symbol("n", 1, 9);
  Delegated program(product, {n, 32});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  size_t allocations = 0;
  for (const int rows : {9, 1, 4, 9, 1, 4}) {
    if (rows == 9) allocations = memory_use().allocations;
    const Tensor x = random_tensor({rows, 32}, 41);
    expect_close(call(module.value(), x), product(x).to_vector<float>(), tolerance);
  }
  EXPECT_EQ(memory_use().allocations, allocations);
}

TEST(xnnpack_rounded, computes_each_row_for_itself) {
  const Weight weight(8, 32, 32, 127, 45);
  const auto product = [&](const Tensor& t) { return linear(rounded_by_rows(t), weight()); };
  Delegated program(product, {3, 32});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  std::vector<float> x = random_tensor({3, 32}, 46).to_vector<float>();
  const std::vector<float> want = call(module.value(), Tensor::from<float>(x, {3, 32}));
  for (const float special : {NAN, INFINITY, -INFINITY, 3e38f}) {
    x[32 + 5] = special;
    const std::vector<float> have = call(module.value(), Tensor::from<float>(x, {3, 32}));
    EXPECT_TRUE(std::equal(have.begin(), have.begin() + 8, want.begin())) << special;
    EXPECT_TRUE(std::equal(have.begin() + 16, have.end(), want.begin() + 16)) << special;
  }
  for (float& e : x) e = 0;
  for (const float y : call(module.value(), Tensor::from<float>(x, {3, 32}))) EXPECT_EQ(y, 0);
}

TEST(xnnpack_rounded, leaves_weights_that_the_library_does_not_take) {
  const Tensor x = random_tensor({3, 64}, 50);
  const auto kernels_round = [&](const Weight& weight) {
    const auto product = [&](const Tensor& t) { return linear(rounded_by_rows(t), weight()); };
    Delegated program(product, {3, 64}, false);
    Result<Module> module = program.load();
    if (!module.ok()) return ADD_FAILURE() << program.why, false;
    expect_close(call(module.value(), x), product(x).to_vector<float>());
    return program.report.methods[0].operators.contains("amax");
  };
  EXPECT_FALSE(kernels_round(Weight(8, 64, 32, 7.9f, 51)));
  EXPECT_TRUE(kernels_round(Weight(8, 64, 16, 7.9f, 51))) << "blocks of 16";
  EXPECT_TRUE(kernels_round(Weight(8, 64, 32, 127, 51))) << "blocks of 8 bits";
  Weight zero(8, 64, 64, 127, 52);
  zero.scales = Tensor::from<float>(std::vector<float>(8, 0.0f), {8, 1});
  EXPECT_TRUE(kernels_round(zero)) << "scales of 0";
}

}  // namespace
}  // namespace taper::delegates::xnnpack
