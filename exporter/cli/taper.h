// The command `taper`, as a function.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

namespace taper::cli {

/// What the command returns to the shell.
enum ExitCode : int {
  success = 0,
  failure = 1,  ///< a file is missing or damaged, an input does not fit, a run failed
  usage = 2,    ///< the command line is wrong
};

/// Runs `taper` with the arguments behind the program's name. Results go to `out`, an error as one
/// line to `err`.
int run(std::vector<std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace taper::cli
