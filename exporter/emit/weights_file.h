// Constants in a file that several programs share: a program without methods. Internal to the
// writer.
#pragma once
#include <array>
#include <string>

#include "taper/exporter/emit/program_tables.h"

namespace taper::emit {

/// What a constant in another file is found by.
using ContentHash = std::array<std::byte, 32>;
ContentHash content_hash(const ir::Payload& payload);

/// The constants of a weights file, nothing if there is no such file. Throws ExportError if it is
/// something else, or damaged.
ProgramTables read_weights(const std::string& path);

}  // namespace taper::emit
