// A method of a program that is ready to run, in the form that commands use: errors are exceptions.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/callable.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::cli {

/// A message of a module, with the options of commands in place of the fields of ModuleOptions.
std::string with_options(std::string message);

class RunningMethod : public Callable {
 public:
  /// Loads a program, or exports a PyTorch model to memory. Prepares a method, with states at their
  /// initial values. For an empty name, see inspect::find_method. Throws ExportError.
  RunningMethod(const std::filesystem::path& path, const std::string& name, const Threads* threads,
                const ImportChoice& import = {});
  /// The same for a program in memory. Messages call it `path`.
  RunningMethod(const std::filesystem::path& path, std::vector<std::byte> program,
                const std::string& name, const Threads* threads, const ImportChoice& import = {});

  Method& method() { return *method_; }
  const Method& method() const { return *method_; }
  Program program() const { return module_.program(); }
  /// The index of the method in the program.
  index_t index() const { return index_; }

  /// Runs the method. Throws ExportError with the runtime's message.
  void execute();
  /// Throws ExportError if `error`, which the method returned, is not ok.
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
  io::ArrayMap slots_;
  Module module_;
  index_t index_;
  std::optional<Method> method_;
};

}  // namespace taper::cli
