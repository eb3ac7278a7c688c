// What a program is, what it needs, and how large its parts are: the numbers behind `taper
// inspect`.
#pragma once
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "taper/exporter/inspect/program_file.h"

namespace taper::inspect {

struct SymbolSummary {
  std::string name, source;  ///< "batch", "dimension 0 of images"
  int64_t minimum, maximum;
};

struct MethodSummary {
  std::string name;
  std::vector<std::string> inputs, outputs;  ///< "images: f32[batch, 1, 28, 28]"
  std::vector<SymbolSummary> symbols;
  std::vector<std::string> checks;       ///< "batch % 2 == 0: batch must be even"
  std::map<std::string, int> operators;  ///< instructions by operator
  int64_t instructions = 0, values = 0, buffers = 0;
  std::vector<std::string> states_written;  ///< paths
  MethodRequirements memory;                ///< at the maximum of every symbol
  int64_t lower_bound_bytes = 0;            ///< what activations need with any plan
};

struct StateSummary {
  std::string path, kind, type;  ///< "conv1.weight", "parameter", "f32[6, 1, 5, 5]"
  int64_t size_bytes;
};

struct ConstantSummary {
  std::string path, type;
  int64_t size_bytes;
  std::string outside;  ///< "in model.weights.taper", "slot adapter"; empty: in the program
  std::string layout;   ///< "panels_of_first"; empty: dense
};

struct KernelSummary {
  std::string signature;  ///< "mm(f32, f32) -> f32"
  const Kernel* record;   ///< the one that this machine takes
  int64_t instructions;   ///< that use it
};

/// A stored call and its expected results, for `taper check`.
struct TestSummary {
  std::string method, name;
  double relative_tolerance;
  int64_t size_bytes;  ///< of its tensors
};

/// A stretch of the file.
struct PartSummary {
  std::string name;
  int64_t size_bytes;
};

struct Summary {
  std::string path, name, producer;
  uint32_t format_version = 0;
  bool exact = false;
  std::vector<std::string> targets;  ///< "x86_64 with portable, optimized"
  std::vector<MethodSummary> methods;
  std::vector<StateSummary> states;
  std::vector<ConstantSummary> constants;
  std::vector<KernelSummary> kernels;
  std::vector<TestSummary> tests;
  std::vector<PartSummary> parts;  ///< together the whole file
  int64_t file_bytes = 0;
  int64_t session_bytes = 0;  ///< what a Session needs
  int64_t packed_bytes = 0;   ///< what a load takes for weights that it packs for this machine
};

/// Throws ExportError if a method cannot be prepared on this machine.
Summary summarize(const ProgramFile& file);

/// The report of `taper inspect`, for a terminal.
std::ostream& operator<<(std::ostream& out, const Summary& summary);
/// The same numbers as one JSON object; sizes in bytes.
void write_json(std::ostream& out, const Summary& summary);

}  // namespace taper::inspect
