// The command `taper`, as a function.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/cli/command_line.h"

namespace taper::cli {

/// Runs `taper` with the arguments that follow the program's name. Results go to `out`, an error to
/// `err`. Returns an ExitCode (command_line.h).
int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace taper::cli
