#include "taper/exporter/emit/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace taper::emit {
namespace {

int64_t lower_bound(const std::vector<PlannedBuffer>& buffers, const std::vector<int64_t>& sizes) {
  int64_t most = 0;
  for (const PlannedBuffer& at : buffers) {
    int64_t live = 0;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].first <= at.first && at.first <= buffers[i].last) live += sizes[i];
    most = std::max(most, live);
  }
  return most;
}

void expect_no_overlap(const std::vector<PlannedBuffer>& buffers, const std::vector<int64_t>& sizes,
                       const std::vector<int64_t>& places) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_EQ(places[i] % buffer_alignment, 0);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = places[i] >= places[j] + sizes[j] || places[j] >= places[i] + sizes[i];
      ASSERT_TRUE(!together || apart || sizes[i] == 0 || sizes[j] == 0)
          << i << " and " << j << " share bytes while both live";
    }
  }
}

TEST(memory_plan, lets_nothing_overlap_for_random_buffers_at_any_symbol_setting) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const Dim symbols[] = {Dim::symbol("batch", 1, 64), Dim::symbol("time", 0, 512)};
    std::vector<PlannedBuffer> buffers;
    const int n = 1 + static_cast<int>(random() % 90);
    for (int i = 0; i < n; ++i) {
      const Dim size =
          Dim(int64_t(random() % 4096)) * (random() % 3 == 0 ? Dim(1) : symbols[random() % 2]) +
          int64_t(random() % 100);
      const int first = static_cast<int>(random() % n);
      buffers.push_back({size, first, first + static_cast<int>(random() % 8)});
    }
    const MemoryPlan plan = plan_memory(buffers);
    ASSERT_EQ(plan.order.size(), buffers.size());
    for (int setting = 0; setting < 50; ++setting) {
      const Dim::Bindings bindings{{symbols[0].as_symbol(), 1 + int64_t(random() % 64)},
                                   {symbols[1].as_symbol(), int64_t(random() % 513)}};
      std::vector<int64_t> sizes, places;
      for (const PlannedBuffer& b : buffers) sizes.push_back(b.size_bytes.evaluate(bindings));
      const int64_t peak = place_buffers(plan, sizes, places);
      expect_no_overlap(buffers, sizes, places);
      ASSERT_LE(lower_bound(buffers, sizes), peak);
      ASSERT_LE(peak, plan.peak_bytes) << "memory is measured at the maximum of every symbol";
    }
  }
}

TEST(memory_plan, stays_within_a_tenth_of_the_lower_bound_on_chains_and_random_lives) {
  double worst = 1;
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const Dim batch = Dim::symbol("batch", 1, 32);
    std::vector<PlannedBuffer> buffers;
    for (int i = 0; i < 200; ++i)
      buffers.push_back(
          {batch * int64_t(1024 + random() % 65536), i, i + 1 + static_cast<int>(random() % 6)});
    const MemoryPlan plan = plan_memory(buffers);
    worst = std::max(
        worst, static_cast<double>(plan.peak_bytes) / static_cast<double>(plan.lower_bound_bytes));
  }
  EXPECT_LE(worst, 1.1);
}

TEST(memory_plan, reaches_the_lower_bound_for_a_training_step) {
  // a forward chain whose activations wait for the backward chain
  const Dim batch = Dim::symbol("batch", 1, 64);
  std::vector<PlannedBuffer> buffers;
  const int layers = 60;
  for (int i = 0; i < layers; ++i)
    buffers.push_back({batch * (4096 / (1 + i % 5)), i, 2 * layers - i});
  for (int i = 0; i < layers; ++i)
    buffers.push_back({batch * (4096 / (1 + (layers - i) % 5)), layers + i, layers + i + 1});
  const MemoryPlan plan = plan_memory(buffers);
  EXPECT_LE(static_cast<double>(plan.peak_bytes),
            1.02 * static_cast<double>(plan.lower_bound_bytes));
}

TEST(memory_plan, refuses_a_symbol_without_a_maximum) {
  const Dim n = Dim::symbol("n", 1);
  EXPECT_THROW(plan_memory({{n * 4, 0, 1}}), ExportError);
}

TEST(memory_plan, of_nothing_is_empty) { EXPECT_EQ(plan_memory({}).peak_bytes, 0); }

}  // namespace
}  // namespace taper::emit
