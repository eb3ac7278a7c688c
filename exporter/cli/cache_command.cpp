#include <chrono>
#include <memory>
#include <ostream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/llm/program_cache.h"

namespace taper::cli {
namespace {

using llm::ProgramCache;

std::string bytes_text(uintmax_t bytes) { return io::bytes_text(static_cast<int64_t>(bytes)); }

std::string sum_of(const std::vector<ProgramCache::Kept>& models) {
  uintmax_t bytes = 0;
  for (const ProgramCache::Kept& model : models) bytes += model.size_bytes;
  return io::counted(static_cast<int64_t>(models.size()), "model") + ", " + bytes_text(bytes);
}

std::string last_use(const ProgramCache::Kept& model) {
  const auto ago = std::filesystem::file_time_type::clock::now() - model.last_used;
  const int64_t days = std::chrono::duration_cast<std::chrono::hours>(ago).count() / 24;
  return days < 1 ? "used today" : "not used for " + io::counted(days, "day");
}

void manage(bool clear, std::ostream& out) {
  const ProgramCache cache(ProgramCache::default_folder());
  const std::string folder = io::printable(cache.folder().string());
  if (folder.empty())
    throw ExportError(
        "there is no cache: TAPER_CACHE is \"off\", or none of TAPER_CACHE, XDG_CACHE_HOME and "
        "HOME "
        "is a folder");
  if (clear) {
    out << "removed " << sum_of(cache.clear()) << " from " << folder << '\n';
    if (const std::vector<ProgramCache::Kept> left = cache.models(); !left.empty())
      throw ExportError(sum_of(left) + " cannot be removed; see who owns " +
                        io::printable(left[0].folder.string()));
    return;
  }
  const std::vector<ProgramCache::Kept> models = cache.models();
  out << folder << ": " << sum_of(models) << " of at most " << bytes_text(ProgramCache::most_bytes)
      << '\n';
  for (const ProgramCache::Kept& model : models)
    out << "  " << io::printable(model.folder.filename().string()) << "  "
        << bytes_text(model.size_bytes) << ", " << last_use(model) << '\n';
}

}  // namespace

void add_cache_command(CommandLine& line, std::ostream& out) {
  const auto clear = std::make_shared<bool>(false);
  Command command =
      line.add("cache", "Lists what is kept of language models for their next start.");
  command.flag("--clear", *clear, "remove all of them");
  command.does([clear, &out] { manage(*clear, out); });
}

}  // namespace taper::cli
