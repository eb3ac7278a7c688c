#include "taper/exporter/eager/tensor.h"

#include <gmock/gmock.h>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor counting(const Ints& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(values, sizes);
}

TEST(tensor, copies_values_in_and_out) {
  const Tensor t = Tensor::from<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(t.dtype(), DType::i64);
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.size(-1), Dim(3));
  EXPECT_THAT(t.to_vector<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
}
TEST(tensor, refuses_values_that_do_not_fill_its_size) {
  EXPECT_THROW_MESSAGE(Tensor::from<float>({1, 2, 3}, {2, 2}),
                       "size (2, 2) of f32 takes 16 bytes, but 12 were given");
}
TEST(tensor, refuses_negative_and_overflowing_sizes) {
  EXPECT_THROW_MESSAGE(Tensor::empty({2, -1}), "cannot be negative");
  EXPECT_THROW_MESSAGE(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), "2^63");
  EXPECT_THROW_MESSAGE(Tensor::empty({1, 1, 1, 1, 1, 1, 1, 1, 1}), "at most 8");
}
TEST(tensor, names_the_callers_line_of_indices_and_compound_assignments) {
  Tensor x = counting({2, 3});
  const std::function<void()> mistakes[] = {[&] { x[9]; }, [&] { x += counting({5}); },
                                            [&] { x /= counting({5}); }};
  for (const auto& mistake : mistakes) try {
      mistake();
      ADD_FAILURE();
    } catch (const EagerError& e) {
      EXPECT_STREQ(e.where().file, __FILE__) << e.what();
    }
}
TEST(tensor, is_missed_in_lists) {
  EXPECT_THROW_MESSAGE((void)cat({counting({2}), Tensor()}),
                       "cat: element 1 of tensors is an undefined");
}
TEST(tensor, is_made_of_bools) {
  const Tensor mask = Tensor::from<bool>({true, false, true}, {3});
  EXPECT_EQ(mask.dtype(), DType::boolean);
  EXPECT_EQ(sum(mask).item(), 2);
}
TEST(tensor, names_the_callers_line_in_errors) {
  const int line = __LINE__ + 2;
  try {
    (void)counting({2, 3}).data<double>();
    FAIL();
  } catch (const EagerError& e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_THAT(e.what(), HasSubstr("tensor_test.cpp:" + std::to_string(line) +
                                    ": data: the tensor holds f32, not f64"));
  }
}
TEST(tensor, shares_memory_with_its_views) {
  Tensor t = counting({2, 3});
  Tensor row = t[1];
  row.fill_(7);
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(0, 1, 2, 7, 7, 7));
  const Tensor column = t.slice(1, 2, 3);
  EXPECT_THAT(column.to_vector<float>(), ElementsAre(2, 7));
  EXPECT_FALSE(column.is_dense());
}
TEST(tensor, reads_strided_views_in_row_major_order) {
  EXPECT_THAT(counting({2, 3}).t().to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(counting({6}).slice(0, 0, 6, 2).to_vector<float>(), ElementsAre(0, 2, 4));
}
TEST(tensor, slices_like_python) {
  const Tensor t = counting({5});
  EXPECT_THAT(t.slice(0, -2).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_THAT(t.slice(0, 1, -1).to_vector<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(t.slice(0, 3, 2).to_vector<float>(), ElementsAre());
}
TEST(tensor, gives_the_only_element_as_a_number) {
  EXPECT_EQ(Tensor::from<float>({2.5f}, {1, 1}).item(), 2.5);
  EXPECT_EQ(Tensor::from<int64_t>({INT64_MAX}, {}).item<int64_t>(), INT64_MAX);
  EXPECT_THROW_MESSAGE(counting({2}).item(), "item: a tensor of size (2) is not one number");
}
TEST(tensor, refuses_to_be_used_undefined) {
  EXPECT_THROW_MESSAGE(Tensor().sizes(), "undefined tensor");
  EXPECT_THROW_MESSAGE(relu(Tensor()), "relu: argument self is an undefined tensor");
  EXPECT_THAT(
      [] {
        Tensor t;
        t.add_(counting({1}));
      },
      ThrowsMessage<EagerError>(HasSubstr("undefined tensor")));
}
// PyTorch's result_type: dimensions before 0-dim tensors before numbers, unless the category rises.
TEST(tensor, promotes_as_pytorch_does) {
  const auto make = [](DType dtype, const Ints& sizes) {
    return Tensor::empty(sizes, dtype).fill_(1);
  };
  EXPECT_EQ((make(DType::f32, {1}) + make(DType::f64, {})).dtype(), DType::f32);
  EXPECT_EQ((make(DType::f16, {1}) + make(DType::f32, {1})).dtype(), DType::f32);
  EXPECT_EQ((make(DType::f16, {1}) + make(DType::bf16, {1})).dtype(), DType::f32);
  EXPECT_EQ((make(DType::f16, {1}) * 2.5).dtype(), DType::f16);
  EXPECT_EQ((make(DType::f64, {1}) * 2).dtype(), DType::f64);
  EXPECT_EQ((make(DType::i32, {1}) + make(DType::f64, {})).dtype(), DType::f64);
  EXPECT_EQ((make(DType::i64, {1}) * 0.5).dtype(), DType::f32);
  EXPECT_EQ((make(DType::i8, {1}) + make(DType::i64, {})).dtype(), DType::i8);
  EXPECT_EQ((make(DType::i8, {1}) + make(DType::u8, {1})).dtype(), DType::i16);
  EXPECT_EQ((make(DType::i64, {1}) / make(DType::i64, {1})).dtype(), DType::f32);
  EXPECT_EQ(sum(make(DType::f16, {2})).dtype(), DType::f16);
  EXPECT_EQ(sum(make(DType::i32, {2})).dtype(), DType::i64);
  EXPECT_EQ(logical_and(make(DType::f32, {1}), make(DType::f32, {1})).dtype(), DType::boolean);
}
TEST(tensor, keeps_borrowed_memory_alive) {
  auto memory = std::make_shared<std::vector<float>>(64, 3.0f);
  std::weak_ptr<std::vector<float>> watch = memory;
  Tensor t = Tensor::borrow(memory->data(), DType::f32, {4}, memory);
  memory.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(3, 3, 3, 3));
  t = Tensor();
  EXPECT_TRUE(watch.expired());
}
TEST(tensor, converts_between_dtypes) {
  EXPECT_THAT(counting({3}).to(DType::i64).to_vector<int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(counting({1}).to(DType::f16).dtype(), DType::f16);
}

}  // namespace
}  // namespace taper::eager
