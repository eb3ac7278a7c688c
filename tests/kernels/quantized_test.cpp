// What the golden cases do not show: refusals, and fake quantization on the tape.
#include <gmock/gmock.h>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/run_kernel.h"
#include "taper/exporter/exporter.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;

const Location here = Location::current();

Tensor vector_of(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}
Tensor integers(const std::vector<int64_t>& values, DType dtype = DType::i64) {
  return to(Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())}), dtype);
}

// ---- dtypes and ranges

Tensor quantize(const Tensor& x, int64_t low, int64_t high, DType dtype) {
  return call<ops::quantized_decomposed_quantize_per_tensor>(here, x, 0.5, int64_t{0}, low, high,
                                                             dtype);
}

TEST(quantize_per_tensor, takes_only_f32_and_half_precision) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(quantize(zeros({2}, dtype), -128, 127, DType::i8).dtype(), DType::i8);
  for (const DType dtype : {DType::f64, DType::i32, DType::boolean})
    EXPECT_THROW_MESSAGE(
        quantize(zeros({2}, dtype), -128, 127, DType::i8),
        "quantized_decomposed::quantize_per_tensor: input must be f32, f16 or bf16");
}
TEST(quantize_per_tensor, refuses_a_dtype_that_is_no_small_integer) {
  for (const DType dtype : {DType::f32, DType::i64, DType::boolean})
    EXPECT_THROW_MESSAGE(
        quantize(zeros({2}), 0, 1, dtype),
        "the dtype must be u8, i8, i16 or i32, not " + std::string(name_of(dtype)));
}
TEST(quantize_per_tensor, refuses_a_range_that_the_dtype_does_not_hold) {
  EXPECT_THROW_MESSAGE(
      quantize(zeros({2}), -129, 127, DType::i8),
      "[quant_min, quant_max] = [-129, 127] must be a range within [-128, 127] of i8");
  EXPECT_THROW_MESSAGE(quantize(zeros({2}), 0, 256, DType::u8), "within [0, 255] of u8");
  EXPECT_THROW_MESSAGE(quantize(zeros({2}), 3, 2, DType::i8), "[3, 2] must be a range");
}
TEST(quantize_per_tensor, refuses_a_scale_of_several_elements) {
  EXPECT_THROW_MESSAGE(
      call<ops::quantized_decomposed_quantize_per_tensor_tensor>(
          here, zeros({4}), vector_of({1, 2}), integers({0}), int64_t{-8}, int64_t{7}, DType::i8),
      "scale (2) must have one element");
}

TEST(dequantize_per_tensor, refuses_other_dtypes_than_the_call_says_and_no_integers) {
  const auto run = [](DType given, DType dtype) {
    call<ops::quantized_decomposed_dequantize_per_tensor>(
        here, zeros({2}, given), 0.5, int64_t{0}, int64_t{0}, int64_t{127}, dtype, std::nullopt);
  };
  run(DType::i8, DType::i8);
  EXPECT_THROW_MESSAGE(run(DType::u8, DType::i8), "input must be i8, as the call says, not u8");
  EXPECT_THROW_MESSAGE(run(DType::f32, DType::f32), "the dtype must be u8, i8, i16 or i32");
}

TEST(choose_qparams, refuses_a_range_without_zero) {
  const auto choose = [](int64_t low, int64_t high) {
    call<ops::quantized_decomposed_choose_qparams_tensor>(here, ones({2}), low, high, 1e-7,
                                                          DType::i8);
  };
  EXPECT_THROW_MESSAGE(choose(1, 127), "[1, 127] must contain 0 and another integer");
  EXPECT_THROW_MESSAGE(choose(0, 0), "[0, 0] must contain 0 and another integer");
}

// ---- shapes

Tensor quantize_channels(const Tensor& x, const Tensor& scales, int64_t axis) {
  return call<ops::quantized_decomposed_quantize_per_channel>(
      here, x, scales, zeros_like(scales), axis, int64_t{-8}, int64_t{7}, DType::i8);
}

TEST(quantize_per_channel, wants_one_scale_for_each_channel) {
  EXPECT_EQ(to_string(quantize_channels(zeros({2, 3}), ones({3}), -1).sizes()), "(2, 3)");
  EXPECT_THROW_MESSAGE(quantize_channels(zeros({2, 3}), ones({1}), 1),
                       "scales (1) must have size (3), that of (2, 3) along axis 1");
  EXPECT_THROW_MESSAGE(quantize_channels(zeros({2, 3}), ones({3, 1}), 1),
                       "scales (3, 1) must have size (3)");
  EXPECT_THROW_MESSAGE(quantize_channels(zeros({2, 3}), ones({3}), 2), "dim 2 is outside [-2, 2)");
  EXPECT_THROW_MESSAGE(quantize_channels(zeros({}), ones({1}), 0),
                       "a tensor of rank 0 has no channels");
}

TEST(quantize_per_token, wants_one_scale_for_each_row) {
  const auto run = [](const Tensor& scales) {
    call<ops::quantized_decomposed_quantize_per_token>(
        here, zeros({2, 3, 4}), scales, zeros_like(scales), int64_t{-8}, int64_t{7}, DType::i8);
  };
  run(ones({2, 3, 1}));
  EXPECT_THROW_MESSAGE(run(ones({2, 1, 1})), "must have one element for each of 6 rows");
}

TEST(quantize_per_channel_group, wants_groups_that_divide_the_rows_and_one_scale_for_each) {
  const auto run = [](const Tensor& scales, int64_t group) {
    return call<ops::quantized_decomposed_quantize_per_channel_group>(
        here, zeros({2, 6}), scales, zeros_like(scales), int64_t{-8}, int64_t{7}, DType::i8, group);
  };
  run(ones({2, 2}), 3);
  run(ones({2, 1}), 128);  // a row is the group
  call<ops::quantized_decomposed_quantize_per_channel_group>(here, zeros({2, 0}), zeros({2, 0}),
                                                             zeros({2, 0}), int64_t{-8}, int64_t{7},
                                                             DType::i8, int64_t{4});
  EXPECT_THROW_MESSAGE(call<ops::quantized_decomposed_quantize_per_channel_group>(
                           here, zeros({2, 0}), zeros({2, 1}), zeros({2, 1}), int64_t{-8},
                           int64_t{7}, DType::i8, int64_t{4}),
                       "scales (2, 1) must have one element for each of 0 groups");
  EXPECT_THROW_MESSAGE(run(ones({2, 2}), 128), "group_size 128 does not divide");
  EXPECT_THROW_MESSAGE(run(ones({2, 2}), 4), "group_size 4 does not divide");
  EXPECT_THROW_MESSAGE(run(ones({2, 6}), 1), "group_size 1 must be at least 2");
  EXPECT_THROW_MESSAGE(run(ones({2, 3}), 3),
                       "scales (2, 3) must have one element for each of 4 groups");
}

TEST(dequantize_affine, refuses_another_dtype_and_other_blocks) {
  const auto run = [](DType given, const Dims& block_size) {
    call<ops::torchao_dequantize_affine>(here, zeros({4, 8}, given), block_size, ones({4, 2}),
                                         std::nullopt, DType::i8, std::nullopt, std::nullopt,
                                         DType::f32);
  };
  run(DType::i8, {1, 4});
  EXPECT_THROW_MESSAGE(run(DType::u8, {1, 4}), "input must be i8, as the call says, not u8");
  EXPECT_THROW_MESSAGE(run(DType::i8, {1, 3}), "block_size (1, 3) does not divide (4, 8)");
  EXPECT_THROW_MESSAGE(run(DType::i8, {4}), "one entry for each dimension");
}

// Its results leave out a dimension that is one block.
TEST(choose_qparams_affine, leaves_a_check_where_a_symbol_may_be_one_block) {
  const auto checks_of = [](const Dim& rows, bool keepdim) {
    const auto graph = taper::trace(
        "f",
        [&](const std::vector<Tensor>& in) {
          const auto [scale, zero] = call<ops::torchao_choose_qparams_affine>(
              here, in[0], std::string_view("SYMMETRIC"), Dims{4, 8}, DType::i8, std::nullopt,
              std::nullopt, std::nullopt, std::nullopt, std::nullopt, keepdim);
          return std::vector<Tensor>{scale, zero};
        },
        {taper::input("x", {rows, 8})});
    return std::count_if(graph->checks().begin(), graph->checks().end(), [](const Check& check) {
      return check.message.find("keepdim") != std::string::npos;
    });
  };
  EXPECT_EQ(checks_of(Dim::symbol("rows", 1, 8), false), 1);
  EXPECT_EQ(checks_of(Dim::symbol("rows", 5, 16), false), 0);
  EXPECT_EQ(checks_of(Dim::symbol("rows", 1, 8), true), 0);
}

// ---- kernels

template <class A>
Boxed box(const A& argument) {
  if constexpr (std::is_same_v<A, int64_t>)
    return Boxed::of(Dim(argument));
  else if constexpr (std::is_same_v<A, std::nullopt_t>)
    return Boxed();
  else
    return Boxed::of(argument);
}
/// The kernel gives the bits of the parts, with and without gaps in memory.
template <const Operator& op, class... A>
void expect_bits_of_parts(const Tensor& input, const A&... rest) {
  for (const Tensor& x : {input, scattered(input)}) {
    Boxed boxed[] = {Boxed::of(x), box(rest)...};
    EXPECT_FALSE(info_of(op).decomposition->in_parts(boxed));
    EXPECT_TRUE(some_kernel_fits(info_of(op), boxed));
    Tensor parts;
    dispatch_in_parts(info_of(op), boxed, &parts, here);
    expect_same_bits_with_two_threads([&] { return call<op>(here, x, rest...); });
    expect_same_bits(call<op>(here, x, rest...), parts);
  }
}
const std::vector<Ints> shapes = {{0}, {1}, {5}, {3, 129}, {2, 0, 4}, {2, 7, 300}, {3, 40000}};

TEST(quantize_per_tensor, has_a_kernel_with_the_bits_of_its_parts) {
  for (const Ints& sizes : shapes)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Tensor x = random_tensor(sizes, 1, dtype);
      for (const auto& [low, high, integer] : {std::tuple{int64_t{-128}, int64_t{127}, DType::i8},
                                               {0, 255, DType::u8},
                                               {-32768, 32767, DType::i16},
                                               {INT32_MIN, INT32_MAX, DType::i32}})
        for (const int64_t zero : {0, 3}) {
          expect_bits_of_parts<ops::quantized_decomposed_quantize_per_tensor>(x, 0.03, zero, low,
                                                                              high, integer);
          expect_bits_of_parts<ops::quantized_decomposed_quantize_per_tensor_tensor>(
              x, to(full({1}, Scalar(0.03)), DType::f64), integers({zero}), low, high, integer);
          expect_bits_of_parts<ops::quantized_decomposed_quantize_per_tensor_tensor2>(
              x, full({}, Scalar(0.03)), integers({zero}, DType::i32), integers({low}),
              integers({high}, DType::i32), integer);
        }
    }
}
// Images come with their channels first, and go on with them last.
TEST(quantize_per_tensor, brings_the_planes_of_images_together) {
  for (const Ints& sizes : std::vector<Ints>{{1, 3, 5, 7},
                                             {2, 3, 40, 41},
                                             {1, 3, 130, 131},
                                             {1, 3, 1, 1},
                                             {2, 3, 1, 8},
                                             {0, 3, 4, 4},
                                             {1, 4, 20, 30},
                                             {3, 1, 20, 30}}) {
    const Tensor image = mul(random_tensor(sizes), Scalar(9));
    const auto quantized = [](const Tensor& x) {
      return call<ops::quantized_decomposed_quantize_per_tensor>(
          Location::current(), x, 0.03, int64_t{-5}, int64_t{-128}, int64_t{127}, DType::i8);
    };
    const Tensor last = permute(image, {0, 2, 3, 1});
    expect_same_bits(quantized(last), quantized(last.contiguous()));
    expect_same_bits_with_two_threads([&] { return quantized(last); });
    // a part of each row, so that no two rows are one run
    if (sizes[3] < 4) continue;
    const Tensor part = permute(image.slice(3, 1, sizes[3] - 1), {0, 2, 3, 1});
    expect_same_bits(quantized(part), quantized(part.contiguous()));
  }
}
TEST(dequantize_per_tensor, has_a_kernel_with_the_bits_of_its_parts) {
  for (const Ints& sizes : shapes)
    for (const DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32}) {
      const Tensor q = to(mul(random_tensor(sizes), 40), dtype);
      expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_tensor>(
          q, 0.03, int64_t{3}, int64_t{0}, int64_t{100}, dtype, DType::f32);
      expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_tensor_tensor>(
          q, full({}, Scalar(0.03)), integers({3}, DType::i32), int64_t{0}, int64_t{100}, dtype,
          DType::f32);
      expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_tensor_tensor2>(
          q, full({1}, Scalar(0.03)), integers({3}), integers({0}), integers({100}), dtype,
          DType::f32);
    }
}
TEST(quantize_per_channel, has_kernels_with_the_bits_of_its_parts) {
  for (const Ints& sizes : shapes)
    for (const DType scale_dtype : {DType::f32, DType::f64})
      for (int64_t axis = 0; axis < static_cast<int64_t>(sizes.size()); ++axis) {
        const Ints channels = {sizes[static_cast<size_t>(axis)]};
        const Tensor scales = to(add(abs(random_tensor(channels, 2)), Scalar(0.01)), scale_dtype);
        const Tensor zeros = to(mul(random_tensor(channels, 3), 9), DType::i64);
        expect_bits_of_parts<ops::quantized_decomposed_quantize_per_channel>(
            random_tensor(sizes), scales, zeros, axis, int64_t{-128}, int64_t{127}, DType::i8);
        expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_channel>(
            to(mul(random_tensor(sizes), 40), DType::i8), scales, zeros,
            axis - static_cast<int64_t>(sizes.size()), int64_t{-128}, int64_t{127}, DType::i8,
            DType::f32);
      }
}
TEST(quantize_per_token, has_kernels_with_the_bits_of_its_parts) {
  for (const Ints& sizes : shapes)
    for (const DType scale_dtype : {DType::f32, DType::f64}) {
      Ints rows = sizes;
      rows.back() = 1;
      const Tensor scales = to(add(abs(random_tensor(rows, 2)), Scalar(0.01)), scale_dtype);
      const Tensor zeros = to(mul(random_tensor(rows, 3), 9), DType::i64);
      expect_bits_of_parts<ops::quantized_decomposed_quantize_per_token>(
          random_tensor(sizes), scales, zeros, int64_t{-128}, int64_t{127}, DType::i8);
      expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_token>(
          to(mul(random_tensor(sizes), 40), DType::i8), scales, zeros, int64_t{-128}, int64_t{127},
          DType::i8, DType::f32);
    }
}
TEST(quantize_per_channel_group, has_kernels_with_the_bits_of_its_parts) {
  for (const auto& [sizes, group] : {std::pair{Ints{0}, 2},
                                     {{4}, 2},
                                     {{3, 6}, 3},
                                     {{3, 130}, 65},
                                     {{5, 7}, 128},
                                     {{2, 0, 4}, 2},
                                     {{2, 7, 300}, 100},
                                     {{3, 40000}, 20000}})
    for (const DType scale_dtype : {DType::f32, DType::f64}) {
      Ints groups = sizes;
      groups.back() = groups.back() < group ? 1 : groups.back() / group;
      if (sizes.back() == 0) groups.back() = 0;
      const Tensor scales = to(add(abs(random_tensor(groups, 2)), Scalar(0.01)), scale_dtype),
                   numbers = mul(random_tensor(groups, 3), 9);
      const Tensor x = random_tensor(sizes), q = to(mul(x, 40), DType::i8);
      for (const DType integer : {DType::i8, DType::i32, DType::i64})
        expect_bits_of_parts<ops::quantized_decomposed_quantize_per_channel_group>(
            x, scales, to(numbers, integer), int64_t{-128}, int64_t{127}, DType::i8,
            int64_t{group});
      for (const DType integer : {DType::i32, DType::i64})
        expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_channel_group>(
            q, scattered(scales), to(numbers, integer), int64_t{-128}, int64_t{127}, DType::i8,
            int64_t{group}, DType::f32);
      expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_channel_group>(
          q, scales, std::nullopt, int64_t{-128}, int64_t{127}, DType::i8, int64_t{group},
          DType::f32);
    }
}
TEST(dequantize_per_channel_group, goes_round_where_a_difference_leaves_its_dtype) {
  const Tensor q = to(Tensor::from<int64_t>({INT32_MIN, 5, 6, INT32_MAX}, {1, 4}), DType::i32);
  for (const DType integer : {DType::i32, DType::i64})
    expect_bits_of_parts<ops::quantized_decomposed_dequantize_per_channel_group>(
        q, ones({2}), integers({3, -4}, integer), int64_t{INT32_MIN}, int64_t{INT32_MAX},
        DType::i32, int64_t{2}, DType::f32);
}
TEST(quantize_per_channel_group, refuses_nan_and_leaves_halves_to_its_parts) {
  const auto run = [](const Tensor& x, const Tensor& scales) {
    return call<ops::quantized_decomposed_quantize_per_channel_group>(
        here, x, scales, zeros_like(scales), int64_t{-8}, int64_t{7}, DType::i8, int64_t{2});
  };
  EXPECT_THROW_MESSAGE(run(vector_of({1, NAN}), ones({1})), "input must not contain NaN");
  EXPECT_EQ(run(vector_of({1, 2}), ones({1}, DType::bf16)).dtype(), DType::i8);
}
TEST(quantize_per_token, leaves_scales_of_lower_rank_and_halves_to_its_parts) {
  const Tensor x = random_tensor({1, 3, 4}), zeros = integers({0, 1, 2});
  const Tensor q = call<ops::quantized_decomposed_quantize_per_token>(
      here, x, ones({3, 1}), reshape(zeros, {3, 1}), int64_t{-128}, int64_t{127}, DType::i8);
  EXPECT_EQ(to_string(q.sizes()), "(1, 3, 4)");
  EXPECT_EQ(call<ops::quantized_decomposed_dequantize_per_token>(
                here, q, ones({1, 3, 1}), reshape(zeros, {1, 3, 1}), int64_t{-128}, int64_t{127},
                DType::i8, DType::f16)
                .dtype(),
            DType::f16);
}

// ---- fake quantization

Tensor fake_quantized(const Tensor& x, int64_t low = -2, int64_t high = 1) {
  return call<ops::fake_quantize_per_tensor_affine>(here, x, 0.5, int64_t{0}, low, high);
}

TEST(fake_quantize, hands_the_gradient_through_where_nothing_is_clamped) {
  const Tensor x = vector_of({-9, -1, -0.3f, 0.2f, 0.74f, 0.76f, INFINITY}),
               dy = vector_of({1, 2, 3, 4, 5, 6, 7});
  x.set_requires_grad();
  const Tensor y = fake_quantized(x);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-1, -1, -0.5f, 0, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(grad({y}, {x}, {dy})[0].to_vector<float>(), (std::vector<float>{0, 2, 3, 4, 5, 0, 0}));
}
TEST(fake_quantize, stands_on_the_tape_as_one_call) {
  const Tensor x = vector_of({1, 2});
  x.set_requires_grad();
  const std::string graph = graph_of(fake_quantized(x));
  EXPECT_THAT(graph, HasSubstr("fake_quantize_per_tensor_affine"));
  EXPECT_THAT(graph, testing::Not(HasSubstr("round")));
  EXPECT_FALSE(no_grad([&] { return fake_quantized(x); }).requires_grad());
}
TEST(fake_quantize, takes_scale_and_zero_point_from_tensors) {
  const Tensor x = vector_of({-9, 0.2f, 9});
  x.set_requires_grad();
  const Tensor y = call<ops::fake_quantize_per_tensor_affine_tensor_qparams>(
      here, x, vector_of({0.5f}), integers({0}), int64_t{-2}, int64_t{1});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-1, 0, 0.5f}));
  EXPECT_EQ(grad({sum(y)}, {x})[0].to_vector<float>(), (std::vector<float>{0, 1, 0}));
}
TEST(fake_quantize, refuses_integers_and_an_empty_range) {
  EXPECT_THROW_MESSAGE(fake_quantized(zeros({2}, DType::i32)),
                       "fake_quantize_per_tensor_affine: the input must be floating, not i32");
  EXPECT_THROW_MESSAGE(fake_quantized(zeros({2}), 3, 2), "quant_min 3 is greater than quant_max 2");
  EXPECT_THROW_MESSAGE(
      call<ops::fake_quantize_per_channel_affine>(here, zeros({2, 3}), ones({2}), zeros({2}),
                                                  int64_t{1}, int64_t{-8}, int64_t{7}),
      "scale (2) must have size (3)");
}

}  // namespace
}  // namespace taper::eager
