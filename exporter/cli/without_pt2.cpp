// Replaces program_source.cpp in builds without the importer of .pt2 files.
#include "taper/exporter/cli/callable.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {
[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw ExportError(path.string() +
                    ": this build of taper cannot read .pt2 files; it was built without minizip");
}
}  // namespace

void add_import_options(Command&, ImportChoice&) {}
emit::Report export_models(const std::vector<std::filesystem::path>& paths,
                           const std::filesystem::path&, const ImportChoice&,
                           const ExportOptions&) {
  refuse(paths.front());
}
std::vector<std::byte> program_bytes(const std::filesystem::path& path, const ImportChoice&) {
  if (is_exported_model(path)) refuse(path);
  return io::read_file(path);
}
std::vector<std::byte> program_bytes(const std::filesystem::path& model, const ImportChoice&,
                                     const ExportOptions&, emit::Report&) {
  refuse(model);
}
std::optional<CallPositions> call_positions(const std::filesystem::path&, const ImportChoice&) {
  return std::nullopt;
}
std::unique_ptr<Callable> open_eager(const std::filesystem::path& path, const ImportChoice&) {
  refuse(path);
}
EagerModel load_model(const std::filesystem::path& path, const ImportChoice&) { refuse(path); }

}  // namespace taper::cli
