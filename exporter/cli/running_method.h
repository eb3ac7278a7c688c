// A method that is ready to run, as the commands use it: errors are exceptions.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/error.h"
#include "taper/exporter/io/array.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::cli {

class RunningMethod {
 public:
  /// Loads a program, or exports a model of PyTorch to memory, with its states at their initial
  /// values, and prepares a method; see inspect::find_method for an empty name. Throws ExportError.
  RunningMethod(const std::filesystem::path& path, const std::string& name, const Threads* threads,
                const ImportChoice& import = {});
  /// The same of a program in memory; `path` is what messages call it.
  RunningMethod(const std::filesystem::path& path, std::vector<std::byte> program,
                const std::string& name, const Threads* threads);

  Method& method() { return *method_; }
  const Method& method() const { return *method_; }
  Program program() const { return module_.program(); }
  /// Of the method in the program.
  index_t index() const { return index_; }

  /// Throws ExportError with what the runtime says: an input's shape, an index out of range, ….
  void execute();
  /// Throws ExportError if `error`, which the method returned, is one.
  void require(Error error) const;

  /// Reads states from, or writes all of them to, a safetensors file. Every state that the file has
  /// must fit, and none may be unknown; states that it does not have keep their values. Throws
  /// ExportError.
  void load_states(const std::filesystem::path& path);
  void save_states(const std::filesystem::path& path);
  /// One state's elements. Throws ExportError if there is none of this name.
  io::Array state(const std::string& path);

 private:
  std::vector<std::byte> bytes_;  ///< the program, if it is in memory
  Module module_;
  index_t index_;
  std::optional<Method> method_;
};

}  // namespace taper::cli
