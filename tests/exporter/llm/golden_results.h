// Comparisons with recorded results.
#pragma once
#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include "taper/exporter/llm/golden.h"

namespace taper::llm {

/// A folder of recorded results, and how many of them each way of running the model compares.
struct Recorded {
  const char* name;
  size_t results_in_eager, results_of_program;
};
inline void PrintTo(const Recorded& r, std::ostream* out) { *out << r.name; }

inline void expect_passed(const std::vector<Compared>& results, size_t count) {
  EXPECT_EQ(results.size(), count);
  for (const Compared& r : results)
    EXPECT_TRUE(r.passed()) << r.name << ": " << r.difference << ", allowed are " << r.tolerance;
}

}  // namespace taper::llm
