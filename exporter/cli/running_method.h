// A method of a program that is ready to run, as the commands use it: errors are exceptions.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/callable.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::cli {

class RunningMethod : public Callable {
 public:
  /// Loads a program, or exports a model of PyTorch to memory, with its states at their initial
  /// values, and prepares a method; see inspect::find_method for an empty name. Throws ExportError.
  RunningMethod(const std::filesystem::path& path, const std::string& name, const Threads* threads,
                const ImportChoice& import = {});
  /// The same of a program in memory; `path` is what messages call it.
  RunningMethod(const std::filesystem::path& path, std::vector<std::byte> program,
                const std::string& name, const Threads* threads, const ImportChoice& import = {});

  Method& method() { return *method_; }
  const Method& method() const { return *method_; }
  Program program() const { return module_.program(); }
  /// Of the method in the program.
  index_t index() const { return index_; }

  /// Throws ExportError with what the runtime says.
  void execute();
  /// Throws ExportError if `error`, which the method returned, is one.
  void require(Error error) const;

  std::string name() const override { return method_->name(); }
  void set_input(index_t input, const io::Array& array) override;
  void set_number(index_t input, int64_t number) override;
  void set_number(index_t input, double number) override;
  std::vector<Output> call() override;
  double tolerance() const override;
  bool has_state(const std::string& path) override;
  io::Array state(const std::string& path) override;
  void load_states(const std::filesystem::path& path) override;
  void save_states(const std::filesystem::path& path) override;

 private:
  std::vector<std::byte> bytes_;  ///< the program, if it is in memory
  Module module_;
  index_t index_;
  std::optional<Method> method_;
};

}  // namespace taper::cli
