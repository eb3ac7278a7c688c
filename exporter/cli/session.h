// The file of the option --session, before the model is loaded.
#pragma once
#include <string>

namespace taper::cli {

/// Whether it is there. Throws ExportError if it could not be written at the end.
bool begins_session(const std::string& path);
/// Throws ExportError if a chat wrote it, whose messages another file would lack.
void require_no_conversation(const std::string& path);

}  // namespace taper::cli
