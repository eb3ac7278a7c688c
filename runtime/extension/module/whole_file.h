#pragma once
#include <initializer_list>
#include <string>

#include "taper/runtime/core/span.h"

namespace taper {

/// Writes the parts in a row to a file. Others see the whole file or none. False: it could not be
/// written, and nothing happened.
bool write_whole_file(const std::string& path, std::initializer_list<Span<const std::byte>> parts);

}  // namespace taper
