// Clamps behind nodes with paddings, beside eager.
#include "delegated.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace taper::delegates::xnnpack {
namespace {

const Tensor images = random_tensor({2, 6, 9, 11}, 1), filter = random_tensor({6, 6, 3, 3}, 2),
             bias = random_tensor({6}, 3);

Tensor padded(const Tensor& x) { return conv2d(x, filter, bias, 1, 1); }

/// Behind all nodes that the library clamps itself.
template <class F>
void expect_behind_all(F&& function) {
  const Tensor depthwise = random_tensor({6, 1, 3, 3}, 4), square = random_tensor({11, 11}, 5);
  expect_as_eager([&](const Tensor& x) { return function(padded(x)); }, images);
  expect_as_eager([&](const Tensor& x) { return function(conv2d(x, depthwise, bias, 1, 1, 1, 6)); },
                  images);
  expect_as_eager(
      [&](const Tensor& x) { return function(conv_transpose2d(x, filter, bias, 2, 1)); }, images);
  expect_as_eager([&](const Tensor& x) { return function(max_pool2d(padded(x), 3, 2, 1)); },
                  images);
  expect_as_eager(
      [&](const Tensor& x) { return function(avg_pool2d(padded(x), 3, 2, 1, false, false)); },
      images);
  expect_as_eager([&](const Tensor& x) { return function(linear(x, square)); }, images);
}

TEST(xnnpack_clamps, may_end_at_zero) {
  expect_behind_all([](const Tensor& x) { return relu(x); });
  expect_behind_all([](const Tensor& x) { return clamp_max(x, 0); });
  expect_behind_all([](const Tensor& x) { return clamp(x, -1, 0); });
  expect_behind_all([](const Tensor& x) { return hardtanh(x, -1, 0); });
}

TEST(xnnpack_clamps, may_end_at_negative_zero) {
  expect_behind_all([](const Tensor& x) { return clamp(x, -1, -0.0); });
  expect_behind_all([](const Tensor& x) { return clamp_min(x, -0.0); });
}

TEST(xnnpack_clamps, stand_behind_each_other) {
  expect_behind_all([](const Tensor& x) { return clamp(relu(x), -1, 0.5); });
  expect_behind_all([](const Tensor& x) { return relu(clamp(clamp_max(x, 0.5), -0.25, 1)); });
}

TEST(xnnpack_clamps, may_leave_a_single_number) {
  expect_behind_all([](const Tensor& x) { return clamp_max(relu(x), 0); });
  expect_behind_all([](const Tensor& x) { return clamp(relu(x), -1, -0.0); });
  expect_behind_all([](const Tensor& x) { return clamp(relu(clamp(x, -1, 0)), -1, 0.5); });
}

TEST(xnnpack_clamps, may_share_what_they_read) {
  expect_behind_all([](const Tensor& x) { return relu(x) * clamp_max(x, 0.5) + x; });
  expect_behind_all([](const Tensor& x) {
    const Tensor y = relu(x);
    return clamp(y, -1, 0.5) + y;
  });
}

#ifdef __SSE__
/// A thread that takes subnormal numbers for zeros.
class WithoutSubnormals {
 public:
  WithoutSubnormals() { _mm_setcsr(before_ | 0x8040); }
  ~WithoutSubnormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_ = _mm_getcsr();
};

TEST(xnnpack_clamps, need_no_subnormal_numbers) {
  Delegated program([](const Tensor& x) { return relu(padded(x)); }, {2, 6, 9, 11});
  const std::vector<float> want = relu(padded(images)).to_vector<float>();
  const WithoutSubnormals here;
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  expect_close(call(module.value(), images), want);
}
#endif

}  // namespace
}  // namespace taper::delegates::xnnpack
