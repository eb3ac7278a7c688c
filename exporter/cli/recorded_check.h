// Recorded calls, made again: how far a program, or a model, is from what they gave.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "taper/exporter/cli/program_source.h"

namespace taper::cli {

struct RecordedCheck {
  std::string file;      ///< a program or a model
  std::string recorded;  ///< io/recorded_calls.h
  std::string method;   ///< of a program; empty: the one that the recording names, or the usual one
  ImportChoice import;  ///< its `model` also chooses among the recorded models
  std::optional<double> tolerance;  ///< instead of the usual one, io/tolerance.h
};

/// Makes the recorded calls one after the other, those of each model with states of their own, and
/// prints a line for each result. Throws ExportError if a result is too far away.
void check_recorded(const RecordedCheck& check, std::ostream& out);

}  // namespace taper::cli
