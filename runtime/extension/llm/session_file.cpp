#include "taper/runtime/extension/llm/session_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/row_caches.h"
#include "taper/runtime/extension/module/new_file.h"
#include "taper/runtime/program/format.h"

namespace taper::llm {
namespace {

constexpr char session_magic[8] = {'T', 'A', 'P', 'R', 'S', 'E', 'S', 'S'};
constexpr uint64_t session_version = 2;  // 1 told models by the times of their files

// Writes pieces of any size behind the header, and sums them up.
class Body {
 public:
  explicit Body(NewFile& file) : file_(file) { buffer_.reserve(buffer_bytes); }

  void add(Span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const index_t count = std::min(bytes.size(), room());
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + count);
      bytes = bytes.part(count, bytes.size() - count);
      if (room() == 0) flush();
    }
  }
  // False: not all could be written.
  bool finish() { return flush(), good_; }
  uint64_t checksum() const { return checksum_; }

 private:
  static constexpr size_t buffer_bytes = size_t{1} << 20;  // whole words, as the checksum wants
  index_t room() const { return static_cast<index_t>(buffer_bytes - buffer_.size()); }
  void flush() {
    good_ = good_ && file_.write(place_, buffer_.data(), buffer_.size());
    checksum_ = taper::checksum(buffer_, checksum_);
    place_ += buffer_.size();
    buffer_.clear();
  }

  NewFile& file_;
  std::vector<std::byte> buffer_;
  size_t place_ = sizeof(SessionHeader);
  uint64_t checksum_ = checksum_of_nothing;
  bool good_ = true;
};

Span<const std::byte> bytes_of(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), static_cast<index_t>(size)};
}

std::string not_written(const std::string& path, const std::string& why) {
  return path + ": it cannot be written: " + why;
}

// A file from anywhere must not control the terminal that shows it.
bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code >= 0x20 && code != 0x7f;
  });
}

// What a symbolic link names, also where nothing is there yet.
std::string target_of(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int most_links = 40;
  fs::path target = path;
  std::error_code error;
  for (int i = 0; i < most_links && fs::is_symlink(fs::symlink_status(target, error)); ++i) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = target.parent_path() / next;  // an absolute one stays
  }
  return target.string();
}

// "": the header and the size of the file fit each other.
std::string damage(const SessionHeader& h, size_t rest) {
  if (h.version != session_version)
    return "it is a session of version " + std::to_string(h.version) + "; this is version " +
           std::to_string(session_version) + ": go on with the Taper that wrote it, or remove it";
  bool fits = h.tokens <= rest / sizeof(TokenId) && h.reserved == 0;
  if (fits) rest -= h.tokens * sizeof(TokenId);
  for (const uint64_t bytes : {h.name_bytes, h.note_bytes, h.cache_bytes}) {
    fits = fits && bytes <= rest;
    if (fits) rest -= bytes;
  }
  return fits && rest == 0 ? "" : "it is damaged: its parts do not fit its size";
}

}  // namespace

Result<SessionFile> open_session_file(const std::string& path, std::string& why) {
  const auto fail = [&](const std::string& what) {
    return why = path + ": " + what, Error::invalid_argument;
  };
  SessionFile session;
  if (!session.file.open(path, why)) return Error::invalid_argument;
  const Span<const std::byte> all = session.file.bytes();
  SessionHeader header{};
  std::memcpy(&header, all.data(), std::min(sizeof header, static_cast<size_t>(all.size())));
  if (std::memcmp(header.magic, session_magic, sizeof header.magic) != 0)
    return fail("it is no session");
  if (static_cast<size_t>(all.size()) < sizeof header)
    return fail("it is damaged: its parts do not fit its size");
  const Span<const std::byte> body = all.part(sizeof header, all.size() - index_t{sizeof header});
  if (const std::string what = damage(header, static_cast<size_t>(body.size())); !what.empty())
    return fail(what);
  if (checksum(body) != header.checksum) return fail("it is damaged: its checksum is wrong");
  session.tokens = {reinterpret_cast<const TokenId*>(body.data()),
                    static_cast<index_t>(header.tokens)};
  const auto* const texts = reinterpret_cast<const char*>(session.tokens.end());
  session.owner = {header.model, header.adapter, {texts, header.name_bytes}};
  if (!is_name(session.owner.adapter_name))
    return fail("it is damaged: the name of its adapter has control characters");
  session.note = {texts + header.name_bytes, header.note_bytes};
  session.caches = {body.end() - header.cache_bytes, static_cast<index_t>(header.cache_bytes)};
  return session;
}

std::string why_not_writable(const std::string& path) {
  const std::string target = target_of(path);
  std::error_code none;
  if (std::filesystem::is_directory(target, none)) return not_written(path, "it is a folder");
  NewFile file(target, NewFile::Readers::as_before_or_owner);
  const char byte = 0;
  return file.write(0, &byte, 1) && file.flush() ? "" : not_written(path, file.why());
}

bool lock_session_file(const std::string& path, FileLock& lock, std::string& why) {
  if (lock.take(target_of(path), why)) return true;
  return why.insert(0, path + ": "), false;
}

Error write_session_file(const std::string& path, const SessionOwner& owner,
                         Span<const TokenId> tokens, std::string_view note, const RowCaches& caches,
                         std::string& why) {
  const int64_t count = tokens.size();
  SessionHeader header{};
  std::memcpy(header.magic, session_magic, sizeof header.magic);
  header.version = session_version, header.model = owner.model, header.adapter = owner.adapter;
  header.tokens = static_cast<uint64_t>(count), header.note_bytes = note.size();
  header.name_bytes = owner.adapter_name.size();
  header.cache_bytes = caches.bytes(count);
  NewFile file(target_of(path), NewFile::Readers::as_before_or_owner);
  Body body(file);
  body.add(bytes_of(tokens.data(), static_cast<size_t>(count) * sizeof(TokenId)));
  body.add(bytes_of(owner.adapter_name.data(), owner.adapter_name.size()));
  body.add(bytes_of(note.data(), note.size()));
  for (const RowCaches::Run& run : caches.runs()) body.add(run.of(count));
  const bool written = body.finish();
  header.checksum = body.checksum();
  if (written && file.write(0, &header, sizeof header) && file.finish()) return Error::ok;
  why = not_written(path, file.why());
  return Error::invalid_argument;
}

}  // namespace taper::llm
