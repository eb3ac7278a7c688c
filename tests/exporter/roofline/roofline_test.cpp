#include "taper/exporter/roofline/roofline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <numeric>

#include "taper/exporter/roofline/loops.h"

namespace taper::roofline {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// 100 GFLOP/s; in a cache of 1 MB 50 GB/s are read, or 80 both ways; in memory 10 or 20.
const Peaks machine{100, {{1e6, 50, 80}, {infinity, 10, 20}}};

void expect_roof(const Work& work, Limit limit, double us) {
  const Roof roof = roof_of(machine, work);
  EXPECT_EQ(roof.limit, limit) << name_of(roof.limit);
  EXPECT_DOUBLE_EQ(roof.us, us);
}

Operand read(double bytes, double footprint) { return {bytes, false, footprint}; }
Operand written(double bytes, double footprint) { return {bytes, true, footprint}; }

TEST(roofline, bounds_work_by_its_operations_or_by_its_bytes) {
  expect_roof({1e6, {read(1e5, 1e5)}}, Limit::compute, 10);
  expect_roof({1e5, {read(1e5, 1e5)}}, Limit::cache, 2);
  expect_roof({1e6, {read(1e7, 1e7)}}, Limit::memory, 1000);
}

TEST(roofline, counts_what_is_read_alone_and_what_moves_both_ways) {
  expect_roof({0, {read(4e5, 5e5), written(1e5, 5e5)}}, Limit::cache, 8);
  expect_roof({0, {read(4e5, 8e5), written(4e5, 8e5)}}, Limit::cache, 10);
}

TEST(roofline, takes_the_bandwidth_of_where_each_operand_lies) {
  expect_roof({0, {read(1e5, 5e5), read(1e4, 2e6)}}, Limit::cache, 2 + 1);
  expect_roof({0, {read(1e5, 5e5), read(1e5, 2e6)}}, Limit::memory, 2 + 10);
  expect_roof({0, {read(1e5, 2e6), written(3e5, 1e5)}}, Limit::memory, 10);
  expect_roof({0, {read(1e5, 2e6), written(9e5, 1e5)}}, Limit::cache, 5 + 11.25);
}

TEST(roofline, gives_no_time_to_no_work) { EXPECT_EQ(roof_of(machine, {}).us, 0); }

TEST(roofline, adds_roofs_and_names_the_limit_of_most_of_the_time) {
  const Roof sum = sum_of({{Limit::compute, 3}, {Limit::memory, 2}, {Limit::memory, 2}});
  EXPECT_EQ(sum.limit, Limit::memory);
  EXPECT_DOUBLE_EQ(sum.us, 7);
  EXPECT_EQ(sum_of({}).us, 0);
}

TEST(roofline, measures_peaks_of_the_caches_and_of_memory) {
  const auto start = std::chrono::steady_clock::now();
  const Peaks peaks = measure_peaks(nullptr);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  EXPECT_GT(peaks.gflops, 0);
  ASSERT_GE(peaks.bandwidths.size(), 2u);
  double last = 0;
  for (const Bandwidth& b : peaks.bandwidths) {
    EXPECT_GT(b.up_to_bytes, last);
    EXPECT_GT(b.read_gbps, 0);
    EXPECT_GT(b.read_and_written_gbps, 0);
    last = b.up_to_bytes;
  }
  EXPECT_EQ(last, infinity);
  EXPECT_LT(time.count(), 10) << "0.2 seconds on an idle machine";
}

void expect_loops_that_compute(const Loops& loops) {
  std::vector<float> numbers(3 * block);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const float sum = std::accumulate(numbers.begin(), numbers.end(), 0.0f);
  const auto count = static_cast<index_t>(numbers.size());
  EXPECT_EQ(loops.read(numbers.data(), count), sum);
  loops.halve(numbers.data(), count);
  EXPECT_EQ(numbers[1], 0.5f);
  EXPECT_EQ(loops.read(numbers.data(), count), sum / 2);
  // x = 0.999 x + 0.001 ends at 1 in each lane
  const auto lanes = static_cast<float>(loops.multiply_adds_per_round);
  EXPECT_NEAR(loops.multiply_add(100'000), lanes, 1e-3 * lanes);
}

TEST(roofline, has_loops_that_do_what_is_counted) { expect_loops_that_compute(fastest_loops()); }

}  // namespace
}  // namespace taper::roofline
