#include "taper/exporter/cli/session.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/runtime/extension/llm/session_file.h"

namespace taper::cli {

SessionOption::SessionOption(std::string path) : path_(std::move(path)) {
  if (!is_given()) return;
  std::error_code error;
  (void)std::filesystem::exists(path_, error);  // a name may be too long
  if (error) throw ExportError("--session " + path_ + ": " + error.message());
  if (const std::string why = llm::why_not_writable(path_); !why.empty())
    throw ExportError("--session " + why + "; give a file in a folder that can be written");
  if (std::string why; !llm::lock_session_file(path_, lock_, why))
    throw ExportError("--session " + why + "; give another file");
  is_there_ = std::filesystem::exists(path_, error);
}

void SessionOption::require_no_conversation() const {
  std::string why;
  Result<llm::SessionFile> file = llm::open_session_file(path_, why);
  if (file.ok() && !file->note.empty())
    throw ExportError("--session " + path_ +
                      ": it holds a conversation of `taper chat`, whose messages would be lost; "
                      "give another file");
}

}  // namespace taper::cli
