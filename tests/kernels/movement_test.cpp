#include "eager_check.h"

namespace taper::eager {
namespace {

Tensor line(int64_t n) { return arange(Scalar(n)); }
std::vector<int64_t> values(const Tensor& t) { return t.to_vector<int64_t>(); }

TEST(cat, joins_strided_tensors_along_any_dimension) {
  const Tensor a = random_tensor({2, 3, 4}), b = random_tensor({2, 5, 4}, 2);
  const Tensor joined = cat({a, scattered(b)}, 1);
  expect_same_bits(slice(joined, 1, 0, 3), a);
  expect_same_bits(slice(joined, 1, 3, 8), b);
  EXPECT_THROW(cat({a, random_tensor({2, 3, 5})}, 1), ExportError);
}

TEST(cat, checks_the_dimension_of_tensors_without_elements) {
  const Tensor none = zeros({0});
  EXPECT_THROW(cat({none, none}, 1 << 20), EagerError);
  EXPECT_EQ(cat({none, none}, -1).numel().value(), 0);
}

TEST(copy, repeats_extents_of_one_and_no_others) {
  const auto copied = [](const Ints& from) {
    return call<ops::copy>(Location::current(), zeros({2, 3}),
                           ones(Dims(from.begin(), from.end())));
  };
  for (const Ints& from : {Ints{}, Ints{1}, Ints{3}, Ints{2, 1}, Ints{1, 3}})
    EXPECT_EQ(copied(from).to_vector<float>(), std::vector<float>(6, 1));
  for (const Ints& from : {Ints{2}, Ints{6}, Ints{3, 3}, Ints{2, 4}, Ints{1, 2, 3}})
    EXPECT_THROW(copied(from), EagerError) << from.size() << " " << from[0];
}
// Few planes, of more elements than a task has. The number of an element says where it was.
TEST(contiguous, brings_planes_to_channels_last) {
  const int64_t height = 103, width = 127;
  for (const int64_t planes : {1, 2, 3, 4, 5})
    for (const DType dtype : {DType::u8, DType::i16, DType::i32, DType::i64}) {
      const int64_t count = 2 * planes * height * width;
      const Tensor x = arange(Scalar(count)).to(dtype).reshape({2, planes, height, width});
      const std::vector<int64_t> from = values(x.to(DType::i64)),
                                 to = values(x.permute({0, 2, 3, 1}).contiguous().to(DType::i64));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t plane = i % planes, pixel = i / planes % (height * width),
                      image = i / (planes * height * width);
        ASSERT_EQ(to[static_cast<size_t>(i)],
                  from[static_cast<size_t>((image * planes + plane) * height * width + pixel)])
            << planes << " planes of " << name_of(dtype) << ", element " << i;
      }
    }
}
TEST(select, takes_the_rows_that_there_are) {
  EXPECT_EQ(line(4).select(0, 3).item<int64_t>(), 3);
  EXPECT_EQ(line(4).select(0, -4).item<int64_t>(), 0);
  EXPECT_THROW(line(4).select(0, 4), EagerError);
  EXPECT_THROW(line(4).select(0, -5), EagerError);
  EXPECT_THROW(zeros({2, 0}).select(1, 0), EagerError);
}
TEST(flip, reverses_dimensions) {
  EXPECT_EQ(values(flip(reshape(line(6), {2, 3}), {0, 1})),
            (std::vector<int64_t>{5, 4, 3, 2, 1, 0}));
}

TEST(roll, brings_back_in_front_what_leaves_at_the_end) {
  EXPECT_EQ(values(roll(line(5), {2}, {0})), (std::vector<int64_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(values(roll(reshape(line(6), {2, 3}), {-1})), (std::vector<int64_t>{1, 2, 3, 4, 5, 0}));
}
TEST(roll, without_dims_takes_any_strides_and_shift) {
  const Tensor x = random_tensor({70, 300});
  const std::vector<float> before = x.to_vector<float>();
  for (const int64_t shift : {0, 1, -1, 5000, 20999, 21000, -42001}) {
    std::vector<float> want = before;
    const int64_t left = ((-shift) % 21000 + 21000) % 21000;
    std::rotate(want.begin(), want.begin() + left, want.end());
    EXPECT_EQ(roll(x, {shift}).to_vector<float>(), want) << shift;
    EXPECT_EQ(roll(scattered(x), {shift}).to_vector<float>(), want) << shift;
  }
}

TEST(repeat, tiles_old_and_new_dimensions) {
  EXPECT_EQ(values(repeat(line(2), {2, 2})), (std::vector<int64_t>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(repeat(line(2), {0}).numel().value(), 0);
}

TEST(constant_pad_nd, pads_and_crops) {
  const Tensor x = reshape(line(4), {2, 2});
  EXPECT_EQ(values(constant_pad_nd(x, {1, 0, 0, 1}, 9)),
            (std::vector<int64_t>{9, 0, 1, 9, 2, 3, 9, 9, 9}));
  EXPECT_EQ(values(constant_pad_nd(x, {-1, 1}, 9)), (std::vector<int64_t>{1, 9, 3, 9}));
  EXPECT_THROW(constant_pad_nd(x, {-3, 0}), ExportError);
}

TEST(tril, keeps_one_side_of_a_diagonal) {
  const Tensor x = full({2, 3}, 1, DType::i64);
  EXPECT_EQ(values(tril(x)), (std::vector<int64_t>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(values(triu(x, 1)), (std::vector<int64_t>{0, 1, 1, 0, 0, 1}));
}

TEST(slice_scatter, writes_what_slice_reads) {
  const Tensor x = random_tensor({4, 9}), part = random_tensor({4, 3}, 2);
  const Tensor written = slice_scatter(x, part, 1, 1, 8, 3);
  expect_same_bits(slice(written, 1, 1, 8, 3), part);
  expect_same_bits(slice(written, 1, 2, 4), slice(x, 1, 2, 4));
  EXPECT_THROW(slice_scatter(x, random_tensor({4, 4}), 1, 1, 8, 3), ExportError);
}

TEST(view, says_that_reshape_would_copy) {
  const Tensor x = transpose(random_tensor({3, 4}), 0, 1);
  EXPECT_THROW(view(x, {12}), ExportError);
  EXPECT_EQ(reshape(x, {2, -1}).size(1).value(), 6);
  expect_same_bits(view(unsqueeze(x, 1), {4, 1, 3, 1}), unsqueeze(unsqueeze(x, 1), -1));
}

TEST(unfold, gives_overlapping_windows) {
  EXPECT_EQ(values(unfold(line(5), 0, 3, 2)), (std::vector<int64_t>{0, 1, 2, 2, 3, 4}));
}

TEST(split, gives_views_that_share_memory) {
  Tensor x = zeros({5, 2});
  std::vector<Tensor> parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  parts[2].fill_(1);
  EXPECT_EQ(sum(x).item(), 2);
}

TEST(arange, counts_exactly) {
  EXPECT_EQ(values(arange(5, 0, -2)), (std::vector<int64_t>{5, 3, 1}));
  EXPECT_EQ(arange(0.0, 1.0, 0.25).to_vector<float>(), (std::vector<float>{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_THROW(arange(0, 3, 0), ExportError);
}

TEST(one_hot, refuses_a_class_outside_its_range) {
  EXPECT_EQ(values(one_hot(line(2), 3)), (std::vector<int64_t>{1, 0, 0, 0, 1, 0}));
  EXPECT_THROW(one_hot(line(4), 3), ExportError);
}

TEST(views_in_place, give_the_handle_another_shape) {
  Tensor x = random_tensor({2, 3});
  const Tensor before = x;
  unsqueeze_(transpose_(x, 0, 1), 1);
  EXPECT_EQ(to_string(x.sizes()), "(3, 1, 2)");
  EXPECT_EQ(to_string(before.sizes()), "(2, 3)");
  x.zero_();
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(6, 0));  // the same elements
  EXPECT_EQ(to_string(t_(squeeze_(x, 1)).sizes()), "(2, 3)");
  EXPECT_THROW(squeeze_(x, 2), EagerError);

  const Tensor leaf = random_tensor({2, 3});
  leaf.set_requires_grad();
  Tensor y = leaf * 2;
  t_(y);
  sum(y * y).backward();
  EXPECT_TRUE(leaf.grad().defined());
  EXPECT_FALSE(detach_(y).requires_grad());
}

TEST(resize_, keeps_the_first_elements) {
  Tensor x = arange(6);
  EXPECT_EQ(resize_(x, {2, 2}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(resize_(x, {5}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 0}));
  Tensor y = ones({3});
  y.set_requires_grad();
  EXPECT_THROW(resize_(y, {2}), EagerError);
}

TEST(rot90, turns_from_the_first_dimension_towards_the_second) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(rot90(x).to_vector<float>(), (std::vector<float>{2, 4, 1, 3}));
  expect_same_bits(rot90(x, -3), rot90(x));
  EXPECT_THROW(rot90(x, 1, {0, -2}), EagerError);
}

TEST(repeat_interleave, repeats_each_element_where_it_stands) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(repeat_interleave(x, 2, -1).to_vector<float>(),
            (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(repeat_interleave(x, 2, 0).to_vector<float>(),
            (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_THROW(repeat_interleave(x, -1), EagerError);
}

TEST(tril, takes_any_diagonal) {
  const Tensor x = ones({2, 3});
  for (const int64_t far : {INT64_MAX, int64_t{3}}) {
    expect_same_bits(tril(x, far), x);
    expect_same_bits(triu(x, far), zeros({2, 3}));
  }
  for (const int64_t far : {INT64_MIN, int64_t{-3}}) {
    expect_same_bits(tril(x, far), zeros({2, 3}));
    expect_same_bits(triu(x, far), x);
  }
}
TEST(views, have_a_number_of_elements) {
  const int64_t large = int64_t{1} << 32;
  EXPECT_THROW(ones({1, 1}).expand({large, large}), EagerError);
  EXPECT_THROW(as_strided(ones({1}), {large, large}, {0, 0}), EagerError);
  EXPECT_EQ(ones({1, 1}).expand({large, 2}).numel().value(), 2 * large);
}
TEST(chunk, takes_more_chunks_than_elements) { EXPECT_EQ(chunk(line(5), INT64_MAX).size(), 5u); }

}  // namespace
}  // namespace taper::eager
