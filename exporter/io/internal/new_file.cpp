#include "taper/exporter/io/internal/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "taper/exporter/io/array.h"

namespace taper::io::internal {
namespace {

namespace fs = std::filesystem;

constexpr mode_t usual_mode = 0666;               // the umask takes from it
constexpr size_t most_at_once = size_t{1} << 30;  // systems take less than 2 GB
constexpr std::string_view partial_end = ".partial";

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

// A name beside `target` that nobody has.
fs::path partial_name(const fs::path& target) {
  fs::path name = target;
  return name += "." + std::to_string(std::random_device{}()) + std::string(partial_end);
}

bool is_partial_of(std::string_view name, const std::string& target) {
  if (!name.starts_with(target + ".") || !name.ends_with(partial_end)) return false;
  name.remove_prefix(target.size() + 1);
  if (name.size() <= partial_end.size()) return false;
  name.remove_suffix(partial_end.size());
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// Removes what killed programs left. Who still writes holds a lock, which ends with his program.
void remove_leftovers(const fs::path& target) {
  std::error_code error;
  fs::directory_iterator entry(folder_of(target), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path path = entry->path();
    if (!is_partial_of(path.filename().native(), target.filename().native())) continue;
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) (void)::unlink(path.c_str());
    ::close(file);
  }
}

// Some file systems have nothing to do here, and say so by an error.
bool synchronize(int file) {
  return ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
}

// So that the new name, too, outlives a power failure. Folders that cannot be opened are left to
// the system.
void synchronize_folder(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  (void)synchronize(file);
  ::close(file);
}

// Otherwise nobody but root could read a private file of a user that root replaced. Who may not
// give files away keeps the group if it is one of theirs.
void keep_owner_and_mode(int file, const struct stat& before) {
  if (::fchown(file, before.st_uid, before.st_gid) != 0 &&
      ::fchown(file, static_cast<uid_t>(-1), before.st_gid) != 0) {
    // the file stays as it was created
  }
  (void)::fchmod(file, before.st_mode & 0777);
}

}  // namespace

NewFile::NewFile(fs::path target, std::string shown, Name name)
    : target_(std::move(target)), shown_(std::move(shown)) {
  remove_leftovers(target_);
  if (name == Name::partial || !open_without_name()) open_partial();
  if (file_ < 0) fail("cannot create");
}

NewFile::~NewFile() {
  if (!partial_.empty()) (void)::unlink(partial_.c_str());
  if (file_ >= 0) ::close(file_);
}

void NewFile::fail(const char* what) const {
  throw FileError(shown_ + ": " + what + ": " + std::strerror(errno));
}

#ifdef O_TMPFILE
namespace {
// Only through /proc may everybody give such a file a name.
std::string link_to(int file) { return "/proc/self/fd/" + std::to_string(file); }
}  // namespace

bool NewFile::open_without_name() {
  file_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, usual_mode);
  if (file_ < 0 || ::access(link_to(file_).c_str(), F_OK) == 0) return file_ >= 0;
  ::close(file_);
  file_ = -1;
  return false;
}

void NewFile::link_partial() {
  lock();
  for (;;) {
    partial_ = partial_name(target_);
    if (::linkat(AT_FDCWD, link_to(file_).c_str(), AT_FDCWD, partial_.c_str(), AT_SYMLINK_FOLLOW) ==
        0)
      return;
    partial_.clear();
    if (errno != EEXIST) fail("cannot create");
  }
}
#else
bool NewFile::open_without_name() { return false; }
void NewFile::link_partial() {}
#endif

void NewFile::open_partial() {
  for (;;) {
    const fs::path name = partial_name(target_);
    file_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, usual_mode);
    if (file_ < 0 && errno == EEXIST) continue;
    if (file_ < 0) return;
    lock();
    struct stat status {};
    if (::fstat(file_, &status) == 0 && status.st_nlink > 0) {
      partial_ = name;
      return;
    }
    ::close(file_);  // somebody took it for a leftover before it was locked
  }
}

// A file system without locks has no protection against who writes the same target meanwhile.
void NewFile::lock() const { (void)::flock(file_, LOCK_EX | LOCK_NB); }

void NewFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), std::min(bytes.size(), most_at_once),
                                     static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write");
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void NewFile::replace_target() {
  struct stat before {};
  if (::stat(target_.c_str(), &before) == 0) keep_owner_and_mode(file_, before);
  if (!synchronize(file_)) fail("cannot write");
  if (partial_.empty()) link_partial();
  if (::rename(partial_.c_str(), target_.c_str()) != 0) fail("cannot replace");
  partial_.clear();
  synchronize_folder(folder_of(target_));
}

}  // namespace taper::io::internal
