// Composite operators where their arguments are at the edge of what they take. Their values are
// those of PyTorch in tests/data/pt2/operator_names.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "taper/exporter/eager/eager.h"

namespace taper::eager {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}
std::vector<float> elements(const Tensor& t) { return t.to_vector<float>(); }
std::vector<int64_t> integers(const Tensor& t) { return t.to_vector<int64_t>(); }

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const EagerError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(quantile, is_the_element_of_a_tensor_that_has_one) {
  EXPECT_EQ(quantile(floats({3}), 0.7).item<float>(), 3);
  EXPECT_EQ(quantile(full({}, 3.0), 0.7).item<float>(), 3);
  EXPECT_EQ(quantile(full({}, 3.0), 0.7, 0, true).sizes(), Dims{});
}
TEST(quantile, takes_the_ends) {
  const Tensor x = floats({5, 1, 3});
  EXPECT_THAT(elements(quantile(x, floats({0, 0.5, 1}))), ElementsAre(1, 3, 5));
}
TEST(quantile, is_nan_where_a_line_has_nan_unless_it_is_left_out) {
  const Tensor x = Tensor::from(std::vector<float>{1, NAN, 2, 4}, {2, 2});
  EXPECT_TRUE(std::isnan(elements(quantile(x, 0.5, 1))[0]));
  EXPECT_EQ(elements(quantile(x, 0.5, 1))[1], 3);
  EXPECT_THAT(elements(nanquantile(x, 0.5, 1)), ElementsAre(1, 3));
  EXPECT_TRUE(std::isnan(nanquantile(floats({NAN, NAN}), 0.5).item<float>()));
}
TEST(quantile, says_what_it_cannot_take) {
  EXPECT_THAT(refusal([] { quantile(ones({2}), 1.5); }), HasSubstr("q must lie in [0, 1]"));
  EXPECT_THAT(refusal([] { quantile(ones({0}), 0.5); }), HasSubstr("must not be empty"));
  EXPECT_THAT(refusal([] { quantile(ones({2}, DType::i64), 0.5); }), HasSubstr("f32 or f64"));
  EXPECT_THAT(refusal([] { quantile(ones({2}), 0.5, {}, false, "cubic"); }),
              HasSubstr("not cubic"));
}

TEST(nanmedian, is_the_lower_middle_of_the_numbers) {
  EXPECT_EQ(nanmedian(floats({NAN, 4, 1, NAN, 3, 2})).item<float>(), 2);
  EXPECT_TRUE(std::isnan(nanmedian(floats({NAN})).item<float>()));
}

TEST(nanmedian, of_nothing_is_nan_or_refused) {
  EXPECT_TRUE(std::isnan(nanmedian(ones({0, 2})).item<float>()));
  EXPECT_THAT(refusal([] { nanmedian(ones({0}, DType::i64)); }),
              HasSubstr("nanmedian: (0) has no elements"));
  EXPECT_THAT(refusal([] {
                nanmedian(ones({2, 0}), 1);
              }),
              HasSubstr("nanmedian: dim 1 of (2, 0) has no elements"));
  EXPECT_EQ(std::get<0>(nanmedian(ones({2, 0}), 0)).sizes(), Dims{0});
}

TEST(combinations, are_none_where_there_are_too_few_elements) {
  EXPECT_EQ(combinations(floats({1, 2}), 3).sizes(), (Dims{0, 3}));
  EXPECT_EQ(combinations(floats({}), 2, true).sizes(), (Dims{0, 2}));
  EXPECT_EQ(combinations(floats({1, 2}), 0).sizes(), Dims{0});
  EXPECT_THAT(elements(combinations(floats({1, 2, 3}), 3)), ElementsAre(1, 2, 3));
  EXPECT_THAT(refusal([] { combinations(ones({1000}), 4); }), HasSubstr("2^26"));
}

TEST(unique_consecutive, counts_runs) {
  const auto [values, inverse, counts] = unique_consecutive(floats({2, 2, 1, 2}));
  EXPECT_THAT(elements(values), ElementsAre(2, 1, 2));
  EXPECT_THAT(integers(inverse), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(integers(counts), ElementsAre(2, 1, 1));
}
TEST(unique_consecutive, compares_slices) {
  const Tensor x = Tensor::from(std::vector<float>{1, 1, 2, 3, 3, 3}, {2, 3});
  const auto [values, inverse, counts] = unique_consecutive(x, 1);
  EXPECT_THAT(elements(values), ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(integers(inverse), ElementsAre(0, 0, 1));
  EXPECT_THAT(integers(counts), ElementsAre(2, 1));
}
TEST(unique_consecutive, of_nothing_is_nothing) {
  const auto [values, inverse, counts] = unique_consecutive(floats({}));
  EXPECT_EQ(values.sizes(), Dims{0});
  EXPECT_EQ(inverse.sizes(), Dims{0});
  EXPECT_EQ(counts.sizes(), Dims{0});
}

TEST(trapezoid, of_one_element_is_zero) {
  EXPECT_EQ(trapezoid(floats({3})).item<float>(), 0);
  EXPECT_EQ(cumulative_trapezoid(floats({3})).sizes(), Dims{0});
  EXPECT_THAT(refusal([] { trapezoid(ones({3}), ones({2})); }), HasSubstr("x has 2 places"));
}
TEST(gradient, needs_one_element_more_than_its_order) {
  EXPECT_THAT(elements(gradient(floats({1, 4}))[0]), ElementsAre(3, 3));
  EXPECT_THAT(refusal([] {
                gradient(floats({1, 4}), 1, {}, 2);
              }),
              HasSubstr("at least 3 elements"));
  EXPECT_THAT(refusal([] {
                gradient(floats({1, 4, 9}), 1, {}, 3);
              }),
              HasSubstr("edge_order must be 1 or 2"));
}

TEST(pad_sequence, needs_sequences_of_one_kind) {
  EXPECT_THAT(elements(pad_sequence({floats({1}), floats({2, 3})}, true)), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(refusal([] { pad_sequence({}); }), HasSubstr("at least one tensor"));
  EXPECT_THAT(refusal([] {
                pad_sequence({ones({2}), ones({2, 2})});
              }),
              HasSubstr("(2, 2) and (2)"));
}
TEST(hsplit, cuts_into_equal_pieces_only) {
  EXPECT_EQ(hsplit(ones({4}), 2)[1].sizes(), Dims{2});
  EXPECT_THAT(refusal([] { hsplit(ones({2, 3}), 2); }), HasSubstr("2 equal parts"));
  EXPECT_THAT(refusal([] { vsplit(ones({4}), 2); }), HasSubstr("at least 2 dimensions"));
}
TEST(sum_to_size, refuses_what_no_broadcast_made) {
  EXPECT_EQ(sum_to_size(ones({2, 3}), {}).item<float>(), 6);
  EXPECT_THAT(refusal([] { sum_to_size(ones({2, 3}), {2}); }), HasSubstr("does not sum to (2)"));
  EXPECT_THAT(refusal([] { sum_to_size(ones({3}), {1, 3}); }), HasSubstr("does not sum to"));
}
TEST(diag, of_nothing_is_a_square_beside_the_diagonal) {
  EXPECT_EQ(diag(floats({}), 2).sizes(), (Dims{2, 2}));
  EXPECT_THAT(refusal([] { diag(ones({1, 1, 1})); }), HasSubstr("1 or 2 dimensions"));
}
TEST(movedim, wants_each_dimension_once) {
  EXPECT_EQ(movedim(ones({1, 2, 3}), {0, 2}, {2, 0}).sizes(), (Dims{3, 2, 1}));
  EXPECT_THAT(refusal([] { movedim(ones({1, 2}), Ints{0, 0}, {0, 1}); }), HasSubstr("each once"));
}

TEST(isclose, compares_infinities_and_nan) {
  const Tensor x = floats({INFINITY, -INFINITY, NAN, 1}), y = floats({INFINITY, INFINITY, NAN, 1});
  EXPECT_THAT(isclose(x, y).to_vector<bool>(), ElementsAre(true, false, false, true));
  EXPECT_TRUE(isclose(x, y, 0, 0, true).to_vector<bool>()[2]);
  EXPECT_THAT(refusal([&] { isclose(x, y, -1); }), HasSubstr("at least 0"));
}
TEST(is_all_true, and_is_any_true_look_at_every_bool_and_refuse_numbers) {
  const Tensor mixed = gt(floats({-1, 0, 2}), 0), none = zeros({0}, DType::boolean);
  EXPECT_FALSE(_is_all_true(mixed).item<bool>());
  EXPECT_TRUE(_is_any_true(mixed).item<bool>());
  EXPECT_TRUE(_is_all_true(none).item<bool>());
  EXPECT_FALSE(_is_any_true(none).item<bool>());
  EXPECT_EQ(_is_all_true(mixed).rank(), 0);
  EXPECT_THAT(refusal([] { _is_all_true(ones({2})); }),
              HasSubstr("_is_all_true: self must be a tensor of bool, it is f32"));
  EXPECT_THAT(refusal([] { _is_any_true(ones({2}, DType::u8)); }),
              HasSubstr("_is_any_true: self must be a tensor of bool, it is u8"));
}
TEST(heaviside, takes_one_dtype) {
  EXPECT_THAT(elements(heaviside(floats({-1, 0, 2, NAN}), full({}, 7.0))), ElementsAre(0, 7, 1, 0));
  EXPECT_THAT(refusal([] { heaviside(ones({1}), ones({1}, DType::f64)); }),
              HasSubstr("must have one dtype"));
}
TEST(xlog1py, is_zero_where_the_factor_is) {
  EXPECT_THAT(elements(xlog1py(zeros({3}), floats({-1, INFINITY, 1}))), Each(0));
  EXPECT_TRUE(std::isnan(xlog1py(zeros({1}), floats({NAN})).item<float>()));
}

TEST(window, of_one_sample_is_one) {
  for (const bool periodic : {false, true})
    for (const Tensor& w :
         {hann_window(1, periodic), hamming_window(1, periodic), bartlett_window(1, periodic),
          blackman_window(1, periodic), kaiser_window(1, periodic)})
      EXPECT_THAT(elements(w), ElementsAre(1));
  EXPECT_EQ(kaiser_window(0).sizes(), Dims{0});
  EXPECT_THAT(refusal([] { kaiser_window(-1); }), HasSubstr("length in [0, 2^24]"));
}

TEST(random_draws, have_the_moments_of_their_distribution) {
  constexpr int64_t n = 200'000;
  const Tensor self = zeros({n}, DType::f64);
  const auto moments = [](const Tensor& t) {
    const Tensor x = to(t, DType::f64);
    return std::pair(mean(x).item<double>(), var(x).item<double>());
  };
  const auto expect = [&](const Tensor& drawn, double mean, double variance) {
    const auto [m, v] = moments(drawn);
    EXPECT_NEAR(m, mean, 5 * std::sqrt(variance / n));
    EXPECT_NEAR(v, variance, 0.05 * variance);
  };
  expect(uniform(self, -1, 3), 1, 16.0 / 12);
  expect(exponential(self, 2), 0.5, 0.25);
  expect(geometric(self, 0.25), 4, 0.75 / 0.0625);
  expect(randint_like(self, -2, 3), 0, 2);
  expect(alpha_dropout(uniform(self, -std::sqrt(3.0), std::sqrt(3.0)), 0.3), 0, 1);
  EXPECT_GE(min(geometric(self, 0.9)).item<double>(), 1);
}
TEST(random_draws, refuse_what_is_no_parameter) {
  EXPECT_THAT(refusal([] { uniform(ones({1}), 2, 1); }), HasSubstr("at most"));
  EXPECT_THAT(refusal([] { uniform(ones({1}, DType::i64)); }), HasSubstr("floating dtype"));
  EXPECT_THAT(refusal([] { exponential(ones({1}), 0); }), HasSubstr("above 0"));
  EXPECT_THAT(refusal([] { geometric(ones({1}), 1); }), HasSubstr("inside (0, 1)"));
  EXPECT_THAT(refusal([] { alpha_dropout(ones({1}), 2); }), HasSubstr("in [0, 1]"));
  EXPECT_THAT(refusal([] { rrelu(ones({1}), 0.5, 0.2); }), HasSubstr("at most upper"));
}

TEST(random_draws, of_a_size_have_its_sizes_and_their_range) {
  const Tensor integers = randint(3, 7, {1000});
  EXPECT_EQ(min(integers).item<int64_t>(), 3);
  EXPECT_EQ(max(integers).item<int64_t>(), 6);
  EXPECT_EQ(integers.dtype(), DType::i64);
  EXPECT_EQ(max(randint(2, {100}, DType::u8)).item<int64_t>(), 1);
  const Tensor numbers = normal(5, 0, {2, 3}, DType::f64);
  EXPECT_THAT(numbers.to_vector<double>(), Each(5));
  EXPECT_THAT(refusal([] { normal(0, -1, {2}); }), HasSubstr("std must be 0 or more, not -1"));
}
TEST(random_draws, in_place_are_those_of_the_same_state) {
  manual_seed(3);
  Tensor written = zeros({4});
  exponential_(written, 2);
  manual_seed(3);
  EXPECT_EQ(elements(written), elements(exponential(zeros({4}), 2)));
  Tensor rest = zeros({1000});
  EXPECT_NEAR(mean(bernoulli_(rest, 0.25)).item<float>(), 0.25, 0.06);
}

TEST(tensordot, sums_over_pairs_of_dimensions) {
  const Tensor a = reshape(arange(6, DType::f32), {2, 3}),
               b = reshape(arange(6, 12, 1, DType::f32), {3, 2});
  EXPECT_THAT(elements(tensordot(a, b, 1)), ElementsAre(28, 31, 100, 112));
  EXPECT_EQ(tensordot(a, t(b), 2).item(), 140);
  EXPECT_EQ(tensordot(a, b, {1, 0}, Ints{0, 1}).item(), 140);
  EXPECT_EQ(tensordot(a, b, 0).sizes(), (Dims{2, 3, 3, 2}));
  EXPECT_THAT(refusal([&] { tensordot(a, b, -1); }), HasSubstr("dims must be 0 or more"));
  EXPECT_THAT(refusal([&] { tensordot(a, b, 3); }), HasSubstr("dim -3 is outside [-2, 2)"));
}
TEST(cross, takes_the_first_dimension_of_three_elements) {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}),
               b = Tensor::from<float>({0, 1, 0, 1, 0, 0}, {2, 3});
  EXPECT_THAT(elements(cross(a, b)), ElementsAre(-3, 0, 1, 0, 6, -5));
}
TEST(vander, begins_with_the_largest_power) {
  EXPECT_THAT(elements(vander(floats({1, 2, 3}))), ElementsAre(1, 1, 1, 4, 2, 1, 9, 3, 1));
  EXPECT_THAT(elements(linalg_vander(floats({1, 2, 3}))), ElementsAre(1, 1, 1, 1, 2, 4, 1, 3, 9));
}
TEST(interpolate, smooths_what_it_shrinks_if_it_is_asked_to) {
  const Tensor x = reshape(arange(16, DType::f32), {1, 1, 4, 4});
  EXPECT_THAT(elements(interpolate(x, {2, 2}, "bilinear")), ElementsAre(2.5, 4.5, 10.5, 12.5));
  const std::vector<float> smooth = elements(interpolate(x, {2, 2}, "bilinear", false, true));
  EXPECT_NEAR(smooth[0], 3.5714288, 1e-6);
  EXPECT_NEAR(smooth[3], 11.4285717, 1e-6);
  EXPECT_THAT(refusal([&] {
                interpolate(x, {2, 2}, "nearest", false, true);
              }),
              HasSubstr("antialias is for mode bilinear and bicubic"));
}
TEST(hamming_window, has_the_weights_that_are_given) {
  const std::vector<float> window = elements(hamming_window(4, true, 0.5, 0.5));
  EXPECT_NEAR(window[0], 0, 1e-7);
  EXPECT_NEAR(window[1], 0.5, 1e-7);
  EXPECT_NEAR(window[2], 1, 1e-7);
}
TEST(batch_norm, takes_a_vector_without_elements) {
  const Tensor none = zeros({0});
  EXPECT_EQ(batch_norm(none, {}, {}, none, none, true).sizes(), Dims{0});
  EXPECT_THAT(refusal([] { batch_norm(ones({3}), {}, {}, {}, {}, true); }),
              HasSubstr("at least 2 dimensions"));
}
TEST(vector_norm, of_a_negative_order_has_no_gradient_beside_a_zero) {
  const Tensor x = Tensor::from<float>({0, 2, 4, 1, 2, 2}, {2, 3}).set_requires_grad();
  const Tensor norms = vector_norm(x, -1, {1});
  EXPECT_THAT(elements(norms), ElementsAre(0, 0.5));
  sum(norms).backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(0, 0, 0, 0.25, 0.0625, 0.0625));
}
TEST(narrow, takes_its_start_from_a_tensor) {
  const Tensor x = arange(6);
  const auto at = [](int64_t start) { return full({}, start, DType::i32); };
  EXPECT_THAT(integers(narrow(x, 0, at(1), 2)), ElementsAre(1, 2));
  EXPECT_THAT(integers(narrow(x, 0, at(-3), 2)), ElementsAre(3, 4));
  EXPECT_TRUE(narrow(x, 0, at(1), 2).impl()->base.is_same(x));
  EXPECT_THAT(refusal([&] { narrow(x, 0, at(5), 2); }), HasSubstr("do not lie in a size of 6"));
  EXPECT_THAT(refusal([&] { narrow(x, 0, ones({}), 2); }), HasSubstr("must be an integer tensor"));
  EXPECT_THAT(refusal([&] { narrow(x, 0, arange(2), 2); }), HasSubstr("without dimensions"));
}

}  // namespace
}  // namespace taper::eager
