// What a program is made for. The exporter asks the target what can run.
#pragma once
#include <string>
#include <vector>

#include "taper/kernels/kernel.h"

namespace taper {

/// A kind of machine, and the kernels that are linked there.
///
///   Target()             any machine of the exporter's architecture, perhaps with fewer libraries
///   Target("host")       this machine, and those with the same CPU features
///   Target("x86-64")     any x86-64; x86-64-v3: with AVX2; x86-64-v4: with AVX-512
///   Target("arm64")      AArch64
///   Target("cortex-m3")  32 bits, portable kernels
///   Target("portable")   portable kernels, any machine
struct Target {
  Target();
  /// Throws ExportError for a name that is not one of `names()`, and where this build lacks the
  /// kernels of that target.
  explicit Target(const std::string& name);
  static std::vector<std::string> names();

  std::string name;  ///< empty: any machine of this architecture
  std::vector<std::string> kernel_sets = {"optimized", "quantized",
                                          "portable"};  ///< faster ones first
  CpuFeatures has;                                      ///< what every such machine offers
  CpuFeatures may_have;                                 ///< what some offer
  /// Of another architecture than this exporter, which links none of its records with vectors.
  bool is_foreign = false;
  /// What activations, inputs and outputs of a method and all states may take; 0: not limited.
  int64_t memory_bytes = 0;

  /// What a loader there may take, in the order of preference; those of users' operators first.
  std::vector<const Kernel*> kernels() const;
  /// All that this exporter links, those of its own architecture, too.
  std::vector<const Kernel*> linked_kernels() const;
};

}  // namespace taper
