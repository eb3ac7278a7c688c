// The result of an export: sizes and counts, for people and for tests.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "taper/kernels/kernel.h"

namespace taper::emit {

struct MethodReport {
  struct Range {
    std::string name;
    int64_t minimum, maximum;
  };
  std::string name;
  std::vector<std::string> inputs, outputs;  ///< "images: f32[batch, 1, 28, 28]"
  std::vector<Range> symbols;
  std::vector<std::string> checks;       ///< "batch == 5: sizes must be equal"
  std::map<std::string, int> operators;  ///< instructions by operator
  int instructions = 0, views = 0, clones = 0;
  int reused_buffers = 0;  ///< results that overwrite an argument
  int concatenations_in_place = 0;
  int states_in_place = 0, states_copied = 0;
  int border_transposes = 0;  ///< what delegates copy (partition::Compiled)
  // at the maximum of every symbol
  int64_t activation_bytes = 0;   ///< the bytes of the plan
  int64_t lower_bound_bytes = 0;  ///< no plan needs fewer
  int64_t io_bytes = 0;
};

struct Report {
  std::string path;  ///< "" if it was written to memory
  int64_t file_bytes = 0, metadata_bytes = 0, constant_bytes = 0, debug_bytes = 0;
  int64_t state_bytes = 0;
  std::string weights;  ///< the file of constants that are not in the program; "": there is none
  int64_t outside_bytes = 0;  ///< bytes of these constants
  int constants = 0, states = 0;
  int packed_constants = 0;  ///< stored in layouts that the target's kernels ask for
  int64_t packed_bytes = 0;  ///< bytes of these
  int packed_at_load = 0;    ///< dense, though the target's kernels ask for a layout
  int tests = 0;             ///< number of bundled calls
  int64_t test_bytes = 0;    ///< their bytes
  int assets = 0;            ///< what lies beside the model, such as a tokenizer
  int64_t asset_bytes = 0;   ///< their bytes
  bool exact = false;
  std::vector<MethodReport> methods;
  /// Other things that people should know, such as a test that was left out.
  std::vector<std::string> notes;
  /// Every record that a loader may choose, in order of preference, each once.
  std::vector<const Kernel*> kernels;
};

/// A few lines for a terminal.
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace taper::emit
