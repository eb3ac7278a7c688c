#include "taper/runtime/platform/cpu.h"

#include <gmock/gmock.h>

#include "../support/environment.h"
#include "taper/runtime/platform/cpu_request.h"

namespace taper::test {
namespace {

using testing::StrEq;

/// TAPER_CPU with another value, until the end of the block.
struct Environment : tests::Environment {
  explicit Environment(const char* value) : tests::Environment("TAPER_CPU", value) {}
};

CpuFeature feature(int i) { return static_cast<CpuFeature>(i); }

TEST(cpu_features, is_a_set) {
  constexpr CpuFeatures none, avx2 = CpuFeature::avx2,
                              both{CpuFeature::avx2, CpuFeature::avx512_vnni};
  static_assert(none.has({}) && avx2.has({}) && !none.has(avx2));
  static_assert(both.has(avx2) && !avx2.has(both) && both.has(both));
  static_assert(!both.has(CpuFeature::avx512) && !both.has(CpuFeature::avx512_bf16));
  static_assert((both & avx2) == avx2 && (avx2 | CpuFeature::avx512_vnni) == both);
  for (int i = 0; i < cpu_feature_count; ++i)
    for (int j = 0; j < cpu_feature_count; ++j)
      EXPECT_EQ(CpuFeatures(feature(i)).has(feature(j)), i == j);
}

TEST(cpu_features, have_names_of_their_own) {
  for (int i = 0; i < cpu_feature_count; ++i)
    for (int j = 0; j < i; ++j) EXPECT_STRNE(name_of(feature(i)), name_of(feature(j)));
  EXPECT_STREQ(name_of(CpuFeature::avx512_bf16), "avx512_bf16");
  EXPECT_STREQ(name_of(CpuFeature::bf16), "bf16");
}

TEST(cpu_features, come_with_those_that_they_imply) {
  const Environment unset(nullptr);
  const CpuFeatures cpu = cpu_features();
  for (int i = 0; i < cpu_feature_count; ++i) {
    EXPECT_TRUE(with_implied(feature(i)).has(feature(i)));
    if (cpu.has(feature(i))) {
      EXPECT_TRUE(cpu.has(with_implied(feature(i)))) << name_of(feature(i));
    }
  }
}

#if defined(__x86_64__)
TEST(cpu_features, are_those_that_the_compiler_finds) {
  const Environment unset(nullptr);
  const CpuFeatures cpu = cpu_features();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(cpu.has(CpuFeature::avx2), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu.has(CpuFeature::avx512), avx512);
  EXPECT_EQ(cpu.has(CpuFeature::avx512_bf16), __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_EQ(cpu.has(CpuFeature::avx512_vnni), avx512 && __builtin_cpu_supports("avx512vnni") != 0);
  for (const CpuFeature arm : {CpuFeature::dotprod, CpuFeature::i8mm, CpuFeature::bf16})
    EXPECT_FALSE(cpu.has(arm));
}

TEST(cpu_features, are_limited_by_the_environment) {
  const Environment unset(nullptr);
  const CpuFeatures all = cpu_features();
  for (int i = 0; i < cpu_feature_count; ++i) {
    const Environment one(name_of(feature(i)));
    EXPECT_TRUE(cpu_features() == (all & with_implied(feature(i)))) << name_of(feature(i));
    EXPECT_EQ(unknown_cpu_features(), nullptr);
  }
  const Environment none("portable");
  EXPECT_TRUE(cpu_features() == CpuFeatures());
  const Environment several("avx_vnni,avx512_bf16");
  EXPECT_TRUE(cpu_features() ==
              (all & (with_implied(CpuFeature::avx_vnni) | with_implied(CpuFeature::avx512_bf16))));
  const Environment empty("");
  EXPECT_TRUE(cpu_features() == all) << "as if it were not set";
}

TEST(cpu_features, that_need_a_request_are_there_after_it) {
  const Environment unset(nullptr);
  const CpuFeatures before = cpu_features(), granted = request_cpu_features();
  constexpr CpuFeatures tiles{CpuFeature::amx_int8, CpuFeature::amx_bf16};
  EXPECT_TRUE(granted.has(before)) << "a request takes nothing away";
  EXPECT_TRUE((before | tiles).has(granted)) << "and gives nothing but tiles";
  EXPECT_TRUE(cpu_features() == granted) << "which stay";
  const Environment none("portable");
  EXPECT_TRUE(request_cpu_features() == CpuFeatures());
}

TEST(cpu_features, are_none_where_the_environment_has_an_unknown_name) {
  for (const char* value : {"avx", "AVX2", "avx2 ", "all", "avx2,", ",avx2", "avx2,avx5", ","}) {
    const Environment wrong(value);
    EXPECT_TRUE(cpu_features() == CpuFeatures()) << value;
    EXPECT_THAT(unknown_cpu_features(), StrEq(value));
  }
}
#endif

}  // namespace
}  // namespace taper::test
