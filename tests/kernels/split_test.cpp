// tensor_split, whose pieces follow NumPy's array_split; the results are PyTorch's.
#include <gmock/gmock.h>

#include "taper/tests/kernels/program_check.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const Location here = Location::current();

std::vector<std::vector<int64_t>> values(const std::vector<Tensor>& parts) {
  std::vector<std::vector<int64_t>> lists;
  for (const Tensor& t : parts) lists.push_back(contiguous(t).to_vector<int64_t>());
  return lists;
}
using Lists = std::vector<std::vector<int64_t>>;

std::vector<Tensor> split_by(const Tensor& self, const Tensor& given, int64_t dim = 0) {
  return call<ops::tensor_split_tensor_indices_or_sections>(here, self, given, dim);
}

TEST(tensor_split, makes_the_first_sections_larger) {
  const Tensor x = arange(10);
  EXPECT_EQ(values(tensor_split(x, 3)), (Lists{{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}}));
  EXPECT_EQ(values(tensor_split(x, 4)), (Lists{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(values(tensor_split(arange(2), 3)), (Lists{{0}, {1}, {}}));
  EXPECT_EQ(values(tensor_split(x, 1)), (Lists{values({x})[0]}));
}
TEST(tensor_split, cuts_before_indices_as_slices_do) {
  const Tensor x = arange(10);
  EXPECT_EQ(values(tensor_split(x, {2, 5})), (Lists{{0, 1}, {2, 3, 4}, {5, 6, 7, 8, 9}}));
  EXPECT_EQ(values(tensor_split(x, {5, 2})),
            (Lists{{0, 1, 2, 3, 4}, {}, {2, 3, 4, 5, 6, 7, 8, 9}}));
  EXPECT_EQ(values(tensor_split(x, Dims{-3})), (Lists{{0, 1, 2, 3, 4, 5, 6}, {7, 8, 9}}));
  EXPECT_EQ(values(tensor_split(arange(3), {0, 100})), (Lists{{}, {0, 1, 2}, {}}));
  EXPECT_EQ(values(tensor_split(x, {-20, 3})), (Lists{{}, {0, 1, 2}, {3, 4, 5, 6, 7, 8, 9}}));
  EXPECT_EQ(values(tensor_split(x, {1, -1})), (Lists{{0}, {1, 2, 3, 4, 5, 6, 7, 8}, {9}}));
  EXPECT_EQ(tensor_split(x, Dims{}).size(), 1u);
}
TEST(tensor_split, takes_either_from_a_tensor) {
  const Tensor x = reshape(arange(20), {2, 10});
  const auto same_parts = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    EXPECT_EQ(values(a), values(b));
  };
  same_parts(split_by(x, Tensor::from<int64_t>({3}, {}), 1), tensor_split(x, 3, 1));
  same_parts(split_by(x, Tensor::from<int64_t>({2, -2}, {2}), -1), tensor_split(x, {2, -2}, -1));
}
TEST(tensor_split, gives_views_with_gradients) {
  Tensor x = zeros({5, 2});
  tensor_split(x, 2)[1].fill_(1);
  EXPECT_EQ(sum(x).item(), 4);
  const Tensor y = random_tensor({7});
  y.set_requires_grad();
  const std::vector<Tensor> parts = tensor_split(y, {2, 4});
  EXPECT_EQ(grad({sum(parts[0]) + 3 * sum(parts[2])}, {y})[0].to_vector<float>(),
            (std::vector<float>{1, 1, 0, 0, 3, 3, 3}));
}
TEST(tensor_split, refuses_what_has_no_pieces) {
  const Tensor x = arange(4);
  const auto expect_refusal = [](const auto& call, const std::string& message) {
    EXPECT_THAT(call, ThrowsMessage<EagerError>(HasSubstr(message)));
  };
  expect_refusal([&] { tensor_split(x, 0); }, "tensor_split: sections must be 1 or more, got 0");
  expect_refusal([&] { tensor_split(x, 2, 1); }, "tensor_split: dim 1 is outside [-1, 1)");
  expect_refusal([] { tensor_split(zeros({}), 1); }, "a tensor without dimensions");
  expect_refusal([&] { split_by(x, ones({2})); },
                 "must be one i64 or a vector of them, got (2) f32");
  expect_refusal([&] { split_by(x, ones({1, 2}, DType::i64)); }, "got (1, 2) i64");
}

TEST(tensor_split, cuts_a_size_that_only_the_program_knows) {
  const auto f = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> parts = tensor_split(in[0], 3, 1);
    for (const Tensor& t : tensor_split(in[0], {2, -1}, 1)) parts.push_back(t);
    for (Tensor& t : parts) t = t * 2;
    return parts;
  };
  const Dim n = Dim::symbol("n", 1, 12);
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t size : {1, 2, 3, 8, 12}) calls.push_back({random_tensor({2, size}, size)});
  expect_same_bits_in_program(f, {input("x", {2, n})}, calls);
}
TEST(tensor_split, keeps_sizes_that_come_out_even) {
  const auto graph =
      taper::trace("f",
                   [](const std::vector<Tensor>& in) {
                     std::vector<Tensor> parts = tensor_split(cat({in[0], in[0]}), 2);
                     return std::vector<Tensor>{parts[0] + parts[1] + in[0]};
                   },
                   {input("x", {Dim::symbol("n", 1, 12)})});
  EXPECT_TRUE(graph->checks().empty());
}
TEST(tensor_split, reads_indices_when_the_program_runs) {
  const auto f = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> parts = split_by(in[0], in[1]);
    for (Tensor& t : parts) t = t + 1;
    return parts;
  };
  const Dim n = Dim::symbol("n", 1, 12);
  const Tensor x = random_tensor({9});
  expect_same_bits_in_program(f, {input("x", {n}), input("at", {2}, DType::i64)},
                              {{x, Tensor::from<int64_t>({2, 5}, {2})},
                               {x, Tensor::from<int64_t>({0, 9}, {2})},
                               {x, Tensor::from<int64_t>({6, 3}, {2})}});
  EXPECT_THAT(
      [&] {
        taper::trace("f", [](const std::vector<Tensor>& in) { return split_by(in[0], in[1]); },
                     {input("x", {n}), input("count", {}, DType::i64)});
      },
      ThrowsMessage<EagerError>(HasSubstr("tensor_split: the size of the result depends on")));
}

}  // namespace
}  // namespace taper::eager
