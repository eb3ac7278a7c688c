// GGUF: the files of llama.cpp, versions 2 and 3, little-endian.
//
//   "GGUF" | u32 version | u64 tensors | u64 pairs
//   pairs of metadata:  text key | u32 type | value
//   tensors:            text name | u32 rank | u64 extent… (the fastest first) | u32 type | u64
//   offset up to a multiple of general.alignment, then the tensors' bytes
//
// A text is a u64 length and its bytes. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "taper/exporter/importers/gguf/types.h"
#include "taper/exporter/io/array.h"

namespace taper {
class MappedFile;
}

namespace taper::gguf {

/// The types of metadata, as the file numbers them.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// A list in the metadata. Its elements stay in the file's bytes.
class List {
 public:
  List(ValueType type, uint64_t count, std::span<const std::byte> bytes)
      : type_(type), count_(count), bytes_(bytes) {}

  ValueType type() const { return type_; }
  size_t size() const { return static_cast<size_t>(count_); }
  /// Throws FileError if the elements are no texts.
  std::vector<std::string_view> texts() const;
  /// Integers and bools. Throws FileError for other elements, and for a u64 that is too large.
  std::vector<int64_t> integers() const;
  /// Numbers of any kind. Throws FileError for other elements.
  std::vector<double> numbers() const;

 private:
  ValueType type_;
  uint64_t count_;
  std::span<const std::byte> bytes_;
};

/// Integers of every width are int64_t; a u64 above its range stands as double.
using Value = std::variant<int64_t, double, bool, std::string_view, List>;

struct TensorInfo {
  uint32_t type = 0;           ///< find_type knows it
  std::vector<int64_t> sizes;  ///< the slowest first, as in Taper: the reverse of the file's order
  std::span<const std::byte> bytes;  ///< exactly what type and sizes ask for
};

/// The content of a file. Texts and bytes are those of the file and live as long as it does.
struct Content {
  uint32_t version = 0;
  std::map<std::string, Value, std::less<>> metadata;
  std::map<std::string, TensorInfo, std::less<>> tensors;

  /// The value of a key, converted. No value if there is no such key; FileError if its type is
  /// another one.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  const List* list(std::string_view key) const;
};

/// Reads and checks the header completely: counts and lengths against the bytes that are there,
/// types, names that occur twice, and the place of every tensor. Memory in use is proportional to
/// the bytes, whatever the counts claim. `name` stands in front of messages. Throws io::FileError.
Content parse(std::span<const std::byte> file, const std::string& name);

/// A mapped file with its content.
class File {
 public:
  explicit File(const std::filesystem::path& path);

  const Content& content() const { return content_; }
  /// Keeps the mapping alive.
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

 private:
  std::shared_ptr<const MappedFile> mapping_;
  Content content_;
};

}  // namespace taper::gguf
