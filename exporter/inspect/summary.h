// The numbers of `taper inspect`: what a program is, what it needs, and how large its parts are.
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
  int64_t lower_bound_bytes = 0;            ///< no plan of the activations needs fewer
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
  const Kernel* record;   ///< the record for this machine
  int64_t instructions;   ///< the number of instructions that use it
};

/// A stored call and its expected results, for `taper check`.
struct TestSummary {
  std::string method, name;
  double relative_tolerance;
  int64_t size_bytes;  ///< bytes of its tensors
};

/// Something beside the model, such as a tokenizer.
struct AssetSummary {
  std::string name, media_type;
  int64_t size_bytes;
};

/// A part of the file.
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
  std::vector<AssetSummary> assets;
  std::vector<PartSummary> parts;  ///< these make up the whole file
  int64_t file_bytes = 0;
  int64_t session_bytes = 0;  ///< bytes of a Session
  int64_t packed_bytes = 0;   ///< bytes for weights that a load packs for this machine
};

/// Throws ExportError if a method cannot be prepared on this machine.
Summary summarize(const ProgramFile& file);

/// The report of `taper inspect`, for a terminal.
std::ostream& operator<<(std::ostream& out, const Summary& summary);
/// The same numbers as one JSON object; sizes in bytes.
void write_json(std::ostream& out, const Summary& summary);

}  // namespace taper::inspect
