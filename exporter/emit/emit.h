// Writes graphs to a program file. The front door of exporter/emit.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "taper/exporter/emit/report.h"
#include "taper/exporter/io/asset.h"
#include "taper/exporter/io/bundled_test.h"
#include "taper/exporter/io/source_file.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/target.h"

namespace taper::emit {

/// One entry point. Writing edits the graph: it adds the copies that kernels need as nodes.
struct Method {
  std::string name;
  ir::Graph* graph;
};

struct EmitOptions {
  Target target;
  std::string name;    ///< name of the program, for people
  bool exact = false;  ///< only exact passes ran, so results equal eager's bit for bit
  /// Constants stay as they are, and a load packs them. Otherwise they lie in the layouts that the
  /// target's kernels ask for. Where the target has no name, two kinds are left to a load: filters
  /// of Winograd's algorithm, which take 16/9 of their space when they are packed, and weights in
  /// blocks, which kernels read faster from the large pages of a load.
  bool dense = false;
  /// Constants of 1 KiB or more go to this weights file, and the program stores its name. An
  /// existing weights file keeps its constants, so several programs can share it. Empty: all
  /// constants lie in the program.
  std::string weights;
  /// Files of which constants of 1 KiB or more are a part. These constants stay there, and the
  /// program stores where.
  std::vector<io::SourceFile> sources;
  /// Paths of states that no method writes and whose values the application gives at load. The
  /// program stores them as constants without elements.
  std::vector<std::string> slots;
  bool debug = true;                   ///< writes source lines, module paths and value names
  std::vector<io::BundledTest> tests;  ///< tests of the methods, for tools
  std::vector<io::Asset> assets;       ///< what lies beside the model, for applications
  /// Called when everything is planned and the file is about to be written.
  std::function<void()> writing;
};

/// Returns the bytes of a program with these methods, which share constants and states. Throws
/// ExportError if methods disagree about a state, or if operators have no kernel (it lists them
/// all).
std::vector<std::byte> write(const std::vector<Method>& methods, const EmitOptions& options,
                             Report& report);

/// Writes the program to a file. The file is complete or not written at all.
Report write(const std::string& path, const std::vector<Method>& methods,
             const EmitOptions& options);

}  // namespace taper::emit
