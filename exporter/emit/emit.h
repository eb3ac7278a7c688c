// Writes graphs as a program file. The front door of exporter/emit.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "taper/exporter/emit/report.h"
#include "taper/exporter/io/bundled_test.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/target.h"

namespace taper::emit {

/// One entry point. The graph is edited: copies that the kernels need become visible nodes.
struct Method {
  std::string name;
  ir::Graph* graph;
};

struct EmitOptions {
  Target target;
  std::string name;    ///< of the program, for people
  bool exact = false;  ///< only exact passes ran: results equal eager's bit for bit
  /// Constants of 1 KiB or more go to this weights file, which the program then names. One that is
  /// there keeps what it has: several programs can share it. Empty: all lie in the program.
  std::string weights;
  /// States that no method writes, by path: the application gives their values at load. They stay
  /// in the program as constants without elements.
  std::vector<std::string> slots;
  bool debug = true;                   ///< writes source lines, module paths and value names
  std::vector<io::BundledTest> tests;  ///< of the methods; for tools
  std::function<void()> writing;       ///< called when all is planned and the file begins
};

/// The bytes of a program with these methods, which share constants and states.
/// Throws ExportError that lists every operator without a kernel, and if methods disagree about a
/// state.
std::vector<std::byte> write(const std::vector<Method>& methods, const EmitOptions& options,
                             Report& report);

/// The same, to a file: complete or not at all.
Report write(const std::string& path, const std::vector<Method>& methods,
             const EmitOptions& options);

}  // namespace taper::emit
