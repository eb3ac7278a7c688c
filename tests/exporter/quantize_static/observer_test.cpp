// Observers against those of PyTorch, on recorded batches, and histograms against sums over values.
#include "taper/exporter/quantize/static/observer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/quantize/static/histogram.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

double squared_error(const std::vector<float>& values, const Grid& grid) {
  double sum = 0;
  for (const float x : values) {
    const double q = std::nearbyint(x / grid.scale) + static_cast<double>(grid.zero_point);
    const double clamped =
        std::clamp(q, static_cast<double>(grid.lowest), static_cast<double>(grid.highest));
    const double error = x - grid.scale * (clamped - static_cast<double>(grid.zero_point));
    sum += error * error;
  }
  return sum;
}

/// The batches of shared/data/quant/formats.safetensors, and what PyTorch's observers made of them.
class Golden : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(path, "quant/formats.safetensors");
    file_ = eager::load_safetensors(path);
  }
  Tensor batch(int i) const { return file_.at("observer.x" + std::to_string(i)); }
  Grid grid(const std::string& observer, int batches) const {
    const std::string key = "observer." + observer + "." + std::to_string(batches);
    Grid grid;
    grid.scale = file_.at(key + ".scale").item<double>();
    grid.zero_point = file_.at(key + ".zero_point").item<int64_t>();
    return grid;
  }
  static constexpr int batches = 4;
  eager::NamedTensors file_;
};

void expect_near(const Grid& got, const Grid& want, double tolerance) {
  EXPECT_NEAR(got.scale, want.scale, tolerance * want.scale);
  EXPECT_EQ(got.zero_point, want.zero_point);
}

TEST_F(Golden, min_max_and_moving_average_equal_those_of_pytorch) {
  const auto min_max = make_observer({.kind = ObserverKind::min_max});
  const auto average = make_observer({.kind = ObserverKind::moving_average, .new_batch_part = 0.1});
  for (int i = 0; i < batches; ++i) {
    min_max->observe(batch(i));
    average->observe(batch(i));
    expect_near(min_max->qparams(), grid("MinMax", i), 1e-6);
    expect_near(average->qparams(), grid("MovingAverageMinMax", i), 1e-6);
    const float most = std::max(-min_max->low(), min_max->high());
    expect_near(symmetric_grid(most), grid("MinMax.symmetric", i), 1e-6);
  }
}

TEST_F(Golden, the_histogram_has_no_larger_error_than_those_of_pytorch) {
  const auto observer = make_observer({.kind = ObserverKind::histogram});
  std::vector<float> values;
  for (int i = 0; i < batches; ++i) {
    observer->observe(batch(i));
    for (const float x : batch(i).to_vector<float>()) values.push_back(x);
    const double error = squared_error(values, observer->qparams());
    for (const char* theirs : {"Histogram", "Histogram.256"})
      EXPECT_LE(error, squared_error(values, grid(theirs, i)) * 1.0001) << theirs << ' ' << i;
  }
}

std::vector<float> normal_values(size_t count, float mean, float deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& x : values) x = normal(random);
  return values;
}
Tensor tensor(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

TEST(observer, search_beats_the_full_range_when_there_are_outliers) {
  std::vector<float> values = normal_values(20000, 0, 1, 1);
  values[7] = 60;
  values[8] = -3;
  const auto error_of = [&](ObserverKind kind) {
    const auto observer = make_observer({.kind = kind, .percentile = 99.99});
    observer->observe(tensor(values));
    return squared_error(values, observer->qparams());
  };
  const double full = error_of(ObserverKind::min_max);
  EXPECT_LT(error_of(ObserverKind::histogram), full);
  EXPECT_LE(error_of(ObserverKind::histogram), error_of(ObserverKind::mse) * 1.001);
  EXPECT_LT(error_of(ObserverKind::mse), full);
  const auto kl = make_observer({.kind = ObserverKind::kl});
  kl->observe(tensor(values));
  EXPECT_LT(kl->qparams().high(), 30);
}

TEST(observer, a_percentile_leaves_out_as_many_values_at_each_end) {
  std::vector<float> values;
  for (int i = -5000; i <= 5000; ++i) values.push_back(static_cast<float>(i) / 1000);
  const auto observer = make_observer({.kind = ObserverKind::percentile, .percentile = 99});
  observer->observe(tensor(values));
  EXPECT_NEAR(observer->qparams().low(), -4.9, 0.03);
  EXPECT_NEAR(observer->qparams().high(), 4.9, 0.03);
}

TEST(observer, every_kind_gives_a_usable_grid_for_constants_and_for_nothing) {
  for (const std::string& name : observer_names())
    for (const std::vector<float>& values :
         {std::vector<float>{}, {0, 0, 0}, {5, 5}, {-1e-30f, 1e-30f}, {-3e38f, 3e38f}, {1e-45f}}) {
      const auto observer = make_observer({.kind = observer_kind(name)});
      if (!values.empty()) observer->observe(tensor(values));
      const Grid grid = observer->qparams();
      EXPECT_TRUE(std::isfinite(grid.scale) && grid.scale >= least_scale) << name;
      EXPECT_GE(grid.zero_point, grid.lowest) << name;
      EXPECT_LE(grid.zero_point, grid.highest) << name;
    }
}

TEST(observer, refuses_unknown_names_and_parts) {
  EXPECT_EXPORT_ERROR(observer_kind("median"), "there is no observer median; the observers are");
  EXPECT_EXPORT_ERROR(make_observer({.percentile = 50}), "above 50");
  EXPECT_EXPORT_ERROR(make_observer({.percentile = std::nan("")}), "above 50");
  EXPECT_EXPORT_ERROR(make_observer({.new_batch_part = 0}), "(0, 1]");
  for (const std::string& name : observer_names()) EXPECT_EQ(name_of(observer_kind(name)), name);
}

TEST(histogram, does_not_depend_on_the_order_of_batches) {
  const std::vector<float> small = normal_values(999, 0, 0.1f, 2),
                           large = normal_values(77, 3, 9, 3);
  const auto add = [](Histogram& h, const std::vector<float>& values) {
    h.add(values, *std::ranges::min_element(values), *std::ranges::max_element(values));
  };
  Histogram a, b;
  add(a, small), add(a, large);
  add(b, large), add(b, small);
  EXPECT_EQ(a.width(), b.width());
  const Grid grid = affine_grid(-2, 5);
  EXPECT_DOUBLE_EQ(a.squared_error(grid), b.squared_error(grid));
  for (const double p : {0.0, 0.01, 0.5, 0.99, 1.0}) EXPECT_EQ(a.quantile(p), b.quantile(p));
}

TEST(histogram, knows_how_many_values_a_grid_clips) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i) / 100 - 2);  // -2 .. 7.99
  Histogram histogram;
  histogram.add(values, values.front(), values.back());
  EXPECT_NEAR(histogram.part_outside(-2, 8), 0, 1e-9);
  EXPECT_NEAR(histogram.part_outside(-1, 4), 0.5, 0.002);
  EXPECT_NEAR(histogram.part_outside(0, 0), 0.999, 1e-9);  // one value is 0
  EXPECT_EQ(Histogram().part_outside(0, 0), 0);
}

TEST(histogram, becomes_as_wide_as_f32) {
  Histogram histogram;
  histogram.add(std::vector{-1e-20f, 1e-20f}, -1e-20f, 1e-20f);
  histogram.add(std::vector{-3e38f, 3e38f}, -3e38f, 3e38f);
  EXPECT_LE(histogram.counts().size(), static_cast<size_t>(Histogram::most_bins));
  EXPECT_EQ(histogram.total(), 4);
  EXPECT_NEAR(histogram.quantile(1), 3e38, 1e36);
}

TEST(histogram, knows_the_error_of_a_grid_and_the_quantiles) {
  std::vector<float> values = normal_values(50000, 1, 2, 4);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = 0;
  Histogram histogram;
  histogram.add(values, *std::ranges::min_element(values), *std::ranges::max_element(values));
  EXPECT_EQ(histogram.total(), 50000);
  EXPECT_GE(histogram.zeros(), 16667);
  for (const Grid& grid : {affine_grid(-8, 10), affine_grid(-2, 3), affine_grid(0, 1)})
    EXPECT_NEAR(histogram.squared_error(grid) / squared_error(values, grid), 1, 0.02);
  std::ranges::sort(values);
  for (const double p : {0.001, 0.2, 0.5, 0.7, 0.999})
    EXPECT_NEAR(histogram.quantile(p), values[static_cast<size_t>(p * 50000)], 0.02) << p;
}

}  // namespace
}  // namespace taper::quantize
