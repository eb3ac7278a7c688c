// torchvision's operators for detectors: their errors, derivatives, threads and programs.
// tests/golden/detection_cases.jsonl has torchvision's results.
#include "taper/exporter/eager/ops/detection.h"

#include <gmock/gmock.h>

#include <limits>

#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tensor boxes_of(const std::vector<float>& corners) {
  return Tensor::from(corners, {static_cast<int64_t>(corners.size() / 4), 4});
}
/// `count` boxes of 10 x 10, each a tenth of its size to the right of the one before.
Tensor row_of_boxes(int count) {
  std::vector<float> corners;
  for (int i = 0; i < count; ++i) {
    const float x = static_cast<float>(i);
    corners.insert(corners.end(), {x, 0, x + 10, 10});
  }
  return boxes_of(corners);
}
std::vector<int64_t> kept(const Tensor& boxes, const std::vector<float>& scores, double threshold) {
  const Tensor all = Tensor::from(scores, {static_cast<int64_t>(scores.size())});
  return nms(boxes, all, threshold).to_vector<int64_t>();
}

TEST(nms, keeps_the_best_of_boxes_that_overlap) {
  // neighbours share 9 / 11 of their area, and those at a distance of 5 a third
  const Tensor boxes = row_of_boxes(6);
  EXPECT_EQ(kept(boxes, {1, 2, 3, 4, 5, 6}, 0.5), (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(kept(boxes, {6, 5, 4, 3, 2, 1}, 0.3), (std::vector<int64_t>{0}));
  EXPECT_EQ(kept(boxes, {1, 2, 3, 4, 5, 6}, 1), (std::vector<int64_t>{5, 4, 3, 2, 1, 0}));
}
TEST(nms, keeps_the_order_of_equal_scores_and_puts_nan_first) {
  EXPECT_EQ(kept(row_of_boxes(3), {1, 1, 1}, 0.5), (std::vector<int64_t>{0}));
  EXPECT_EQ(kept(row_of_boxes(3), {1, 2, nan}, 0.9), (std::vector<int64_t>{2, 1, 0}));
}
TEST(nms, keeps_boxes_without_an_area_and_those_with_nan) {
  // 0 / 0 is not above a threshold
  EXPECT_EQ(kept(boxes_of({1, 1, 1, 1, 1, 1, 1, 1}), {1, 2}, 0), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(kept(boxes_of({nan, 0, 4, 4, 0, 0, 4, 4}), {2, 1}, 0.5), (std::vector<int64_t>{0, 1}));
}
TEST(nms, refuses_what_does_not_fit) {
  const Tensor boxes = row_of_boxes(3);
  EXPECT_THROW_MESSAGE(nms(boxes, zeros({2}), 0.5), "nms: needs boxes (n, 4) and scores (n), got ");
  EXPECT_THROW_MESSAGE(nms(zeros({3, 5}), zeros({3}), 0.5), "needs boxes (n, 4)");
  EXPECT_THROW_MESSAGE(nms(boxes, zeros({3}, DType::f64), 0.5), "of one floating dtype");
  const Tensor far = Tensor::from(std::vector<int64_t>{0, 3}, {2});
  EXPECT_THROW_MESSAGE(call<ops::taper_nms_keep>(Location::current(), boxes, far, 0.5),
                       "index 3 is outside [0, 3)");
}
TEST(nms, finds_any_number_of_boxes_in_a_program) {
  const auto f = [](const std::vector<Tensor>& v) {
    const Tensor keep = nms(v[0], v[1], 0.5);
    return std::vector<Tensor>{keep, index_select(v[0], 0, keep)};
  };
  const Dim n = Dim::symbol("n", 0, 40);
  std::vector<std::vector<Tensor>> calls;
  for (const int count : {0, 1, 6, 40})
    calls.push_back({row_of_boxes(count), random_tensor({count}, count + 1)});
  calls.push_back({random_tensor({40, 4}), random_tensor({40}, 2)});
  expect_same_bits_in_program(f, {input("boxes", {n, 4}), input("scores", {n})}, calls);
}

Tensor random_regions(int64_t count, int64_t images, double size, DType dtype = DType::f64) {
  const Tensor image = remainder(arange(count).to(dtype), Scalar(images));
  const Tensor first = random_tensor({count, 2}, 5, dtype) * (size / 6) + size / 4;
  const Tensor extent = abs(random_tensor({count, 2}, 6, dtype)) * (size / 2);
  return cat({unsqueeze(image, 1), first, first + extent}, 1);
}

TEST(roi_align, has_the_same_bits_with_threads_and_from_strides) {
  const Tensor x = random_tensor({2, 70, 9, 11}), rois = random_regions(7, 2, 9, DType::f32);
  for (const int64_t ratio : {-1, 2}) {
    const auto f = [&] { return roi_align(scattered(x), scattered(rois), 1, 3, 2, ratio); };
    expect_same_bits(f(), roi_align(x, rois, 1, 3, 2, ratio));
    expect_same_bits_with_two_threads(f);
  }
  const auto sensitive = [&] { return ps_roi_align(x, rois, 1, 5, 7, 2).first; };
  expect_same_bits_with_two_threads(sensitive);
  expect_same_bits_with_two_threads([&] { return roi_pool(x, rois, 1, 2, 2).first; });
  expect_same_bits_with_two_threads([&] { return ps_roi_pool(x, rois, 1, 5, 7).first; });
}
TEST(roi_align, is_differentiable_twice) {
  const Tensor x = random_tensor({2, 6, 3, 4}, 1, DType::f64), rois = random_regions(3, 2, 4);
  const auto squares = [](const Tensor& y) { return sum(y * y * y); };
  for (const bool aligned : {false, true})
    for (const int64_t ratio : {-1, 2})
      expect_right_derivatives(
          [&](const std::vector<Tensor>& v) {
            return squares(roi_align(v[0], rois, 0.5, 2, 3, ratio, aligned));
          },
          {x.detach()});
  for (const int64_t ratio : {-1, 3})
    expect_right_derivatives(
        [&](const std::vector<Tensor>& v) {
          return squares(ps_roi_align(v[0], rois, 1, 2, 3, ratio).first);
        },
        {x.detach()});
  expect_right_derivatives(
      [&](const std::vector<Tensor>& v) { return squares(roi_pool(v[0], rois, 1, 2, 2).first); },
      {x.detach()});
  expect_right_derivatives(
      [&](const std::vector<Tensor>& v) { return squares(ps_roi_pool(v[0], rois, 1, 2, 3).first); },
      {x.detach()});
}
TEST(roi_align, gives_no_gradient_through_boxes_without_samples) {
  const Tensor rois = Tensor::from(std::vector<float>{0, nan, 0, 2, 2, 0, 3, 3, 1, 1}, {2, 5});
  for (const int64_t ratio : {-1, 2}) {
    const Tensor x = ones({1, 4, 3, 3}).set_requires_grad();
    sum(roi_align(x, slice(rois, 0, 0, 1), 1, 2, 2, ratio)).backward();
    EXPECT_EQ(max(abs(x.grad())).item(), 0);
  }
  const Tensor x = ones({1, 4, 3, 3}).set_requires_grad();
  sum(roi_align(x, rois, 1, 2, 2, -1, /*aligned=*/true)).backward();
  EXPECT_EQ(max(abs(x.grad())).item(), 0);
}
TEST(roi_align, is_computed_in_f32_for_halves) {
  for (const DType half : {DType::f16, DType::bf16}) {
    const Tensor x = random_tensor({2, 6, 5, 7}).to(half);
    const Tensor rois = random_regions(4, 2, 6).to(half);
    const auto wide = [](const Tensor& t) { return t.to(DType::f32); };
    expect_same_bits(roi_align(x, rois, 0.5, 2, 3, 2, true),
                     roi_align(wide(x), wide(rois), 0.5, 2, 3, 2, true).to(half));
    expect_same_bits(ps_roi_pool(x, rois, 1, 2, 3).first,
                     ps_roi_pool(wide(x), wide(rois), 1, 2, 3).first.to(half));
    const Tensor boxes = slice(rois, 1, 1, 5), scores = random_tensor({4}).to(half);
    expect_same_bits(nms(boxes, scores, 0.2), nms(wide(boxes), wide(scores), 0.2));
  }
}
TEST(roi_align, refuses_what_does_not_fit) {
  const Tensor x = zeros({2, 6, 4, 4}), rois = zeros({1, 5});
  EXPECT_THROW_MESSAGE(roi_align(x, zeros({1, 4}), 1, 2, 2), "a row of rois has 4 elements, not 5");
  EXPECT_THROW_MESSAGE(roi_align(x, rois.to(DType::f64), 1, 2, 2), "one floating dtype");
  EXPECT_THROW_MESSAGE(roi_align(x, rois, 1, 0, 2), "pooled_height is 0, below 1");
  EXPECT_THROW_MESSAGE(roi_align(x, rois, 1, 2, 2, 257),
                       "sampling_ratio is 257, it must be at most 256");
  EXPECT_THROW_MESSAGE(ps_roi_pool(x, rois, 1, 2, 2), "not a multiple of the bins (2 remain");
  for (const float image : {-1.0f, 2.0f, nan}) {
    const Tensor other = Tensor::from(std::vector<float>{image, 0, 0, 1, 1}, {1, 5});
    EXPECT_THROW_MESSAGE(roi_align(x, other, 1, 2, 2), "rois names image ");
    EXPECT_THROW_MESSAGE(roi_pool(x, other, 1, 2, 2), "which is outside [0, 2)");
  }
}
TEST(roi_align, reads_nothing_outside_of_the_image_however_large_a_box_is) {
  const Tensor x = ones({1, 1, 3, 4});
  for (const float far : {1e9f, 1e38f, std::numeric_limits<float>::infinity(), nan})
    for (const bool aligned : {false, true}) {
      const Tensor rois = Tensor::from(
          std::vector<float>{0, -far, -far, far, far, 0, far, far, -far, -far, 0, 0, 0, far, 2},
          {3, 5});
      for (const float y : roi_align(x, rois, 1, 2, 2, -1, aligned).to_vector<float>())
        EXPECT_TRUE(y >= 0 && y <= 1) << far << " gives " << y;
      for (const float y : roi_pool(x, rois, 1, 2, 2).first.to_vector<float>())
        EXPECT_TRUE(y == 0 || y == 1) << far << " gives " << y;
    }
}
TEST(roi_align, runs_in_a_program_with_any_number_of_boxes) {
  const auto f = [](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{
        roi_align(v[0], v[1], 0.5, 2, 3, 2, true), roi_pool(v[0], v[1], 0.5, 2, 3).second,
        ps_roi_align(v[0], v[1], 0.5, 2, 3).first, ps_roi_pool(v[0], v[1], 0.5, 2, 3).first};
  };
  const Dim n = Dim::symbol("n", 0, 9), height = Dim::symbol("height", 1, 12);
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t count : {0, 1, 9})
    calls.push_back({random_tensor({2, 6, count + 3, 5}), random_regions(count, 2, 8, DType::f32)});
  expect_same_bits_in_program(f, {input("x", {2, 6, height, 5}), input("rois", {n, 5})}, calls);
}

/// A deformable convolution of (2, 4, 5, 6) with 2 x 3 taps, stride (2, 1) and padding (1, 0).
Tensor deformed(const std::vector<Tensor>& v, bool use_mask = true) {
  return deform_conv2d(v[0], v[1], v[2], v[3], v[4], 2, 1, 1, 0, 1, 1, 2, 2, use_mask);
}
std::vector<Tensor> deformable_inputs(DType dtype) {
  return {random_tensor({2, 4, 5, 6}, 1, dtype), random_tensor({6, 2, 2, 3}, 2, dtype),
          random_tensor({2, 24, 3, 4}, 3, dtype), random_tensor({2, 12, 3, 4}, 4, dtype),
          random_tensor({6}, 5, dtype)};
}

TEST(deform_conv2d, equals_a_convolution_without_offsets) {
  std::vector<Tensor> v = deformable_inputs(DType::f64);
  v[2] = zeros_like(v[2]);
  const Tensor want =
      call<ops::convolution>(Location::current(), v[0], v[1], std::optional(v[4]), Dims{2, 1},
                             Dims{1, 0}, Dims{1, 1}, false, Dims{0, 0}, Dim(2));
  EXPECT_LT(max(abs(deformed(v, false) - want)).item(), 1e-12);
  v[3] = ones_like(v[3]);
  EXPECT_LT(max(abs(deformed(v) - want)).item(), 1e-12);
}
TEST(deform_conv2d, has_the_same_bits_with_threads_and_from_strides) {
  const std::vector<Tensor> v = deformable_inputs(DType::f32);
  std::vector<Tensor> gaps;
  for (const Tensor& t : v) gaps.push_back(scattered(t));
  expect_same_bits(deformed(gaps), deformed(v));
  expect_same_bits_with_two_threads([&] { return deformed(gaps); });
}
TEST(deform_conv2d, is_differentiable_by_all_its_arguments) {
  std::vector<Tensor> v = deformable_inputs(DType::f64);
  for (const bool use_mask : {true, false}) {
    const auto f = [&](const std::vector<Tensor>& x) {
      const Tensor y = deformed({x[0], x[1], x[2], use_mask ? x[3] : v[3], x.back()}, use_mask);
      return sum(y * y);
    };
    std::vector<Tensor> inputs = {v[0].detach(), v[1].detach(), v[2].detach(), v[4].detach()};
    if (use_mask) inputs.insert(inputs.begin() + 3, v[3].detach());
    for (const Tensor& t : inputs) t.set_requires_grad();
    EXPECT_EQ(gradcheck(f, inputs), "");
  }
}
TEST(deform_conv2d, is_computed_in_f32_for_halves) {
  std::vector<Tensor> halves = deformable_inputs(DType::f32), wide;
  for (Tensor& t : halves) t = t.to(DType::f16), wide.push_back(t.to(DType::f32));
  expect_same_bits(deformed(halves), deformed(wide).to(DType::f16));
}
TEST(deform_conv2d, refuses_what_does_not_fit) {
  const std::vector<Tensor> v = deformable_inputs(DType::f32);
  const auto with = [&](size_t i, const Tensor& t) {
    std::vector<Tensor> changed = v;
    changed[i] = t;
    return changed;
  };
  EXPECT_THROW_MESSAGE(deformed(with(1, zeros({6, 3, 2, 3}))), "does not take the channels");
  EXPECT_THROW_MESSAGE(deformed(with(2, zeros({2, 12, 3, 4}))), "needs two channels for each");
  EXPECT_THROW_MESSAGE(deformed(with(2, zeros({2, 24, 4, 4}))),
                       "offset has extent 4, the result 3");
  EXPECT_THROW_MESSAGE(deformed(with(3, zeros({2, 6, 3, 4}))), "twice mask's channels are 12");
  EXPECT_THROW_MESSAGE(deformed(with(4, zeros({5}))), "must have 6 elements");
}
TEST(deform_conv2d, runs_in_a_program_with_a_symbolic_batch) {
  const auto f = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{deformed(v)}; };
  const Dim n = Dim::symbol("n", 0, 4);
  std::vector<InputSpec> inputs;
  std::vector<Tensor> empty;
  const std::vector<Tensor> v = deformable_inputs(DType::f32);
  for (size_t i = 0; i < v.size(); ++i) {
    Dims sizes = v[i].sizes();
    const bool is_batch = i == 0 || i == 2 || i == 3;
    empty.push_back(is_batch ? slice(v[i], 0, 0, 0) : v[i]);
    if (is_batch) sizes[0] = n;
    inputs.push_back(input("input" + std::to_string(i), sizes));
  }
  expect_same_bits_in_program(f, inputs, {v, empty});
}

}  // namespace
}  // namespace taper::eager
