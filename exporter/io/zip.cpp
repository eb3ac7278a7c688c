#include "taper/exporter/io/zip.h"

#include <minizip/unzip.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace taper::io {
namespace {

constexpr size_t max_name = 4096;
constexpr uint32_t encrypted_flag = 1;

// minizip reads through these functions.
struct Cursor {
  std::span<const std::byte> file;
  uint64_t at = 0;
};

voidpf open_stream(voidpf cursor, const void*, int) { return cursor; }
int close_stream(voidpf, voidpf) { return 0; }
int error_stream(voidpf, voidpf) { return 0; }
ZPOS64_T tell_stream(voidpf, voidpf stream) { return static_cast<Cursor*>(stream)->at; }

uLong read_stream(voidpf, voidpf stream, void* to, uLong size) {
  Cursor& c = *static_cast<Cursor*>(stream);
  const uint64_t count = std::min<uint64_t>(size, c.file.size() - c.at);
  if (count > 0) std::memcpy(to, c.file.data() + c.at, count);
  c.at += count;
  return static_cast<uLong>(count);
}

long seek_stream(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  Cursor& c = *static_cast<Cursor*>(stream);
  const uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                        : origin == ZLIB_FILEFUNC_SEEK_CUR ? c.at
                                                           : c.file.size();
  uint64_t to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to > c.file.size()) return -1;
  c.at = to;
  return 0;
}

struct Closer {
  void operator()(voidp archive) const { unzClose(archive); }
};

/// Whether the record that ends every archive is all there, with the comment that it announces.
bool has_end(std::span<const std::byte> file) {
  constexpr std::string_view signature("PK\x05\x06", 4);
  constexpr size_t record = 22, longest = record + 65535;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const size_t tail = text.size() - std::min(text.size(), longest);
  const size_t at = text.substr(tail).rfind(signature);
  if (at == text.npos || text.size() - tail - at < record) return false;
  const std::string_view end = text.substr(tail + at);
  const size_t comment = static_cast<uint8_t>(end[20]) + 256u * static_cast<uint8_t>(end[21]);
  return end.size() >= record + comment;
}

/// Relative, with forward slashes, and without a part that leads upwards.
bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\\') != path.npos ||
      (path.size() > 1 && path[1] == ':'))
    return false;
  const std::string framed = "/" + std::string(path) + "/";
  return framed.find("/../") == framed.npos;
}

// What the directory says of a record's bytes.
struct Expected {
  std::span<const std::byte> bytes;
  uint32_t crc;
  std::string path;
  bool holds() const {
    return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) == crc;
  }
};

// The first record that does not hold what was written; nullptr: all do. Of a large file this is a
// pass over all weights, which every core does a part of.
const Expected* find_damaged(const std::vector<Expected>& expected) {
  constexpr size_t worth_a_thread = 16 << 20;  // bytes
  size_t total = 0;
  for (const Expected& e : expected) total += e.bytes.size();
  const size_t threads = std::min<size_t>({std::max(1u, std::thread::hardware_concurrency()),
                                           1 + total / worth_a_thread, expected.size()});
  std::atomic<size_t> next{0}, damaged{expected.size()};
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < expected.size();) {
      if (expected[i].holds()) continue;
      size_t first = damaged.load();
      while (i < first && !damaged.compare_exchange_weak(first, i)) {
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  return damaged < expected.size() ? &expected[damaged] : nullptr;
}

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> file, std::string name) : name_(std::move(name)) {
  Cursor cursor{file};
  zlib_filefunc64_def functions{open_stream, read_stream,  nullptr,      tell_stream,
                                seek_stream, close_stream, error_stream, &cursor};
  const std::unique_ptr<void, Closer> archive(unzOpen2_64(nullptr, &functions));
  unz_global_info64 global{};
  if (archive == nullptr || !has_end(file) || unzGetGlobalInfo64(archive.get(), &global) != UNZ_OK)
    fail("not a ZIP archive (as .pt2 files are), or cut short");

  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  std::vector<Expected> expected;
  int status = unzGoToFirstFile(archive.get());
  for (; status == UNZ_OK; status = unzGoToNextFile(archive.get())) {
    unz_file_info64 info{};
    std::string path(max_name, '\0');
    if (unzGetCurrentFileInfo64(archive.get(), &info, path.data(), path.size(), nullptr, 0, nullptr,
                                0) != UNZ_OK ||
        info.size_filename >= max_name)
      fail("its directory is damaged");
    path.resize(info.size_filename);
    if (!stays_inside(path)) fail("record " + path + " has a name that leads outside the archive");
    if ((info.flag & encrypted_flag) != 0) fail("record " + path + " is encrypted");
    Record record;
    record.compressed = info.compression_method != 0;
    if (!record.compressed) {
      if (info.compressed_size != info.uncompressed_size) fail("record " + path + " is damaged");
      int method = 0;
      if (unzOpenCurrentFile2(archive.get(), &method, nullptr, /*raw=*/1) != UNZ_OK)
        fail("record " + path + " is damaged: its own header does not fit the directory");
      const uint64_t at = unzGetCurrentFileZStreamPos64(archive.get());
      unzCloseCurrentFile(archive.get());
      if (at > file.size() || info.uncompressed_size > file.size() - at)
        fail("record " + path + " reaches outside the file, which may be cut short");
      record.bytes = file.subspan(at, info.uncompressed_size);
      expected.push_back({record.bytes, static_cast<uint32_t>(info.crc), path});
      if (!record.bytes.empty()) ranges.emplace_back(at, at + info.uncompressed_size);
    }
    if (!records_.emplace(path, record).second) fail("record " + path + " occurs twice");
  }
  if (status != UNZ_END_OF_LIST_OF_FILE && global.number_entry > 0)
    fail("its directory is damaged");
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) fail("two of its records overlap");
  if (const Expected* damaged = find_damaged(expected))
    fail("record " + damaged->path + " is damaged: its CRC-32 differs");
}

std::span<const std::byte> ZipArchive::read(std::string_view path) const {
  const auto found = records_.find(path);
  if (found == records_.end()) fail("it has no record " + std::string(path));
  const Record& record = found->second;
  if (record.compressed)
    fail("record " + std::string(path) +
         " is compressed; write the file again with torch.export.save or torch.save, which do not "
         "compress");
  return record.bytes;
}

std::string_view ZipArchive::read_text(std::string_view path) const {
  const std::span<const std::byte> bytes = read(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace taper::io
