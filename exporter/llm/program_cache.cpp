#include "taper/exporter/llm/program_cache.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "taper/exporter/io/array.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/place_in_file.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/runtime/platform/cpu_request.h"
#include "taper/runtime/program/format.h"

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace taper::llm {
namespace {

namespace fs = std::filesystem;
using Clock = fs::file_time_type::clock;

uint64_t hash(const std::string& text, uint64_t h = checksum_of_nothing) {
  return checksum(
      {reinterpret_cast<const std::byte*>(text.data()), static_cast<index_t>(text.size())},
      checksum({reinterpret_cast<const std::byte*>(&h), sizeof h}));
}

uint64_t fingerprint_of(const fs::path& path) {
  MappedFile file;
  std::string why;
  if (!file.open(path.string(), why)) throw io::FileError(why);
  return fingerprint(file);
}

/// What a model is read from, in an order that does not depend on the folder.
std::vector<fs::path> files_of(const fs::path& model) {
  if (!fs::is_directory(model)) return {model};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(model)) {
    const fs::path kind = entry.path().extension();
    const bool is_read =
        kind == ".json" || kind == ".safetensors" || kind == ".model" || kind == ".jinja";
    if (is_read && entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Differs from build to build: the file that this code was loaded from, its size and its time.
uint64_t build_fingerprint() {
#if defined(__unix__) || defined(__APPLE__)
  Dl_info info;
  std::error_code none;
  fs::path self =
      dladdr(reinterpret_cast<void*>(&build_fingerprint), &info) != 0 && info.dli_fname != nullptr
          ? info.dli_fname
          : "";
  // a program that was found in PATH is known by its bare name
  if (!self.is_absolute()) self = fs::exists("/proc/self/exe", none) ? "/proc/self/exe" : self;
  MappedFile file;
  std::string why;
  if (file.open(self.string(), why)) return fingerprint(file);
#endif
  return 0;
}

uint64_t processor_fingerprint() {
  std::string names;
  const CpuFeatures has = request_cpu_features();
  for (int i = 0; i < cpu_feature_count; ++i)
    if (has.has(static_cast<CpuFeature>(i)))
      names += name_of(static_cast<CpuFeature>(i)), names += ' ';
  return hash(names);
}

constexpr size_t key_digits = 16;
std::string end_of_name(uint64_t key) {
  char end[key_digits + 2];
  std::snprintf(end, sizeof end, "-%016llx", static_cast<unsigned long long>(key));
  return end;
}
/// Other folders are somebody else's.
bool is_of_model(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t end = name.size() - std::min(name.size(), key_digits);
  return end > 1 && name[end - 1] == '-' &&
         name.find_first_not_of("0123456789abcdef", end) == std::string::npos;
}

/// A name that any file system takes.
std::string plain(const fs::path& model) {
  fs::path name = fs::absolute(model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  std::string text = fs::is_directory(model) ? name.filename().string() : name.stem().string();
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return text.substr(0, 100);
}

}  // namespace

fs::path ProgramCache::default_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  const fs::path own = variable("TAPER_CACHE"), shared = variable("XDG_CACHE_HOME"),
                 home = variable("HOME");
  if (own == "off") return {};
  if (!own.empty()) return own;
  // its specification: a relative path is ignored
  if (shared.is_absolute()) return shared / "taper";
  return home.is_absolute() ? home / ".cache" / "taper" : fs::path();
}

std::vector<ProgramCache::Kept> ProgramCache::models() const {
  std::vector<Kept> kept;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may remove it now
    if (!is_of_model(at->path()) || !at->is_directory(gone)) continue;
    Kept model{at->path(), 0, fs::last_write_time(at->path() / program, gone)};
    // it is being made, or its process was killed
    if (gone) model.last_used = fs::last_write_time(at->path(), gone);
    if (gone) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(model.folder, gone))
      if (const uintmax_t size = file.file_size(gone); !gone) model.size_bytes += size;
    if (model.size_bytes > 0) kept.push_back(model);
  }
  std::ranges::sort(kept, std::greater<>(), &Kept::last_used);
  return kept;
}

fs::path ProgramCache::folder_of(const fs::path& model, const std::string& options) const {
  uint64_t key = hash(options, build_fingerprint() ^ processor_fingerprint());
  for (const fs::path& file : files_of(model)) {
    const std::string name = file == model ? "" : file.filename().string();
    key = hash(name + ' ' + std::to_string(fingerprint_of(file)), key);
  }
  return folder_ / (plain(model) + end_of_name(key));
}

std::string ProgramCache::make_room(const fs::path& folder_of_model, uintmax_t size_bytes) const {
  const auto text = [](uintmax_t bytes) { return io::bytes_text(static_cast<int64_t>(bytes)); };
  if (size_bytes > most_bytes)
    return text(size_bytes) + " are more than the " + text(most_bytes) + " that are kept";
  std::error_code error;
  fs::create_directories(folder_of_model, error);
  if (error) return error.message();
  uintmax_t bytes = size_bytes;
  const auto oldest = Clock::now() - std::chrono::hours(24 * most_days);
  for (const Kept& model : models()) {
    bytes += model.size_bytes;
    if (model.folder != folder_of_model && (bytes > most_bytes || model.last_used < oldest))
      fs::remove_all(model.folder, error);
  }
  const fs::space_info space = fs::space(folder_, error);
  if (error || space.available >= size_bytes) return "";
  return text(size_bytes) + " are needed and " + text(space.available) + " are free";
}

void ProgramCache::use(const fs::path& folder_of_model) const {
  std::error_code error;
  const auto now = Clock::now();
  // seldom, because it changes the identity by which modules of one file share packed weights
  const auto last = fs::last_write_time(folder_of_model / program, error);
  if (!error && now - last > std::chrono::hours(1))
    fs::last_write_time(folder_of_model / program, now, error);
}

std::vector<ProgramCache::Kept> ProgramCache::clear() const {
  std::vector<Kept> removed;
  for (const Kept& model : models()) {
    std::error_code error;
    fs::remove_all(model.folder, error);
    if (!error) removed.push_back(model);
  }
  return removed;
}

}  // namespace taper::llm
