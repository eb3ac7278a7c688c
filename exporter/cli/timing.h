// Measures how long each instruction of a method takes, and how much work it does.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/cli/work.h"
#include "taper/exporter/partition/delegate.h"
#include "taper/runtime/profile/profiler.h"

namespace taper::cli {

/// Listens to the backends of this build: what the nodes of their parts take. Make one before the
/// program is loaded.
class NodeTimes {
 public:
  NodeTimes();
  ~NodeTimes();
  NodeTimes(const NodeTimes&) = delete;

  /// The calls of parts since the last time, in order.
  std::vector<std::vector<partition::NodeTime>> take() { return std::exchange(calls_, {}); }

 private:
  std::vector<std::vector<partition::NodeTime>> calls_;
};

/// A node of a part that a backend ran.
struct NodeTiming {
  std::string name, source;  ///< see partition::NodeTime
  double median_us = 0;      ///< over the runs
};

/// A step inside a kernel.
struct StepTiming {
  std::string name;  ///< "pack", "tiles", "softmax", "store", "wait" or "other"
  double us;         ///< its part of the instruction's median
};

struct InstructionTiming {
  std::string op, kernel;      ///< "mm", "mm_f32_avx2"; the kernel is "" for other instructions
  std::string types;           ///< "f32[64, 400] f32[400, 120] -> f32[64, 120]"
  std::string source, module;  ///< "lenet.cpp:14", "fc1"; "" without debug information
  double median_us = 0, best_us = 0;  ///< over the runs; 0 if the instruction was skipped
  int executions = 0;                 ///< in one run; more than 1 in a loop
  roofline::Work work;                ///< of one execution
  std::vector<NodeTiming> nodes;      ///< of a part of a backend that times them
  std::vector<StepTiming> steps;      ///< see steps.h; none unless asked for

  /// All of a run.
  double operations() const { return work.operations * executions; }
  double bytes() const { return work.bytes() * executions; }
};

struct Timing {
  Timing() = default;
  Timing(Timing&&) = default;  // `median_run` stays valid
  Timing& operator=(Timing&&) = default;

  std::vector<InstructionTiming> instructions;  ///< in the method's order
  double median_us = 0;                         ///< of a whole run
  int runs = 0;
  std::vector<ProfileEvent> events;          ///< of all runs, in nanoseconds of a steady clock
  std::span<const ProfileEvent> median_run;  ///< those of the run that took `median_us`
};

/// Executes the method a few times without measuring, then `runs` times. Its inputs must be set.
/// Throws ExportError if a run fails, or if the runtime was built without TAPER_PROFILE.
Timing time_method(RunningMethod& running, int runs, NodeTimes& node_times);

}  // namespace taper::cli
