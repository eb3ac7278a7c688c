// Constants in a file that several programs share. The file is a program without methods. Internal
// to the writer.
#pragma once
#include <array>
#include <string>

#include "taper/exporter/emit/program_tables.h"

namespace taper::emit {

/// The key that identifies a constant in another file.
using ContentHash = std::array<std::byte, 32>;
ContentHash content_hash(const ir::Payload& payload);

/// The constants of a weights file; none if the file does not exist. Throws ExportError if the file
/// is damaged or something else.
ProgramTables read_weights(const std::string& path);

}  // namespace taper::emit
