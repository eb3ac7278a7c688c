#pragma once
#include <string>

#include "taper/runtime/program/program.h"

namespace taper {

/// `Program::verify_segments`, with a message that says what is damaged and what to do. Reads the
/// whole file.
///
///   "the checksum of the weights (4941632 bytes from byte 22528) is wrong: the file is damaged;
///   copy it again from where it was made, or export it again"
Error verify(const Program& program, std::string& why);

}  // namespace taper
