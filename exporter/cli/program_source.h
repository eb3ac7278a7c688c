// Where commands get programs from: `.taper` files, and models that PyTorch exported (`.pt2`).
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/emit/report.h"
#include "taper/exporter/export_options.h"

namespace taper::cli {

class Callable;
class Command;

/// How a file is loaded: a `.pt2` by `--model`, `--dim`, and `tests`, which is no option; a program
/// by `--verify`; both by `--read`.
struct ImportChoice {
  std::string model;              ///< of an archive that holds several
  std::vector<std::string> dims;  ///< "x.0=1..512": bounds of sizes
  bool tests = false;             ///< keeps the example inputs, with what they give, as tests
  bool verify = false;            ///< compares a program's weights with their checksums
  bool read = false;              ///< into memory, instead of mapping the file
};
void add_import_options(Command& command, ImportChoice& choice);

bool is_exported_model(const std::filesystem::path& path);
/// Throws ExportError if the name says that PyTorch saved weights or a module: .pt, .pth. In
/// callable.cpp, as the next.
void refuse_weights(const std::filesystem::path& program);
/// Throws UsageError if `choice` has --dim, which says nothing of a program.
void refuse_dims(const std::filesystem::path& program, const ImportChoice& choice);

/// Exports models as one program, with a method for each; of one model it is called "forward", of
/// several as the files are. Throws ExportError.
emit::Report export_models(const std::vector<std::filesystem::path>& paths,
                           const std::filesystem::path& output, const ImportChoice& choice,
                           const ExportOptions& options);

/// The bytes of a program: a file as it is, or a model as it would be exported, with every bit of
/// eager's results. Throws ExportError.
std::vector<std::byte> program_bytes(const std::filesystem::path& path, const ImportChoice& choice);

/// Which arguments and results of a model's call a program has, and which results are None, counted
/// as recorded calls do; nothing for a program, which says nothing of the others.
struct CallPositions {
  std::vector<int> inputs, outputs, absent;
};
std::optional<CallPositions> call_positions(const std::filesystem::path& path,
                                            const ImportChoice& choice);

/// A model that is run in eager, node by node, without an export. Throws ExportError.
std::unique_ptr<Callable> open_eager(const std::filesystem::path& path, const ImportChoice& choice);

/// A model in eager. Both functions throw ExportError.
struct EagerModel {
  std::function<compare::Run(const std::vector<io::Array>&)> run;  ///< see compare::run_model
  /// Those that it was exported with; none if the file does not hold them.
  std::function<std::vector<io::Array>()> example_inputs;
};
EagerModel load_model(const std::filesystem::path& path, const ImportChoice& choice);

}  // namespace taper::cli
