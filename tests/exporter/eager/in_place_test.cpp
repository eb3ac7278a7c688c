// Writes in place, through views, and what autograd makes of them.
#include <gmock/gmock.h>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor leaf(std::vector<float> values, const Ints& sizes) {
  return Tensor::from(values, sizes).set_requires_grad();
}
std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

TEST(in_place, changes_the_tensor_and_its_history) {
  const Tensor x = leaf({1, 2}, {2});
  Tensor y = x * 3;
  y.mul_(y.detach().clone());
  EXPECT_THAT(values(y), ElementsAre(9, 36));
  sum(y).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(9, 18));
}
TEST(in_place, refuses_to_write_a_leaf_that_requires_a_gradient) {
  Tensor x = leaf({1, 2}, {2});
  EXPECT_THROW_MESSAGE(x.add_(1), "a leaf that requires a gradient");
  EXPECT_THROW_MESSAGE(x.copy_(Tensor::from<float>({3, 4}, {2})),
                       "a leaf that requires a gradient");
  EXPECT_THAT(values(x), ElementsAre(1, 2));
}
TEST(copy_, casts_to_the_dtype_of_self) {
  Tensor integers = zeros({2}, DType::i64), flags = zeros({2}, DType::boolean);
  const Tensor x = Tensor::from<float>({-1.5f, 0}, {2});
  EXPECT_THAT(integers.copy_(x).to_vector<int64_t>(), ElementsAre(-1, 0));
  EXPECT_THAT(flags.copy_(x).to(DType::f32).to_vector<float>(), ElementsAre(1, 0));
}
TEST(activations, exist_in_place) {
  Tensor x = Tensor::from<float>({-2, 0.5f, 7}, {3});
  const void* storage = x.data<float>();
  EXPECT_THAT(values(hardtanh_(x, -1, 6)), ElementsAre(-1, 0.5f, 6));
  EXPECT_THAT(values(leaky_relu_(x, 0.5)), ElementsAre(-0.5f, 0.5f, 6));
  EXPECT_THAT(values(relu_(x)), ElementsAre(0, 0.5f, 6));
  EXPECT_THAT(values(relu6_(x.sub_(-1.0))), ElementsAre(1, 1.5f, 6));
  const Tensor before = x.clone();
  EXPECT_EQ(values(silu_(x)), values(silu(before)));
  EXPECT_EQ(x.data<float>(), storage);
}
TEST(in_place, names_both_places_when_it_corrupts_a_gradient) {
  const Tensor x = leaf({1, 2}, {2});
  Tensor y = x * 3;
  const int user = __LINE__ + 1;
  const Tensor z = y * y;
  const int writer = __LINE__ + 1;
  y.add_(1);
  EXPECT_THAT([&] { sum(z).backward(); },
              ThrowsMessage<EagerError>(testing::AllOf(HasSubstr(
                  "add_ at in_place_test.cpp:" + std::to_string(writer) +
                  " overwrote a value that mul at in_place_test.cpp:" + std::to_string(user)))));
}
TEST(in_place, allows_overwriting_what_nobody_needs) {
  const Tensor x = leaf({-1, 2}, {2});
  Tensor y = x + 0.0;  // add saves nothing
  relu_(y);
  sum(y).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 1));
}
TEST(in_place, refuses_a_leaf_that_wants_a_gradient) {
  Tensor x = leaf({1}, {1});
  EXPECT_THROW_MESSAGE(x.add_(1), "a leaf that requires a gradient cannot be written in place");
  no_grad([&] { x.add_(1); });
  EXPECT_THAT(values(x), ElementsAre(2));
}
TEST(in_place, writes_through_views_reach_the_gradient_of_the_base) {
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2}), v = leaf({10, 20}, {2});
  Tensor y = x * 1;
  y[0].copy_(v);
  EXPECT_THAT(values(y), ElementsAre(10, 20, 3, 4));
  sum(y * y).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 0, 6, 8));
  EXPECT_THAT(values(v.grad()), ElementsAre(20, 40));
}
TEST(in_place, writes_to_the_base_reach_the_history_of_earlier_views) {
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  Tensor y = x * 1;
  const Tensor row = y[1];
  y.mul_(5);
  sum(row).backward();
  EXPECT_THAT(values(row), ElementsAre(15, 20));
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 0, 5, 5));
}
TEST(in_place, writes_through_chains_of_views) {
  const Tensor x = leaf({0, 0, 0, 0, 0, 0}, {2, 3}), v = leaf({1, 2}, {2});
  Tensor y = x * 1;
  y.t().slice(0, 1, 2).squeeze(0).copy_(v);  // column 1
  EXPECT_THAT(values(y), ElementsAre(0, 1, 0, 0, 2, 0));
  sum(y * Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3})).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1, 0, 3, 4, 0, 6));
  EXPECT_THAT(values(v.grad()), ElementsAre(2, 5));
}
TEST(in_place, copies_between_overlapping_views) {
  Tensor t = Tensor::from<float>({1, 2, 3, 4}, {4});
  t.slice(0, 1, 4).copy_(t.slice(0, 0, 3));
  EXPECT_THAT(values(t), ElementsAre(1, 1, 2, 3));
}
// Row by row, each row would be read after the one before was written over it.
TEST(in_place, copies_between_overlapping_rows_and_columns) {
  const std::vector<float> counted{1, 2, 3, 4, 5, 6, 7, 8};
  const auto copied = [&](int64_t dim, int64_t to, int64_t from, int64_t length) {
    Tensor t = Tensor::from(counted, {4, 2});
    t.slice(dim, to, to + length).copy_(t.slice(dim, from, from + length));
    return values(t);
  };
  EXPECT_THAT(copied(0, 1, 0, 3), ElementsAre(1, 2, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(copied(0, 0, 1, 3), ElementsAre(3, 4, 5, 6, 7, 8, 7, 8));
  EXPECT_THAT(copied(1, 1, 0, 1), ElementsAre(1, 1, 3, 3, 5, 5, 7, 7));
  Tensor line = Tensor::from(counted, {8}), square = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  line.slice(0, 2, 8, 2).copy_(line.slice(0, 0, 6, 2));
  EXPECT_THAT(values(line), ElementsAre(1, 2, 1, 4, 3, 6, 5, 8));
  square.copy_(square.t());
  EXPECT_THAT(values(square), ElementsAre(1, 3, 2, 4));
  square.add_(square.t());
  EXPECT_THAT(values(square), ElementsAre(2, 5, 5, 8));
}
// A cycle of three dimensions is not its own inverse.
TEST(in_place, writes_through_a_permutation_reach_the_gradient) {
  for (const Ints& order : {Ints{1, 2, 0}, Ints{2, 0, 1}, Ints{-2, -1, 0}}) {
    std::vector<float> numbers(24);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    const Tensor w = Tensor::from(numbers, {2, 3, 4}), x = leaf(numbers, {2, 3, 4});
    const Tensor v = (w.permute(order) + 100.0).detach().set_requires_grad();
    Tensor y = x * 1;
    y.permute(order).copy_(v);
    EXPECT_EQ(values(y), values(w + 100.0));
    sum(y * w).backward();
    EXPECT_EQ(values(v.grad()), values(w.permute(order)));
  }
}
TEST(in_place, writes_through_an_expand_that_adds_no_element) {
  const Tensor x = leaf({1, 2}, {2}), v = leaf({3, 4}, {1, 2});
  Tensor y = x * 1;
  y.expand({1, 2}).copy_(v);
  sum(y * y).backward();
  EXPECT_THAT(values(v.grad()), ElementsAre(6, 8));
}
TEST(in_place, refuses_another_size_or_a_narrower_type) {
  Tensor t = Tensor::from<float>({1, 2}, {2});
  EXPECT_THROW_MESSAGE(t.add_(Tensor::from<float>({1, 2, 3, 4}, {2, 2})),
                       "add_: the result's size (2, 2) is not that of self (2)");
  Tensor i = Tensor::from<int64_t>({1, 2}, {2});
  EXPECT_THROW_MESSAGE(i.add_(0.5), "cannot be written into self of i64");
}
TEST(in_place, refuses_to_write_elements_that_are_one) {
  Tensor line = ones({3}).expand({2, 3});
  EXPECT_THROW_MESSAGE(line.add_(Scalar(1)), "write to a clone()");
}

}  // namespace
}  // namespace taper::eager
