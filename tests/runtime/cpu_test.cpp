#include "taper/runtime/platform/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/environment.h"

namespace taper::test {
namespace {

using testing::StrEq;

constexpr CpuLevel levels[] = {CpuLevel::portable, CpuLevel::avx2, CpuLevel::avx512,
                               CpuLevel::avx512_bf16};

/// TAPER_CPU with another value, until the end of the block.
struct Environment : tests::Environment {
  explicit Environment(const char* value) : tests::Environment("TAPER_CPU", value) {}
};

TEST(cpu_levels, are_a_ladder_from_portable_on) {
  const CpuLevels cpu = cpu_levels();
  EXPECT_TRUE(cpu.has(CpuLevel::portable));
  for (int i = 1; i < 4; ++i) {
    if (cpu.has(levels[i])) {
      EXPECT_TRUE(cpu.has(levels[i - 1]));
    }
  }
}

#if defined(__x86_64__)
TEST(cpu_levels, are_those_that_the_compiler_finds) {
  const Environment unset(nullptr);
  const CpuLevels cpu = cpu_levels();
  EXPECT_EQ(cpu.has(CpuLevel::avx2), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu.has(CpuLevel::avx512),
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(cpu.has(CpuLevel::avx512_bf16), __builtin_cpu_supports("avx512bf16") != 0);
}

TEST(cpu_levels, end_at_the_one_that_the_environment_names) {
  const Environment unset(nullptr);
  const CpuLevels all = cpu_levels();
  const char* const names[] = {"portable", "avx2", "avx512", "avx512_bf16"};
  for (int highest = 0; highest < 4; ++highest) {
    const Environment chosen(names[highest]);
    const CpuLevels cpu = cpu_levels();
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(cpu.has(levels[i]), i <= highest && all.has(levels[i])) << names[highest];
    EXPECT_EQ(unknown_cpu_level(), nullptr);
  }
  const Environment empty("");
  EXPECT_EQ(cpu_levels().has(CpuLevel::avx2), all.has(CpuLevel::avx2)) << "as if it were not set";
}

TEST(cpu_levels, are_portable_alone_for_an_unknown_name) {
  for (const char* name : {"avx", "AVX2", "avx2 ", "avx5", "all"}) {
    const Environment wrong(name);
    for (int i = 1; i < 4; ++i) EXPECT_FALSE(cpu_levels().has(levels[i])) << name;
    EXPECT_THAT(unknown_cpu_level(), StrEq(name));
  }
}
#endif

}  // namespace
}  // namespace taper::test
