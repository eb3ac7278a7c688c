// Rotary embedding at every level: the bits of its products and sums, one by one.
#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> all = kernels_of(ops::taper_rotary_embedding);
  all.push_back(&portable::taper_rotary_embedding_f32);
  return all;
}

/// x (heads, positions, features), cos and sin (positions, features), or of one position for all.
struct Rotation {
  index_t heads, positions, features;
  bool interleaved;
  bool of_one_position = false;

  Array x() const { return Array::random({heads, positions, features}, 1); }
  Array factors(uint32_t seed) const {
    return Array::random({of_one_position ? 1 : positions, features}, seed);
  }
};

std::vector<float> one_by_one(const Rotation& r) {
  const Array x = r.x(), cos = r.factors(2), sin = r.factors(3);
  const index_t n = r.features, half = n / 2;
  std::vector<float> y;
  for (index_t row = 0; row < r.heads * r.positions; ++row)
    for (index_t i = 0; i < n; ++i) {
      const bool first = r.interleaved ? i % 2 == 0 : i < half;
      const index_t step = r.interleaved ? 1 : half, other = first ? i + step : i - step;
      const float turned = first ? -x[row * n + other] : x[row * n + other];
      const index_t at = (r.of_one_position ? 0 : row % r.positions * n) + i;
      const float kept = x[row * n + i] * cos[at], added = turned * sin[at];
      y.push_back(kept + added);
    }
  return y;
}

Array rotate(const Kernel& kernel, const Rotation& r, const Array& x,
             const Threads* threads = nullptr) {
  Array y({r.heads, r.positions, r.features}, 77);
  const Array cos = r.factors(2), sin = r.factors(3);
  call(kernel, {slot(x), slot(cos), slot(sin), slot(r.interleaved), slot(y)}, threads);
  return y;
}

std::vector<Rotation> rotations() {
  std::vector<Rotation> list;
  for (const bool interleaved : {false, true})
    for (const index_t features : {0, 2, 6, 16, 34, 64, 130})
      for (const index_t positions : {0, 1, 5, 40}) {
        list.push_back({3, positions, features, interleaved});
        list.push_back({3, positions, features, interleaved, true});
      }
  return list;
}

TEST(rotary_embedding, has_the_bits_of_its_products_and_sums) {
  for (const Rotation& r : rotations())
    for (const Kernel* kernel : kernels())
      EXPECT_EQ(rotate(*kernel, r, r.x()).values(), one_by_one(r))
          << kernel->name << ": " << r.positions << " x " << r.features;
}

TEST(rotary_embedding, takes_positions_before_heads_and_any_threads) {
  const ThreadPool pool(3);
  for (const bool interleaved : {false, true}) {
    const Rotation r{7, 150, 34, interleaved};
    const Array x = r.x();
    Array turned({r.positions, r.heads, r.features});
    for (index_t h = 0; h < r.heads; ++h)
      for (index_t p = 0; p < r.positions; ++p)
        for (index_t f = 0; f < r.features; ++f)
          turned[(p * r.heads + h) * r.features + f] = x[(h * r.positions + p) * r.features + f];
    turned.shape().sizes[0] = r.heads, turned.shape().sizes[1] = r.positions;
    turned.shape().strides[0] = r.features, turned.shape().strides[1] = r.heads * r.features;
    for (const Kernel* kernel : kernels())
      EXPECT_EQ(rotate(*kernel, r, turned, pool.threads()).values(), one_by_one(r)) << kernel->name;
  }
}

/// What the rule says about these sizes.
std::string refusal(const Array& x, const Array& cos, const Array& sin) {
  const Slot slots[] = {slot(x), slot(cos), slot(sin), slot(false)};
  Facts<Extent> facts;
  TensorType<Extent> result;
  return portable::taper_rotary_embedding_f32.shape(facts, slots, &result) ? "" : facts.message;
}

TEST(rotary_embedding, refuses_factors_of_other_sizes) {
  EXPECT_EQ(refusal(Array({2, 4}), Array({1, 4}), Array({4})), "");
  EXPECT_NE(refusal(Array({2, 5}), Array({1, 5}), Array({5})), "");
  EXPECT_NE(refusal(Array({2, 4}), Array({1, 1}), Array({4})), "");
  EXPECT_NE(refusal(Array({2, 4}), Array({1, 4}), Array({3, 4})), "");
  EXPECT_NE(refusal(Array({2, 4}), Array({1, 2, 4}), Array({4})), "");
}

}  // namespace
}  // namespace taper::tests
