// A model with the kernels and with each backend of this build: which is the fastest.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>

#include "taper/exporter/cli/program_source.h"

namespace taper::cli {

class RunningMethod;

/// What is measured, and how.
struct BackendsProfile {
  std::string model;  ///< a .pt2 file
  ImportChoice import;
  int repeat = 50, threads = 1;
  std::function<void(RunningMethod&)> set_inputs;
};

/// Exports the model once for the kernels and once for each backend, runs them in turns, and prints
/// the medians and which to choose. Throws UsageError for a program, which runs where it was
/// exported to, and ExportError if this build has no backend.
void profile_backends(const BackendsProfile& asked, std::ostream& out);

}  // namespace taper::cli
