// HQQ and GPTQ beside results of other implementations.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <span>

#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/hqq.h"
#include "taper/exporter/quantize/matrix.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

TEST(half_quadratic, gives_the_scales_and_zeros_of_torchao) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const auto w = golden.at("hqq.w").values<float>();
  for (const int bits : {2, 3, 4, 8}) {
    const std::string name = "hqq." + std::to_string(bits);
    const Hqq got = half_quadratic(w, 32, (1 << bits) - 1);
    const auto scale = golden.at(name + ".scale").values<float>(),
               zero = golden.at(name + ".zero").values<float>();
    ASSERT_EQ(got.scale.size(), scale.size());
    for (size_t g = 0; g < scale.size(); ++g) {
      EXPECT_NEAR(got.scale[g], scale[g], 1e-4) << bits << " bits, group " << g;
      EXPECT_NEAR(got.zero[g], zero[g], 1e-4) << bits << " bits, group " << g;
    }
  }
}

/// The configuration of the golden results: a group has a scale in f32 and an integer as zero, or
/// no zero at all.
class GoldenRounding {
 public:
  GoldenRounding(int group, int bits, bool is_symmetric)
      : group_(group),
        highest_(is_symmetric ? (1 << (bits - 1)) - 1 : (1 << bits) - 1),
        lowest_(is_symmetric ? -highest_ - 1 : 0),
        is_symmetric_(is_symmetric) {}

  Rounding rounding() {
    return {group_,
            [this](int64_t row, int64_t first, std::span<const float> w) { fit(row, first, w); },
            [this](int64_t row, int64_t column, float x) {
              const Group& g = groups_.at({row, column / group_});
              const float q = std::nearbyint(x / g.scale) + g.zero;
              return (std::clamp(q, static_cast<float>(lowest_), static_cast<float>(highest_)) -
                      g.zero) *
                     g.scale;
            }};
  }

 private:
  struct Group {
    float scale, zero;
  };
  void fit(int64_t row, int64_t first, std::span<const float> w) {
    float low = 0, high = 0;
    for (const float x : w) low = std::min(low, x), high = std::max(high, x);
    Group g{};
    if (is_symmetric_) {
      g.scale = std::max(high / static_cast<float>(highest_), low / static_cast<float>(lowest_));
    } else {
      g.scale = (high - low) / static_cast<float>(highest_);
    }
    if (!is_symmetric_) g.zero = std::nearbyint(-low / g.scale);
    groups_[{row, first / group_}] = g;
  }

  int group_, highest_, lowest_;
  bool is_symmetric_;
  std::map<std::pair<int64_t, int64_t>, Group> groups_;
};

/// Of inputs that lie one behind the other.
Hessian of_inputs(std::span<const float> x, int64_t depth) {
  Hessian h(depth);
  const auto n = static_cast<size_t>(depth);
  std::vector<float> products(n * n);
  for (size_t row = 0; row < x.size(); row += n)
    for (size_t i = 0; i < n; ++i)
      for (size_t k = 0; k < n; ++k) products[i * n + k] += x[row + i] * x[row + k];
  h.add(products, static_cast<int64_t>(x.size() / n));
  return h;
}

struct Layer {
  std::vector<float> w;
  Hessian hessian;
  int64_t rows;

  explicit Layer(const io::SafeTensors& golden)
      : w(golden.at("algo.w").values<float>().begin(), golden.at("algo.w").values<float>().end()),
        hessian(golden.at("algo.w").sizes[1]),
        rows(golden.at("algo.w").sizes[0]) {
    const io::Array& x = golden.at("algo.x");
    hessian = of_inputs(x.values<float>(), x.sizes[1]);
  }
  /// The mean square of the differences that the rounded weight `v` makes in the layer's results.
  double error_of(std::span<const float> v) const {
    const auto n = static_cast<size_t>(hessian.depth);
    double sum = 0;
    for (size_t r = 0; r < w.size() / n; ++r)
      for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < n; ++k)
          sum += static_cast<double>(v[r * n + i] - w[r * n + i]) * hessian.sum[i * n + k] *
                 (v[r * n + k] - w[r * n + k]);
    return sum / static_cast<double>(hessian.inputs * rows);
  }
};

TEST(gptq, rounds_as_the_reference) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const Layer layer(golden);
  struct Case {
    const char* name;
    int group, bits;
    bool is_symmetric, act_order;
  };
  for (const Case& c :
       {Case{"gptq4_asym_g16", 16, 4, false, false}, Case{"gptq3_sym_g16", 16, 3, true, false},
        Case{"gptq4_asym_row_act_order", 48, 4, false, true}}) {
    std::vector<float> got = layer.w;
    GoldenRounding rounding(c.group, c.bits, c.is_symmetric);
    gptq(got, layer.rows, layer.hessian, {.act_order = c.act_order}, rounding.rounding());
    const auto want = golden.at(std::string("algo.") + c.name).values<float>();
    int others = 0;
    for (size_t i = 0; i < got.size(); ++i) others += std::fabs(got[i] - want[i]) > 1e-4f;
    EXPECT_LE(others, 6) << c.name << ": of 576 elements";
    EXPECT_LE(layer.error_of(got), 1.02 * layer.error_of(want)) << c.name;
  }
}

TEST(gptq, is_better_than_rounding_to_nearest) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const Layer layer(golden);
  // 48 elements, and zeros up to 64
  Matrix w{layer.rows, 64, std::vector<float>(static_cast<size_t>(layer.rows) * 64)};
  Hessian hessian(64);
  for (size_t r = 0; r < static_cast<size_t>(w.rows); ++r)
    std::copy_n(layer.w.begin() + static_cast<std::ptrdiff_t>(r * 48), 48,
                w.elements.begin() + static_cast<std::ptrdiff_t>(r * 64));
  for (size_t i = 0; i < 48; ++i)
    std::copy_n(layer.hessian.sum.begin() + static_cast<std::ptrdiff_t>(i * 48), 48,
                hessian.sum.begin() + static_cast<std::ptrdiff_t>(i * 64));
  hessian.inputs = layer.hessian.inputs;
  for (const Layout layout : {Layout::q4_0, Layout::q4_1, Layout::q5_1}) {
    const auto decibels = [&](Method method) {
      return quantize_matrix(w, layout, method, &hessian).measure.output_sqnr_db();
    };
    const double nearest = decibels(Method::nearest), mse = decibels(Method::mse);
    EXPECT_GT(mse, nearest);
    EXPECT_GT(decibels(Method::gptq), nearest + 2);
    EXPECT_GT(decibels(Method::gptq_act_order), nearest + 2);
  }
  EXPECT_THROW(quantize_matrix(w, Layout::q4_0, Method::gptq, nullptr), ExportError);
}

TEST(gptq, serves_formats_of_long_blocks) {
  std::mt19937 random(1);
  std::normal_distribution<float> numbers;
  constexpr size_t depth = 256, sources = 64, inputs = 400;
  std::vector<float> mix(sources * depth), x(inputs * depth);
  for (float& m : mix) m = numbers(random);
  for (size_t i = 0; i < inputs; ++i)
    for (size_t s = 0; s < sources; ++s) {
      const float strength = numbers(random);
      for (size_t k = 0; k < depth; ++k) x[i * depth + k] += strength * mix[s * depth + k];
    }
  const Hessian hessian = of_inputs(x, depth);
  Matrix w{8, depth, std::vector<float>(8 * depth)};
  for (float& e : w.elements) e = numbers(random);
  for (const Layout layout :
       {Layout::q2_k, Layout::q3_k, Layout::q4_k, Layout::q5_k, Layout::q6_k}) {
    const auto decibels = [&](Method method) {
      return quantize_matrix(w, layout, method, &hessian).measure.output_sqnr_db();
    };
    EXPECT_GT(decibels(Method::gptq), decibels(Method::mse) + 3) << static_cast<int>(layout);
  }
}

TEST(gptq, survives_inputs_that_are_always_zero_or_equal) {
  for (const float other : {0.0f, 1.0f}) {
    Matrix w{2, 32, std::vector<float>(64, 0.25f)};
    for (size_t i = 0; i < 64; ++i) w.elements[i] += 0.01f * static_cast<float>(i % 7);
    const Hessian hessian = of_inputs(std::vector<float>(32, other), 32);
    const Quantized q = quantize_matrix(w, Layout::q4_1, Method::gptq, &hessian);
    EXPECT_GT(q.measure.sqnr_db(), 15);
  }
}

}  // namespace
}  // namespace taper::quantize
