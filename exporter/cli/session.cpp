#include "taper/exporter/cli/session.h"

#include <filesystem>
#include <system_error>

#include "taper/exporter/base/error.h"
#include "taper/runtime/extension/llm/session_file.h"

namespace taper::cli {

bool begins_session(const std::string& path) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (error) throw ExportError("--session " + path + ": " + error.message());
  if (const std::string why = llm::why_not_writable(path); !why.empty())
    throw ExportError("--session " + why + "; give a file in a folder that can be written");
  return is_there;
}

void require_no_conversation(const std::string& path) {
  std::string why;
  Result<llm::SessionFile> file = llm::open_session_file(path, why);
  if (file.ok() && !file->note.empty())
    throw ExportError("--session " + path +
                      ": it holds a conversation of `taper chat`, whose messages would be lost; "
                      "give another file");
}

}  // namespace taper::cli
