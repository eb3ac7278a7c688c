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

/// How a file is loaded. `--model` and `--dim` are for a `.pt2`, as is `tests`, which is not an
/// option. `--verify`, `--slots` and `--weights-folder` are for a program, and `--read` for both.
struct ImportChoice {
  std::string model;              ///< one of several in an archive
  std::vector<std::string> dims;  ///< "x.0=1..512": bounds of sizes
  bool tests = false;   ///< stores the example inputs, with the results for them, as tests
  bool verify = false;  ///< compares a program's weights with their checksums
  bool read = false;    ///< reads the file into memory, instead of mapping it
  bool pack = false;    ///< packs the weights of a program in memory, too, as a load of a file does
  std::string slots;    ///< a .safetensors file with the tensors for a program's slots; empty: none
  std::string weights_folder;  ///< of a program's weights files; empty: the program's
};
void add_import_options(Command& command, ImportChoice& choice);

inline bool is_exported_model(const std::filesystem::path& path) {
  return path.extension() == ".pt2";
}
/// Throws ExportError if the name is that of weights or a module that PyTorch saved: .pt, .pth.
/// This and the next function are in callable.cpp.
void refuse_weights(const std::filesystem::path& program);
/// Throws UsageError if `choice` has --dim, because a program does not use it.
void refuse_dims(const std::filesystem::path& program, const ImportChoice& choice);

/// Exports models to one program, with a method for each. A single model becomes "forward"; several
/// have the names of their files. Throws ExportError.
emit::Report export_models(const std::vector<std::filesystem::path>& paths,
                           const std::filesystem::path& output, const ImportChoice& choice,
                           const ExportOptions& options);

/// The bytes of a program: of a file as it is, or of a model as it would be exported, with exactly
/// the bits of eager's results. Throws ExportError.
std::vector<std::byte> program_bytes(const std::filesystem::path& path, const ImportChoice& choice);

/// The bytes of a model as these options export it. Throws ExportError.
std::vector<std::byte> program_bytes(const std::filesystem::path& model, const ImportChoice& choice,
                                     const ExportOptions& options, emit::Report& report);

/// The arguments and results of a model's call that its program has, and the results that are None.
/// They are counted as in recorded calls. nullopt for a program, which does not know the others.
struct CallPositions {
  std::vector<int> inputs, outputs, absent;
};
std::optional<CallPositions> call_positions(const std::filesystem::path& path,
                                            const ImportChoice& choice);

/// A model that runs in eager, node by node, without an export. Throws ExportError.
std::unique_ptr<Callable> open_eager(const std::filesystem::path& path, const ImportChoice& choice);

/// A model in eager. Both functions throw ExportError.
struct EagerModel {
  std::function<compare::Run(const std::vector<io::Array>&)> run;  ///< see compare::run_model
  /// The inputs that it was exported with; none if the file does not hold them.
  std::function<std::vector<io::Array>()> example_inputs;
};
EagerModel load_model(const std::filesystem::path& path, const ImportChoice& choice);

}  // namespace taper::cli
