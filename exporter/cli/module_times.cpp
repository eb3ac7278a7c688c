#include "taper/exporter/cli/module_times.h"

#include <memory>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/timing.h"

namespace taper::cli {
namespace {

/// The method of a language model that writes a token, or the default one.
std::unique_ptr<RunningMethod> running(const std::filesystem::path& program) {
  try {
    return std::make_unique<RunningMethod>(program, "decode", nullptr);
  } catch (const ExportError&) {
    return std::make_unique<RunningMethod>(program, "", nullptr);
  }
}

}  // namespace

std::map<std::string, double> module_times(const std::filesystem::path& program) {
  constexpr int runs = 20;
  std::map<std::string, double> times;
  try {
    NodeTimes node_times;
    const std::unique_ptr<RunningMethod> method = running(program);
    set_random_inputs(*method, set_given_inputs(*method, {}), {});
    for (const InstructionTiming& i : time_method(*method, runs, node_times).instructions)
      times[i.module] += i.median_us;
  } catch (const ExportError&) {
    times.clear();  // a program for another machine, or a call that needs other inputs
  }
  return times;
}

}  // namespace taper::cli
