// A verified program file in memory, with this build's kernels for it.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/runtime/program/program.h"

namespace taper::inspect {

/// The index of a method. For an empty name, "forward" or the only method. Throws ExportError that
/// lists the methods.
index_t find_method(const Program& program, const std::string& name);

class ProgramFile {
 public:
  /// Reads and verifies the whole file, with the weights in it. `kernels` must have one for every
  /// operator that the program uses, for a processor with `cpu`. Throws ExportError: "lenet.taper:
  /// …".
  ProgramFile(std::filesystem::path path, KernelSet kernels, CpuFeatures cpu = eager::cpu());
  /// The same for bytes in memory. Messages call them `path`.
  ProgramFile(std::filesystem::path path, std::vector<std::byte> bytes, KernelSet kernels,
              CpuFeatures cpu = eager::cpu());
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;
  ~ProgramFile();

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  const Program& program() const { return *program_; }
  /// The bytes of metadata for `Program::load`.
  size_t metadata_bytes() const { return metadata_.size(); }

  /// Verifies the weights in other files, which lie in `folder`, or beside the program if it is
  /// empty. Returns what is missing or damaged; empty: nothing.
  std::string verify_outside(const std::string& folder = "") const;

  /// The memory that the method needs. Throws ExportError.
  MethodRequirements requirements(index_t method) const;

 private:
  std::filesystem::path path_;
  std::vector<std::byte> bytes_, metadata_;
  std::optional<Program> program_;
};

}  // namespace taper::inspect
