#include "taper/exporter/importers/gguf/gguf.h"

#include <bit>

#include "taper/exporter/importers/gguf/cursor.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are read as they lie");

constexpr int max_dims = 4;  // ggml's GGML_MAX_DIMS
constexpr int64_t max_alignment = 1 << 20;

/// 0 for texts and lists, and for numbers that are no type.
size_t width_of(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    default:
      return 0;
  }
}

template <class T>
T at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

Value number_at(ValueType type, const std::byte* b) {
  switch (type) {
    case ValueType::u8:
      return int64_t{at<uint8_t>(b)};
    case ValueType::i8:
      return int64_t{at<int8_t>(b)};
    case ValueType::u16:
      return int64_t{at<uint16_t>(b)};
    case ValueType::i16:
      return int64_t{at<int16_t>(b)};
    case ValueType::u32:
      return int64_t{at<uint32_t>(b)};
    case ValueType::i32:
      return int64_t{at<int32_t>(b)};
    case ValueType::i64:
      return at<int64_t>(b);
    case ValueType::f32:
      return double{at<float>(b)};
    case ValueType::f64:
      return at<double>(b);
    case ValueType::boolean:
      return at<uint8_t>(b) != 0;
    default: {
      const auto n = at<uint64_t>(b);
      if (n > INT64_MAX) return static_cast<double>(n);
      return static_cast<int64_t>(n);
    }
  }
}

Value list(Cursor& cursor, const std::string& key) {
  const auto type = static_cast<ValueType>(cursor.number<uint32_t>("the type of a list"));
  const size_t width = width_of(type);
  if (width == 0 && type != ValueType::text)
    cursor.fail("metadata " + key + ": a list of type " +
                std::to_string(static_cast<uint32_t>(type)) + " cannot be read");
  const uint64_t count = cursor.count("elements of a list", width > 0 ? width : sizeof(uint64_t));
  if (width > 0) return List(type, count, cursor.take(count * width, "a list"));
  Cursor end = cursor;
  for (uint64_t i = 0; i < count; ++i) end.text("a text of a list");
  return List(type, count, cursor.take(end.position() - cursor.position(), "a list"));
}

Value value(Cursor& cursor, const std::string& key) {
  const auto type = static_cast<ValueType>(cursor.number<uint32_t>("the type of a value"));
  if (type == ValueType::text) return cursor.text("a text");
  if (type == ValueType::array) return list(cursor, key);
  const size_t width = width_of(type);
  if (width == 0)
    cursor.fail("metadata " + key + " has the unknown type " +
                std::to_string(static_cast<uint32_t>(type)));
  return number_at(type, cursor.take(width, "a value").data());
}

/// A tensor without bytes yet, and where they begin in the data.
struct Placed {
  TensorInfo* info;
  const std::string* name;
  uint64_t offset, bytes;
};

uint64_t bytes_of(const Cursor& cursor, const std::string& name, const TensorInfo& info) {
  const TensorType& type = *find_type(info.type);
  const int64_t numel = io::checked_numel(info.sizes, type.bytes);
  if (numel < 0) cursor.fail("tensor " + name + " is too large");
  const int64_t row = info.sizes.empty() ? 1 : info.sizes.back();
  if (row % type.block != 0)
    cursor.fail("tensor " + name + ": rows of " + std::to_string(row) +
                " elements are no multiple of the " + std::to_string(type.block) +
                " of a block of " + type.name);
  return static_cast<uint64_t>(numel / type.block * type.bytes);
}

Placed tensor(Cursor& cursor, Content& content) {
  const std::string name(cursor.text("a tensor's name"));
  const auto [entry, is_new] = content.tensors.try_emplace(name);
  if (!is_new) cursor.fail("tensor " + name + " occurs twice");
  TensorInfo& info = entry->second;
  const auto rank = cursor.number<uint32_t>("a tensor's rank");
  if (rank > max_dims)
    cursor.fail("tensor " + name + " has " + std::to_string(rank) + " dimensions; at most " +
                std::to_string(max_dims) + " are allowed");
  for (uint32_t d = 0; d < rank; ++d) {
    const auto extent = cursor.number<uint64_t>("a tensor's extent");
    if (extent > INT64_MAX) cursor.fail("tensor " + name + " is too large");
    info.sizes.insert(info.sizes.begin(), static_cast<int64_t>(extent));
  }
  info.type = cursor.number<uint32_t>("a tensor's type");
  if (find_type(info.type) == nullptr)
    cursor.fail("tensor " + name + " has the unknown type " + std::to_string(info.type));
  return {&info, &entry->first, cursor.number<uint64_t>("a tensor's offset"),
          bytes_of(cursor, name, info)};
}

uint64_t alignment_of(const Cursor& cursor, const Content& content) {
  const int64_t alignment = content.integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > max_alignment ||
      !std::has_single_bit(static_cast<uint64_t>(alignment)))
    cursor.fail("general.alignment is " + std::to_string(alignment) +
                "; it must be a power of two up to " + std::to_string(max_alignment));
  return static_cast<uint64_t>(alignment);
}

void place(const Cursor& cursor, std::span<const std::byte> data, uint64_t alignment,
           const std::vector<Placed>& tensors) {
  for (const Placed& t : tensors) {
    if (t.offset % alignment != 0)
      cursor.fail("tensor " + *t.name + " begins at " + std::to_string(t.offset) +
                  ", no multiple of " + std::to_string(alignment));
    if (t.offset > data.size() || t.bytes > data.size() - t.offset)
      cursor.fail("it is cut short: tensor " + *t.name + " needs " + std::to_string(t.bytes) +
                  " bytes at " + std::to_string(t.offset) + " of " + std::to_string(data.size()));
    t.info->bytes = data.subspan(static_cast<size_t>(t.offset), static_cast<size_t>(t.bytes));
  }
}

void read_version(Cursor& cursor, Content& content) {
  if (cursor.left() < 4 || cursor.number<uint32_t>("the magic") != 0x46554747)
    cursor.fail("not a GGUF file: it does not begin with \"GGUF\"");
  content.version = cursor.number<uint32_t>("the version");
  if (content.version == 0x02000000 || content.version == 0x03000000)
    cursor.fail("it is a big-endian GGUF file; convert it to little-endian");
  if (content.version != 2 && content.version != 3)
    cursor.fail("GGUF version " + std::to_string(content.version) +
                " is not supported; versions 2 and 3 are");
}

template <class T, class F>
std::optional<T> converted(const Content& content, std::string_view key, const char* wanted,
                           const F& convert) {
  const auto found = content.metadata.find(key);
  if (found == content.metadata.end()) return {};
  const std::optional<T> value = convert(found->second);
  if (!value) throw io::FileError("metadata " + std::string(key) + " is no " + wanted);
  return value;
}

}  // namespace

std::vector<std::string_view> List::texts() const {
  if (type_ != ValueType::text) throw io::FileError("a list in the metadata has no texts");
  std::vector<std::string_view> all;
  all.reserve(size());
  Cursor cursor(bytes_, "metadata");
  for (uint64_t i = 0; i < count_; ++i) all.push_back(cursor.text("a text"));
  return all;
}

std::vector<int64_t> List::integers() const {
  std::vector<int64_t> all;
  const size_t width = width_of(type_);
  for (uint64_t i = 0; i < count_; ++i) {
    const Value v = width > 0 ? number_at(type_, bytes_.data() + i * width) : Value(0.0);
    if (const auto* flag = std::get_if<bool>(&v))
      all.push_back(*flag);
    else if (const auto* integer = std::get_if<int64_t>(&v))
      all.push_back(*integer);
    else
      throw io::FileError("a list in the metadata has elements that are no integers");
  }
  return all;
}

std::vector<double> List::numbers() const {
  if (type_ != ValueType::f32 && type_ != ValueType::f64) {
    const std::vector<int64_t> all = integers();
    return {all.begin(), all.end()};
  }
  std::vector<double> all;
  for (uint64_t i = 0; i < count_; ++i)
    all.push_back(std::get<double>(number_at(type_, bytes_.data() + i * width_of(type_))));
  return all;
}

std::optional<int64_t> Content::integer(std::string_view key) const {
  return converted<int64_t>(*this, key, "integer", [](const Value& v) {
    const auto* n = std::get_if<int64_t>(&v);
    return n != nullptr ? std::optional(*n) : std::nullopt;
  });
}
std::optional<double> Content::number(std::string_view key) const {
  return converted<double>(*this, key, "number", [](const Value& v) -> std::optional<double> {
    if (const auto* n = std::get_if<int64_t>(&v)) return static_cast<double>(*n);
    if (const auto* x = std::get_if<double>(&v)) return *x;
    return {};
  });
}
std::optional<bool> Content::flag(std::string_view key) const {
  return converted<bool>(*this, key, "bool", [](const Value& v) {
    const auto* b = std::get_if<bool>(&v);
    return b != nullptr ? std::optional(*b) : std::nullopt;
  });
}
std::optional<std::string_view> Content::text(std::string_view key) const {
  return converted<std::string_view>(*this, key, "text", [](const Value& v) {
    const auto* t = std::get_if<std::string_view>(&v);
    return t != nullptr ? std::optional(*t) : std::nullopt;
  });
}
const List* Content::list(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return nullptr;
  const List* list = std::get_if<List>(&found->second);
  if (list == nullptr) throw io::FileError("metadata " + std::string(key) + " is no list");
  return list;
}

Content parse(std::span<const std::byte> file, const std::string& name) {
  Cursor cursor(file, name);
  Content content;
  read_version(cursor, content);
  // a tensor has at least the lengths of its name, rank, type and offset; a pair a key and a type
  const uint64_t tensors = cursor.count("tensors", 24), pairs = cursor.count("pairs", 13);
  for (uint64_t i = 0; i < pairs; ++i) {
    const std::string key(cursor.text("a key"));
    if (!content.metadata.try_emplace(key, value(cursor, key)).second)
      cursor.fail("metadata " + key + " occurs twice");
  }
  std::vector<Placed> placed;
  for (uint64_t i = 0; i < tensors; ++i) placed.push_back(tensor(cursor, content));
  const uint64_t alignment = alignment_of(cursor, content);
  const uint64_t begin = (cursor.position() + alignment - 1) / alignment * alignment;
  const size_t size = file.size();
  place(cursor, begin < size ? file.subspan(static_cast<size_t>(begin)) : file.subspan(size),
        alignment, placed);
  return content;
}

File::File(const std::filesystem::path& path) {
  auto mapped = std::make_shared<MappedFile>();
  std::string why;
  if (!mapped->open(path.string(), why)) throw io::FileError(path.string() + ": " + why);
  const Span<const std::byte> bytes = mapped->bytes();
  mapping_ = mapped;
  content_ = parse({bytes.data(), static_cast<size_t>(bytes.size())}, path.string());
}

}  // namespace taper::gguf
