// Which records of the libraries with SIMD the other tests cannot run here.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/cpu_request.h"

namespace taper::tests {
namespace {

// "avx2 avx512_bf16"
std::string names_of(CpuFeatures features) {
  std::string names;
  for (int i = 0; i < cpu_feature_count; ++i) {
    const CpuFeature f = static_cast<CpuFeature>(i);
    if (features.has(f)) names += (names.empty() ? "" : " ") + std::string(name_of(f));
  }
  return names;
}

std::vector<const Kernel*> records() {
  std::vector<const Kernel*> records(optimized::all.begin(), optimized::all.end());
  records.insert(records.end(), quantized::all.begin(), quantized::all.end());
  return records;
}

TEST(kernel_records, need_what_their_features_imply) {
  for (const Kernel* kernel : records())
    for (int i = 0; i < cpu_feature_count; ++i) {
      const CpuFeature f = static_cast<CpuFeature>(i);
      if (kernel->needs.has(f)) {
        EXPECT_TRUE(kernel->needs.has(with_implied(f))) << kernel->name;
      }
    }
}

TEST(kernel_records, run_on_this_machine) {
  const CpuFeatures cpu = request_cpu_features();
  std::map<std::string, int> missing;
  for (const Kernel* kernel : records())
    if (!cpu.has(kernel->needs)) {
      ++missing[names_of(kernel->needs)];
      std::printf("not run here: %s\n", kernel->name);
    }
  std::string message;
  for (const auto& [features, count] : missing)
    message += std::to_string(count) + " records need " + features + "; ";
  if (!message.empty()) GTEST_SKIP() << message << "this machine has " << names_of(cpu);
}

}  // namespace
}  // namespace taper::tests
