#include "taper/exporter/target/target.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <span>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::target {
namespace {

using testing::HasSubstr;

/// The records that a loader of the target may take for a product of two f32 matrices.
std::vector<const Kernel*> for_product(const Target& target) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[2, 3]\ninput \"y\" = %y: f32[3, 4]\n"
      "%r: f32[2, 4] = mm(%x, %y)\noutput \"r\" = %r\n");
  return KernelTable(target).candidates(graph->nodes().front()).records;
}
bool all_run_with(const std::vector<const Kernel*>& records, CpuFeatures cpu) {
  return std::ranges::all_of(records, [&](const Kernel* k) { return cpu.has(k->needs); });
}

TEST(target, names_those_that_there_are) {
  for (const char* name : {"host", "arm64", "cortex-m3", "portable"})
    EXPECT_EQ(Target(name).name, name);
  try {
    Target("vax");
    FAIL();
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("no target vax; there are host, x86-64, x86-64-v3, x86-64-v4, arm64"));
  }
}

TEST(target, takes_portable_kernels_alone_where_nothing_else_is_linked) {
  for (const char* name : {"portable", "cortex-m3"}) {
    const auto records = for_product(Target(name));
    ASSERT_EQ(records.size(), 1u) << name;
    EXPECT_STREQ(records[0]->name, "mm_f32") << name;
    EXPECT_TRUE(all_run_with(Target(name).kernels(), {})) << name;
  }
}

TEST(target, takes_no_kernel_of_another_architecture) {
  const CpuFeatures of_arm = {CpuFeature::dotprod, CpuFeature::i8mm, CpuFeature::bf16};
  EXPECT_TRUE(all_run_with(Target("arm64").kernels(), of_arm));
  EXPECT_TRUE(all_run_with(Target("host").kernels(), eager::cpu()));
  EXPECT_FALSE(for_product(Target("arm64")).empty());
}

#if defined(__x86_64__)
TEST(target, takes_no_kernel_behind_one_that_every_machine_can_run) {
  if (eager::kernel_sets().size() < 2) GTEST_SKIP() << "built without SIMD kernels";
  const auto v3 = for_product(Target("x86-64-v3")), any = for_product(Target());
  ASSERT_FALSE(v3.empty());
  EXPECT_TRUE(CpuFeatures(CpuFeature::avx2).has(v3.back()->needs));
  EXPECT_NE(v3.back()->needs, CpuFeatures());
  for (size_t i = 0; i + 1 < v3.size(); ++i)
    EXPECT_FALSE(CpuFeatures(CpuFeature::avx2).has(v3[i]->needs)) << v3[i]->name;
  // the records of all x86-64 machines, down to the first one that needs nothing
  const auto x86 = for_product(Target("x86-64"));
  ASSERT_GT(x86.size(), v3.size());
  for (const Kernel* k : x86) EXPECT_EQ(k->needs == CpuFeatures(), k == x86.back()) << k->name;
  EXPECT_TRUE(std::ranges::equal(v3, std::span(x86).first(v3.size())));
  // without a name the device may lack any feature, and any library but the portable one
  EXPECT_GT(any.size(), x86.size());
  EXPECT_EQ(any.back()->needs, CpuFeatures());
}
#endif

}  // namespace
}  // namespace taper::target
