#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

Tensor ints(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
}
Tensor counting(const Ints& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return arange(n).to(DType::f32).reshape(Dims(sizes.begin(), sizes.end()));
}
void expect_message(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error: " << text;
  } catch (const EagerError& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(embedding, picks_rows) {
  const Tensor w = counting({4, 3});
  EXPECT_EQ(embedding(w, ints({3, 0, 3})).to_vector<float>(),
            (std::vector<float>{9, 10, 11, 0, 1, 2, 9, 10, 11}));
  EXPECT_EQ(embedding(w, ints({1}).to(DType::i32)).to_vector<float>(),
            (std::vector<float>{3, 4, 5}));
  expect_message([&] { embedding(w, ints({4})); }, "embedding: index 4 is outside [0, 4)");
  expect_message([&] { embedding(w, ints({-1})); }, "embedding: index -1 is outside [0, 4)");
}

TEST(embedding, sums_the_gradient_of_each_word_in_order) {
  const Tensor w = random_tensor({5, 70}), words = ints({1, 4, 1, 2, 1}),
               dy = random_tensor({5, 70}, 2);
  w.set_requires_grad();
  const Tensor dw = grad({embedding(w, words, 2)}, {w}, {dy})[0];
  expect_same_bits(dw[1], dy[0] + dy[2] + dy[4]);
  expect_same_bits(dw[2], zeros({70}));
  expect_same_bits(dw[4], dy[1]);
  expect_same_bits_with_two_threads([&] { return grad({embedding(w, words)}, {w}, {dy})[0]; });
}

TEST(gather, and_scatter_are_inverse) {
  const Tensor x = counting({2, 4}), at = Tensor::from<int64_t>({3, 1, 0, 2, 0, 1, 2, 3}, {2, 4});
  const Tensor y = gather(x, 1, at);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 1, 0, 2, 4, 5, 6, 7}));
  expect_same_bits(scatter(zeros({2, 4}), 1, at, y), x);
  EXPECT_EQ(scatter(x, 0, Tensor::from<int64_t>({1, 0}, {1, 2}), 9).to_vector<float>(),
            (std::vector<float>{0, 9, 2, 3, 9, 5, 6, 7}));
  expect_message(
      [&] {
        gather(x, 1, ints({4}).reshape({1, 1}));
      },
      "gather: index 4 is outside [0, 4)");
}

TEST(scatter_add, adds_all_that_meet) {
  EXPECT_EQ(scatter_add(zeros({3}), 0, ints({1, 1, 2, 1}), counting({4})).to_vector<float>(),
            (std::vector<float>{0, 4, 2}));
}

TEST(index_select, takes_slices) {
  EXPECT_EQ(index_select(counting({2, 3}), 1, ints({2, 0})).to_vector<float>(),
            (std::vector<float>{2, 0, 5, 3}));
  EXPECT_EQ(index_add(zeros({2, 3}), 1, ints({2, 2}), ones({2, 2}), 3).to_vector<float>(),
            (std::vector<float>{0, 0, 6, 0, 0, 6}));
}

TEST(index, follows_numpy) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(index(x, {ints({-1, 0})}).to_vector<float>()[0], 12);
  EXPECT_EQ(to_string(index(x, {{}, ints({0, 2, 1, 1})}).sizes()), "(2, 4, 4)");
  EXPECT_EQ(to_string(index(x, {ints({0, 1}).reshape({2, 1}), {}, ints({0, 1, 2})}).sizes()),
            "(2, 3, 3)");
  EXPECT_EQ(to_string(index(x, {{}, ints({0, 1}).reshape({2, 1}), ints({0, 1, 2})}).sizes()),
            "(2, 2, 3)");
  EXPECT_EQ(index(x, {ints({1}), ints({2}), ints({-1})}).to_vector<float>(),
            (std::vector<float>{23}));
  expect_message([&] { index(x, {{}, ints({3})}); }, "index.Tensor: index 3 is outside [-3, 3)");
}

TEST(index_put, writes_and_accumulates) {
  EXPECT_EQ(index_put(zeros({4}), {ints({1, 3, 1})}, counting({3})).to_vector<float>(),
            (std::vector<float>{0, 2, 0, 1}));
  EXPECT_EQ(index_put(zeros({4}), {ints({1, 3, 1})}, ones({1}), true).to_vector<float>(),
            (std::vector<float>{0, 2, 0, 1}));
  Tensor x = zeros({2, 2});
  index_put_(x, {ints({0})}, ones({2}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1, 0, 0}));
}

TEST(indexing, is_differentiable_twice) {
  const Tensor at = Tensor::from<int64_t>({2, 0, 1, 1, 0, 2}, {2, 3});
  const auto f = [&](const std::vector<Tensor>& v) {
    const Tensor y = gather(v[0], 1, at) * index_select(v[0], 1, ints({1, 1, 0})) +
                     index(v[0], {{}, ints({2, 2, 1})});
    return sum(y * y * scatter_add(v[0], 1, at, y));
  };
  expect_right_derivatives(f, {random_tensor({2, 3}, 1, DType::f64)});
}

TEST(index, takes_bool_masks_for_the_positions_where_they_are_true) {
  const Tensor x = counting({2, 3});
  const Tensor mask = Tensor::from<uint8_t>({0, 1, 1}, {3}).to(DType::boolean);
  EXPECT_EQ(index(x, {{}, mask}).to_vector<float>(), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(index(x, {x > 3}).to_vector<float>(), (std::vector<float>{4, 5}));
  EXPECT_EQ(index_put(x, {x > 3}, zeros({})).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 0, 0}));
  expect_message([&] { index(x, {mask}); },
                 "index.Tensor: index 0 is a bool mask (3); its sizes must be those of self's "
                 "dimensions from 0 on: self is (2, 3)");
}

TEST(masked_scatter, writes_the_source_in_order) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(masked_scatter(x, x > 3, ints({7, 8, 9}).to(DType::f32)).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 7, 8}));
  expect_message([&] { masked_scatter(x, x > 3, ones({1})); },
                 "masked_scatter: mask is true at 2 places, source has only 1 elements");
  const Tensor mask = x > 3;
  expect_right_derivatives(
      [&](const std::vector<Tensor>& v) {
        const Tensor y = masked_scatter(v[0], mask, v[1]);
        return sum(y * y * y);
      },
      {random_tensor({2, 3}, 1, DType::f64), random_tensor({4}, 2, DType::f64)});
}

TEST(masked_scatter, takes_every_byte_but_zero_as_true) {
  const Tensor x = counting({2, 3}), mask = x > 3;
  auto* const bytes = static_cast<uint8_t*>(mask.ref().data);
  std::fill_n(bytes, 6, uint8_t{0});
  bytes[1] = 33, bytes[4] = 255;
  EXPECT_EQ(masked_scatter(x, mask, ints({7, 8}).to(DType::f32)).to_vector<float>(),
            (std::vector<float>{0, 7, 2, 3, 8, 5}));
  expect_message([&] { masked_scatter(x, mask, ones({1})); },
                 "masked_scatter: mask is true at 2 places, source has only 1 elements");
}

TEST(scatter_reduce, has_right_derivatives) {
  const Tensor at = ints({2, 0, 2, 1}), x = random_tensor({3, 2}, 1, DType::f64),
               y = random_tensor({4, 2}, 2, DType::f64);
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"})
    for (const bool include_self : {true, false}) {
      const Tensor each = at.reshape({4, 1}).expand({4, 2});
      expect_right_derivatives(
          [&](const std::vector<Tensor>& v) {
            const Tensor z = scatter_reduce(v[0], 0, each, v[1], reduce, include_self);
            return sum(z * z);
          },
          {x, y});
      if (std::string(reduce) == "sum") continue;
      expect_same_bits(index_reduce(x, 0, at, y, reduce, include_self),
                       scatter_reduce(x, 0, each, y, reduce, include_self));
    }
  expect_message(
      [&] {
        index_reduce(x, 0, ints({3, 0, 0, 0}), y, "amax");
      },
      "index_reduce: index 3 is outside [0, 3)");
}

TEST(index_fill, counts_negative_indices_from_the_end) {
  EXPECT_EQ(index_fill(counting({2, 3}), 1, ints({-1, 0}), 9).to_vector<float>(),
            (std::vector<float>{9, 1, 9, 9, 4, 9}));
  expect_message(
      [&] {
        index_fill(counting({2, 3}), 1, ints({-4}), 9);
      },
      "index -4 is outside [-3, 3)");
}

// The numbers are PyTorch's.
TEST(index_fill, counts_an_index_that_occurs_twice_once_in_the_gradient_of_value) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3}).set_requires_grad();
  const auto gradients = [&](const std::vector<int64_t>& index) {
    const Tensor value = full({}, 5, DType::f32).set_requires_grad();
    const Tensor y = index_fill(x, 0, ints(index), value);
    const std::vector<Tensor> g = grad({y}, {value, x}, {Tensor::from<float>({1, 10, 100}, {3})});
    return std::pair(g[0].item<float>(), g[1].to_vector<float>());
  };
  EXPECT_EQ(gradients({0, 0}), std::pair(1.0f, (std::vector<float>{0, 10, 100})));
  EXPECT_EQ(gradients({1}), std::pair(10.0f, (std::vector<float>{1, 0, 100})));
  EXPECT_EQ(gradients({0, -3, 2}), std::pair(101.0f, (std::vector<float>{0, 10, 0})));
  EXPECT_EQ(index_fill(x, 0, ints({-1, 0}), full({}, 9, DType::f32)).to_vector<float>(),
            (std::vector<float>{9, 2, 9}));
}

TEST(searchsorted, reads_a_sorter_it_has_checked) {
  const Tensor x = Tensor::from<float>({3, 1, 2}, {3}), at = Tensor::from<float>({2, 5}, {2});
  const auto search = [&](const Tensor& sorter) {
    return call<ops::searchsorted_Tensor>(Location::current(), x, at, false, true, std::nullopt,
                                          sorter);
  };
  EXPECT_EQ(search(ints({1, 2, 0})).to_vector<int64_t>(), (std::vector<int64_t>{2, 3}));
  expect_message([&] { search(ints({1, 3, 0})); }, "sorter 3 is outside [0, 3)");
}

TEST(searchsorted, takes_nan_for_the_greatest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3}), at = Tensor::from<float>({nan, 2}, {2});
  EXPECT_EQ(searchsorted(x, at, false).to_vector<int64_t>(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(searchsorted(x, at, true).to_vector<int64_t>(), (std::vector<int64_t>{3, 2}));
}

TEST(unique_dim, sorts_slices) {
  const auto [slices, inverse, counts] = unique_dim(ints({2, 1, 0, 5, 2, 1}).reshape({3, 2}), 0);
  EXPECT_EQ(slices.to_vector<int64_t>(), (std::vector<int64_t>{0, 5, 2, 1}));
  EXPECT_EQ(inverse.to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(counts.to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({nan, 1, nan, 0}, {4});
  EXPECT_EQ(std::get<2>(unique_dim(x, 0)).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(sort, is_stable_and_puts_nan_last) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({2, nan, 1, 2, -3}, {5});
  EXPECT_EQ(argsort(x).to_vector<int64_t>(), (std::vector<int64_t>{4, 2, 0, 3, 1}));
  EXPECT_EQ(argsort(x, 0, true).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 3, 2, 4}));
  const auto [values, where] = topk(x, 3, 0, false);
  EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{-3, 1, 2}));
  EXPECT_EQ(where.to_vector<int64_t>(), (std::vector<int64_t>{4, 2, 0}));
  expect_message([&] { topk(x, 6); }, "only 5 elements, k is 6");
}

TEST(sort, is_the_stable_sort_of_the_standard_library_for_every_dtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i16, DType::u8})
    for (const int64_t n : {0, 1, 7, 8, 9, 31, 64, 257}) {
      // few different numbers: many are equal
      const Tensor x = (random_tensor({n}) * 20).to(DType::i64).to(DType::f32) -
                       (dtype == DType::u8 ? 0.0 : 9.0);
      const std::vector<double> keys = x.to(dtype).to(DType::f64).to_vector<double>();
      std::vector<int64_t> up(keys.size());
      std::iota(up.begin(), up.end(), 0);
      std::vector<int64_t> down = up;
      const auto key = [&](int64_t i) { return keys[static_cast<size_t>(i)]; };
      std::stable_sort(up.begin(), up.end(), [&](auto a, auto b) { return key(a) < key(b); });
      std::stable_sort(down.begin(), down.end(), [&](auto a, auto b) { return key(a) > key(b); });
      EXPECT_EQ(argsort(x.to(dtype)).to_vector<int64_t>(), up);
      EXPECT_EQ(argsort(x.to(dtype), 0, true).to_vector<int64_t>(), down);
    }
  const Tensor zeros = Tensor::from<float>({0.0f, -0.0f, 1, -0.0f, -INFINITY, INFINITY}, {6});
  EXPECT_EQ(argsort(zeros).to_vector<int64_t>(), (std::vector<int64_t>{4, 0, 1, 3, 2, 5}));
  const Tensor ends = Tensor::from<int64_t>({0, INT64_MAX, -1, INT64_MIN}, {4});
  EXPECT_EQ(argsort(ends).to_vector<int64_t>(), (std::vector<int64_t>{3, 2, 0, 1}));
}

TEST(isin, finds_numbers_beside_a_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor found =
      isin(Tensor::from<float>({1, 5, nan}, {3}), Tensor::from<float>({3, nan, 1}, {3}));
  EXPECT_EQ(found.to(DType::i64).to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 0}));
}

TEST(embedding_bag, refuses_offsets_that_are_none) {
  const Tensor weight = random_tensor({4, 2}), indices = Tensor::from<int64_t>({0, 1, 2}, {3});
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, -5}, {0, 2, 1}, {1, 2}, {0, 7}, {}}) {
    const Tensor starts = Tensor::from(offsets, {static_cast<int64_t>(offsets.size())});
    expect_message([&] { embedding_bag(weight, indices, starts); }, "offsets must begin with 0");
  }
}

}  // namespace
}  // namespace taper::eager
