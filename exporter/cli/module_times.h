// How long the modules of a program take, for pages about quantization.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace taper::cli {

/// Microseconds of each module in one run, on one thread, with inputs of the least sizes:
/// `forward`, the only method, or `decode`. Empty if this machine cannot run the program.
std::map<std::string, double> module_times(const std::filesystem::path& program);

}  // namespace taper::cli
