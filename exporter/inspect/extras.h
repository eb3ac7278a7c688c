// The tests in a program file. Only tools read them; devices do not need them.
#pragma once
#include <cstddef>
#include <vector>

#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/io/bundled_test.h"

namespace taper::inspect {

/// The calls stored in the file, with their expected results. Throws ExportError if they are
/// damaged.
std::vector<io::BundledTest> bundled_tests(const ProgramFile& file);

/// The file without tests and assets, for a firmware's array. Only those at the end of the file are
/// cut off.
std::vector<std::byte> without_extras(const ProgramFile& file);

}  // namespace taper::inspect
