#include "taper/exporter/target/target.h"

#include <algorithm>
#include <span>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper {
namespace {

using Feature = CpuFeature;

constexpr CpuFeatures avx512 = with_implied(Feature::avx512);
constexpr CpuFeatures all_of_x86 =
    avx512 | CpuFeatures(Feature::avx512_vnni, Feature::avx512_bf16, Feature::avx512_fp16,
                         Feature::avx_vnni, Feature::amx_int8, Feature::amx_bf16);
constexpr CpuFeatures all_of_arm64 = {Feature::dotprod, Feature::i8mm, Feature::bf16};

struct Named {
  const char* name;
  std::vector<std::string> kernel_sets;
  CpuFeatures has, may_have;
  int64_t memory_bytes = 0;
};
std::span<const Named> all_targets() {
  static const std::vector<std::string> fast = {"optimized", "quantized", "portable"},
                                        plain = {"quantized", "portable"};
  static const Named targets[] = {
      {"host", fast, eager::cpu(), eager::cpu()},
      {"x86-64", fast, {}, all_of_x86},
      {"x86-64-v3", fast, Feature::avx2, all_of_x86},
      {"x86-64-v4", fast, avx512, all_of_x86},
      {"arm64", fast, {}, all_of_arm64},
      {"cortex-m3", plain, {}, {}, 0xffffffff},  // addresses of 32 bits
      {"portable", plain, {}, {}},
  };
  return targets;
}

/// Records that need features of x86-64 exist only in builds for it.
bool is_linked([[maybe_unused]] const Named& target) {
#if defined(__x86_64__)
  return true;
#else
  return !target.may_have.has(Feature::avx2);
#endif
}
bool is_of_another_architecture([[maybe_unused]] const Named& target) {
#if defined(__aarch64__)
  return false;
#else
  return target.may_have.has(Feature::dotprod);
#endif
}

}  // namespace

std::vector<std::string> Target::names() {
  std::vector<std::string> names;
  for (const Named& target : all_targets()) names.emplace_back(target.name);
  return names;
}

Target::Target() : may_have(all_of_x86 | all_of_arm64) {}

Target::Target(const std::string& wanted) {
  const auto at = std::ranges::find(all_targets(), std::string_view(wanted), &Named::name);
  if (at == all_targets().end()) {
    std::string known;
    for (const std::string& n : names()) known += (known.empty() ? "" : ", ") + n;
    throw ExportError("there is no target " + wanted + "; there are " + known);
  }
  if (!is_linked(*at))
    throw ExportError("this exporter has no kernels of " + wanted + "; export on x86-64");
  name = at->name, kernel_sets = at->kernel_sets;
  has = at->has, may_have = at->may_have, memory_bytes = at->memory_bytes;
  is_foreign = is_of_another_architecture(*at);
}

std::vector<const Kernel*> Target::linked_kernels() const {
  std::vector<const Kernel*> kernels = eager::added_kernels();
  for (const eager::NamedKernelSet& set : eager::kernel_sets())
    if (std::ranges::find(kernel_sets, set.name) != kernel_sets.end())
      kernels.insert(kernels.end(), set.kernels.begin(), set.kernels.end());
  return kernels;
}

std::vector<const Kernel*> Target::kernels() const {
  std::vector<const Kernel*> kernels = linked_kernels();
  std::erase_if(kernels, [&](const Kernel* k) { return !may_have.has(k->needs); });
  return kernels;
}

}  // namespace taper
