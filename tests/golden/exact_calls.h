// Kernel records on memory of the exact size: every tensor has a block of its own with 64 readable
// bytes behind, scratch, plan and lists have none. To touch what lies around a block ends the
// process: the address sanitizer knows it to be out of bounds, and without one a page behind the
// block is protected. What is written around it where neither sees it is found afterwards.
#pragma once
#include <set>
#include <string>

#include "taper/exporter/eager/run_kernel.h"

namespace taper::golden {

/// While it lives, eager calls records through it.
class ExactCalls : public eager::KernelCaller {
 public:
  ExactCalls() { eager::set_kernel_caller(this); }
  ~ExactCalls() override { eager::set_kernel_caller(nullptr); }

  /// From now on calls take record number `n` of those that fit, or the last one.
  void take(size_t n) { wanted_ = n, most_ = 0, wrong_.clear(); }
  /// How many records fitted a call since then, at most.
  size_t most_fitting() const { return most_; }
  /// What records did since then that they must not, or "".
  const std::string& wrong() const { return wrong_; }
  /// The records that were called since the beginning.
  const std::set<const Kernel*>& called() const { return called_; }

  const Kernel* choose(const std::vector<const Kernel*>& fitting) override;
  Error call(const Kernel& kernel, Context& context, const Slot* slots) override;

 private:
  size_t wanted_ = 0, most_ = 0;
  std::string wrong_;
  std::set<const Kernel*> called_;
};

/// Names a case on standard error if a sanitizer ends the process during it.
void now_running(const std::string& id);

}  // namespace taper::golden
