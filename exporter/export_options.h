// The options of Exporter::write.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/io/source_file.h"
#include "taper/exporter/target/target.h"
#include "taper/runtime/core/dtype.h"

namespace taper::ir {
class Graph;
}
namespace taper::passes {
struct PassResult;
}

namespace taper {

/// How a program is written: the passes, the kernels, and what the file says about itself.
struct ExportOptions {
  bool exact = true;   ///< only passes that keep every bit of eager's results on this machine
  Target target;       ///< Target("portable"): the portable kernels alone
  bool dense = false;  ///< weights are not packed in the file, but at load (docs/running.md)
  bool debug = true;   ///< write source lines and module paths, for errors and profiles
  bool quiet = false;  ///< do not print what was written
  /// A weights file for constants of 1 KiB or more. It lies beside the program when that is loaded,
  /// and several programs can share it. Empty: all constants lie in the program.
  std::string weights;
  /// Mapped files of the model. Weights of 1 KiB or more that lie there in the form in which the
  /// program reads them stay there, and the program stores where. It needs the files when it is
  /// loaded (ModuleOptions::weights_folder), and refuses files that were changed.
  std::vector<io::SourceFile> sources;
  /// Weights that the application gives at load (ModuleOptions::slots), by their paths, such as an
  /// adapter's. The file has their types and no elements. Passes fold nothing into them.
  std::vector<std::string> slots;
  std::string name;  ///< of the program, for people; default: the file's name
  /// f16 or bf16: stores large weights in this dtype. Values between nodes stay f32.
  /// passes/passes.h says which weights (halve_weights).
  std::optional<DType> dtype;
  /// A backend that was handed in (partition/delegate.h). It gets the parts that it runs faster.
  std::string backend;
  bool require_backend = false;  ///< refuse a program with nodes that the backend does not run
  bool each_node = false;        ///< a delegate for each node: slower, to profile and to compare
  int64_t test_bytes = 1 << 20;  ///< a larger test is left out, and the report says so
  /// Edits the graphs of all methods before the passes, such as `quantize::quantize` does. Tests
  /// then expect the results of the edited graphs.
  std::function<void(const std::vector<ir::Graph*>&)> before_passes;
  std::function<void(const std::string& stage)> stage;  ///< told what begins: passes, planning, …
  /// Sees the graph of each method after each pass (passes/passes.h).
  std::function<void(const passes::PassResult&, const ir::Graph&)> after_pass;
};

}  // namespace taper
