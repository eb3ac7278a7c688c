// What a program file carries for tools: its tests. Devices need none of it.
#pragma once
#include <cstddef>
#include <vector>

#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/io/bundled_test.h"

namespace taper::inspect {

/// The calls that the file carries with what they give. Throws ExportError if they are damaged.
std::vector<io::BundledTest> bundled_tests(const ProgramFile& file);

/// The file without them, as an array of a firmware holds it. Only what stands behind the rest of
/// the file is cut off.
std::vector<std::byte> without_extras(const ProgramFile& file);

}  // namespace taper::inspect
