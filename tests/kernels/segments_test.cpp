// Segments, histograms, positions and mantissas: what PyTorch's recorded cases do not cover. Those
// stand in tests/golden/function_cases.jsonl.
#include <gmock/gmock.h>

#include "taper/tests/kernels/program_check.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Tensors = std::vector<Tensor>;

template <class F>
void expect_refusal(const F& call, const std::string& message) {
  EXPECT_THAT(call, ThrowsMessage<EagerError>(HasSubstr(message)));
}

// ---- segment_reduce ----

TEST(segment_reduce, has_derivatives_of_every_reduction) {
  const Tensor lengths = Tensor::from<int64_t>({2, 1, 0, 0, 3, 0}, {2, 3});
  for (const char* reduce : {"sum", "mean", "max", "min", "prod"})
    expect_right_derivatives(
        [&](const Tensors& in) { return segment_reduce(in[0], reduce, lengths, 1, 0.5); },
        {random_tensor({2, 3, 2}, 7, DType::f64)});
}
TEST(segment_reduce, refuses_segments_that_do_not_fit) {
  const Tensor x = ones({4, 2});
  const auto by = [&](const Tensor& lengths, int64_t axis = 0) {
    return segment_reduce(x, "sum", lengths, axis);
  };
  expect_refusal([&] { by(Tensor::from<int64_t>({1, 2}, {2})); }, "must sum to the extent of data");
  expect_refusal([&] { by(Tensor::from<int64_t>({5, -1}, {2})); }, "must not be negative");
  expect_refusal([&] { by(ones({2})); }, "lengths must be i64 or i32");
  expect_refusal([&] { by(Tensor::from<int64_t>({1, 1}, {2}), 1); }, "and one more dimension");
  expect_refusal([&] { by(Tensor::from<int64_t>({1, 1}, {2}), 2); }, "dim 2 is outside");
  const auto between = [&](const Tensor& o) { return segment_reduce_by_offsets(x, "sum", o); };
  expect_refusal(
      [&] {
        between(Tensor::from<int64_t>({0, 5}, {2}));
      },
      "offsets must lie in [0, 4]");
  expect_refusal([&] { between(Tensor::from<int64_t>({0, 3, 2}, {3})); }, "must not descend");
  expect_refusal([&] { between(zeros({0}, DType::i64)); }, "at least one element");
}
TEST(segment_reduce, leaves_out_what_lies_before_the_first_offset_and_behind_the_last) {
  const Tensor x = Tensor::from<float>({1, 2, 4, 8, 16}, {5});
  EXPECT_EQ(
      segment_reduce_by_offsets(x, "sum", Tensor::from<int64_t>({1, 2, 4}, {3})).to_vector<float>(),
      (std::vector<float>{2, 12}));
}
TEST(segment_reduce, of_a_program_has_segments_of_any_length) {
  const Dim rows = Dim::symbol("rows", 1, 9), segments = Dim::symbol("segments", 1, 5);
  for (const char* reduce : {"sum", "mean", "max", "min", "prod"})
    expect_same_bits_in_program(
        [&](const Tensors& in) { return Tensors{segment_reduce(in[0], reduce, in[1])}; },
        {input("x", {rows, 2}), input("lengths", {segments}, DType::i64)},
        {{random_tensor({5, 2}), Tensor::from<int64_t>({2, 0, 3}, {3})},
         {random_tensor({9, 2}), Tensor::from<int64_t>({9}, {1})},
         {random_tensor({1, 2}), Tensor::from<int64_t>({0, 1, 0, 0, 0}, {5})}});
}

// ---- histogram ----

TEST(histogram, of_a_program_finds_the_range_of_its_data) {
  const Dim n = Dim::symbol("n", 1, 60);
  expect_same_bits_in_program(
      [](const Tensors& in) {
        auto [counts, edges] = histogram(in[0], 5);
        auto [weighted, same] = histogram(in[0], edges, in[1], true);
        return Tensors{counts, edges, weighted};
      },
      {input("x", {n}), input("weight", {n})},
      {{random_tensor({40}), rand({40})}, {random_tensor({1}), rand({1})}, {ones({7}), ones({7})}});
}
TEST(histogram, counts_each_element_of_the_range_once) {
  const Tensor x = random_tensor({10000});
  const auto [counts, edges] = histogram(x, 37);
  EXPECT_EQ(sum(counts).item(), 10000);
  EXPECT_EQ(edges.to_vector<float>().front(), min(x).item<float>());
  EXPECT_EQ(edges.to_vector<float>().back(), max(x).item<float>());
  const auto [again, same] = histogram(x, edges);
  expect_same_bits(again, counts);
  EXPECT_NEAR(sum(std::get<0>(histogram(x, edges, {}, true)) * diff(edges)).item(), 1, 1e-5);
}
TEST(histogram, of_halves_counts_beyond_their_whole_numbers) {
  const auto [counts, edges] = histogram(ones({3000}, DType::bf16), 1, {{0.0, 2.0}});
  EXPECT_EQ(counts.dtype(), DType::bf16);
  EXPECT_EQ(to(counts, DType::f32).to_vector<float>()[0], 3008);  // 3000, rounded once
}

// ---- positions ----

TEST(nonzero_static, of_a_program_has_the_size_it_is_given) {
  const Dim n = Dim::symbol("n", 1, 30);
  expect_same_bits_in_program(
      [](const Tensors& in) {
        return Tensors{nonzero_static(in[0], 4), nonzero_static(gt(in[0], 1), in[0].size(0), 9)};
      },
      {input("x", {n, 3})}, {{relu(random_tensor({5, 3}))}, {zeros({1, 3})}, {ones({30, 3})}});
}
TEST(nonzero_static, finds_positions_in_long_rows) {
  Tensor x = zeros({2, 700});
  select(x, 0, 1).copy_(ones({700}));
  const std::vector<int64_t> found = nonzero_static(x, 701).to_vector<int64_t>();
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[2 * 699 + 1], 699);
  EXPECT_EQ(found[2 * 700], -1);
}

// ---- unique slices and classes, whose number depends on data ----

TEST(unique_dim, of_a_program_has_as_many_slices_as_differ) {
  const auto call = [](const Tensors& in) {
    const auto [slices, inverse, counts] = unique_dim(in[0], 0);
    return Tensors{slices, inverse, counts};
  };
  const Tensor few = floor(mul(rand({12, 5}), 2)), row = reshape(arange(5, DType::f32), {1, 5});
  const Tensor nan = full({3, 5}, NAN);
  expect_same_bits_in_program(call, {input("x", {Dim::symbol("n", 1, 20), 5})},
                              {{few}, {row}, {expand(row, {9, 5})}, {cat({nan, few})}});
}
TEST(unique_dim, sorts_many_slices_as_the_library_does) {
  for (const int64_t width : {1, 2, 3, 7, 8}) {
    const Tensor x = to(floor(mul(rand({200, width}), 3)), DType::i64);
    const auto [slices, inverse, counts] = unique_dim(x, 0);
    std::vector<std::vector<int64_t>> want;
    for (int64_t i = 0; i < 200; ++i)
      want.push_back(contiguous(select(x, 0, i)).to_vector<int64_t>());
    std::sort(want.begin(), want.end());
    want.erase(std::unique(want.begin(), want.end()), want.end());
    ASSERT_EQ(slices.size(0).value(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(contiguous(select(slices, 0, static_cast<int64_t>(i))).to_vector<int64_t>(),
                want[i]);
    expect_same_bits(index_select(slices, 0, inverse), x);
    EXPECT_EQ(sum(counts).item<int64_t>(), 200);
  }
}
TEST(one_hot, of_a_program_counts_the_classes) {
  expect_same_bits_in_program(
      [](const Tensors& in) {
        const CountBounds bounds(1, 10, "classes");
        return Tensors{one_hot(in[0])};
      },
      {input("x", {Dim::symbol("n", 1, 8)}, DType::i64)},
      {{Tensor::from<int64_t>({2, 0, 5}, {3})}, {zeros({1}, DType::i64)}});
}

// ---- mantissas ----

TEST(frexp, is_undone_by_ldexp) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = mul(random_tensor({3, 40}), exp(mul(random_tensor({3, 40}, 2), 2))).to(dtype);
    const auto [mantissa, exponent] = frexp(x);
    EXPECT_EQ(exponent.dtype(), DType::i32);
    expect_same_bits(ldexp(mantissa, exponent), x);
    EXPECT_TRUE(all(logical_or(eq(x, 0), ge(abs(mantissa), 0.5))).item<bool>());
    EXPECT_TRUE(all(lt(abs(mantissa), 1)).item<bool>());
  }
}
TEST(frexp, has_the_derivative_of_a_division) {
  const Tensor x = Tensor::from<float>({6, -0.1f, 1e-40f}, {3});
  x.set_requires_grad();
  sum(std::get<0>(frexp(x))).backward();
  EXPECT_EQ(x.grad().to_vector<float>()[0], 0.125f);
  EXPECT_EQ(x.grad().to_vector<float>()[1], 8);
}
TEST(frexp, of_a_program_and_with_strides_gives_the_same) {
  const Tensor x = random_tensor({4, 6});
  expect_same_bits_in_program(
      [](const Tensors& in) {
        const auto [mantissa, exponent] = frexp(transpose(in[0], 0, 1));
        return Tensors{mantissa, exponent};
      },
      {input("x", {Dim::symbol("n", 1, 5), 6})}, {{x}});
  expect_same_bits(std::get<0>(frexp(scattered(x))), std::get<0>(frexp(x)));
}

// ---- special functions with derivatives ----

/// Numbers in [low, low + 6).
Tensor numbers_from(double low) {
  NoGrad guard;
  return rand({9}, DType::f64) * 6 + low;
}
TEST(special_functions, have_right_derivatives) {
  const Tensor a = numbers_from(0.3), x = numbers_from(0.3), s = numbers_from(1.3);
  expect_right_derivatives([&](const Tensors& in) { return igamma(a, in[0]); }, {x});
  expect_right_derivatives([&](const Tensors& in) { return igammac(a, in[0]); }, {x});
  expect_right_derivatives([&](const Tensors& in) { return zeta(s, in[0]); }, {x});
  expect_right_derivatives([](const Tensors& in) { return erfcx(in[0]); }, {numbers_from(-3)});
  expect_right_derivatives([](const Tensors& in) { return ndtri(in[0] * 0.15 + 0.05); },
                           {numbers_from(0)});
}
TEST(special_functions, refuse_the_derivative_that_nobody_knows) {
  const Tensor a = ones({2}), x = ones({2});
  a.set_requires_grad();
  expect_refusal([&] { sum(igamma(a, x)).backward(); },
                 "igamma: there is no derivative with respect to self");
  expect_refusal([&] { sum(zeta(a + 1, x)).backward(); }, "special_zeta: there is no derivative");
}
TEST(igamma, of_a_program_has_eager_bits) {
  expect_same_bits_in_program(
      [](const Tensors& in) {
        return Tensors{igamma(in[0], in[1]), igammac(in[0], in[1]), zeta(in[0], in[1]),
                       erfcx(in[1]), ndtri(in[1])};
      },
      {input("a", {Dim::symbol("n", 1, 9), 1}), input("x", {4})},
      {{rand({5, 1}) * 9, rand({4})}, {rand({1, 1}) + 1, rand({4}) * 3}});
}

}  // namespace
}  // namespace taper::eager
