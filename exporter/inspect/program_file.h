// A program file in memory, verified, with the kernels that this build has for it.
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

/// The index of a method; if `name` is empty, of "forward" or the only one. Throws ExportError that
/// lists the methods.
index_t find_method(const Program& program, const std::string& name);

class ProgramFile {
 public:
  /// Reads and verifies the whole file, weights included. `kernels` must have one for every
  /// operator that the program uses, for a processor with `cpu`. Throws ExportError: "lenet.taper:
  /// …".
  ProgramFile(std::filesystem::path path, KernelSet kernels, CpuFeatures cpu = eager::cpu());
  /// The same for bytes in memory. Messages name them by `path`.
  ProgramFile(std::filesystem::path path, std::vector<std::byte> bytes, KernelSet kernels,
              CpuFeatures cpu = eager::cpu());
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  const Program& program() const { return *program_; }
  /// What `Program::load` takes.
  size_t metadata_bytes() const { return metadata_.size(); }

  /// The memory that the method needs. Throws ExportError.
  MethodRequirements requirements(index_t method) const;

 private:
  std::filesystem::path path_;
  std::vector<std::byte> bytes_, metadata_;
  std::optional<Program> program_;
};

}  // namespace taper::inspect
