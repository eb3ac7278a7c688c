// Measures how long each instruction of a method takes, and how much work it does.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/exporter/cli/running_method.h"
#include "taper/runtime/profile/profiler.h"

namespace taper::cli {

/// "f32[64, 400]"
std::string type_text(const TensorRef& tensor);

/// The work of an instruction with its current shapes.
struct Work {
  double operations = 0;  ///< multiplications and additions of matrix products and convolutions; 0
                          ///< for other operators
  double bytes = 0;       ///< of its tensor arguments and results, each counted once
};
Work work_of(const InstructionInfo& instruction);

struct InstructionTiming {
  std::string op, kernel;      ///< "mm", "mm_f32_avx2"; the kernel is "" for other instructions
  std::string types;           ///< "f32[64, 400] f32[400, 120] -> f32[64, 120]"
  std::string source, module;  ///< "lenet.cpp:14", "fc1"; "" without debug information
  double median_us = 0;        ///< over the runs; 0 if the instruction was skipped
  Work work;
};

struct Timing {
  std::vector<InstructionTiming> instructions;  ///< in the method's order
  double median_us = 0;                         ///< of a whole run
  int runs = 0;
  std::vector<ProfileEvent> events;  ///< of all runs, in nanoseconds of a steady clock
};

/// Executes the method a few times without measuring, then `runs` times. Its inputs must be set.
/// Throws ExportError if a run fails, or if the runtime was built without TAPER_PROFILE.
Timing time_method(RunningMethod& running, int runs);

}  // namespace taper::cli
