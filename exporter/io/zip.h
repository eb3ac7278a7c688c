// ZIP archives whose records stand uncompressed, as PyTorch writes them: found by name, read where
// they lie. Format: PKWARE's APPNOTE.TXT; the directory is walked by minizip.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// The directory of an archive in memory, which must outlive it.
class ZipArchive {
 public:
  struct Record {
    std::span<const std::byte> bytes;  ///< in the archive; empty if compressed
    bool compressed = false;
  };

  /// Reads the directory and compares every record's checksum; `name` stands in front of messages.
  /// Throws FileError for what is no ZIP archive, for damage, encryption, names that occur twice or
  /// leave the archive's folder ("..", absolute), and for records that overlap or reach outside.
  ZipArchive(std::span<const std::byte> file, std::string name);

  const std::map<std::string, Record, std::less<>>& records() const { return records_; }
  bool has(std::string_view path) const { return records_.find(path) != records_.end(); }
  /// A record's bytes. Throws FileError if there is no such record, or if it is compressed.
  std::span<const std::byte> read(std::string_view path) const;
  /// The same as text.
  std::string_view read_text(std::string_view path) const;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(name_ + ": " + what); }

  std::string name_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace taper::io
