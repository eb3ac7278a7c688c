// Repeats recorded calls, and tells how far the results of a program or a model are from the
// recorded ones.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "taper/exporter/cli/program_source.h"

namespace taper::cli {

struct RecordedCheck {
  std::string file;      ///< a program or a model
  std::string recorded;  ///< io/recorded_calls.h
  /// For a program. Empty: the method that the recording names, or the usual one
  std::string method;
  ImportChoice import;              ///< its `model` also chooses among the recorded models
  std::optional<double> tolerance;  ///< in place of the usual one, see io/tolerance.h
};

/// Repeats the recorded calls in order and prints a line for each result. Each model keeps its own
/// states over its calls. Throws ExportError if a result is too far away.
void check_recorded(const RecordedCheck& check, std::ostream& out);

}  // namespace taper::cli
