#include "taper/exporter/io/torch_legacy.h"

#include <cstring>
#include <string_view>

#include "taper/exporter/io/internal/pickle.h"
#include "taper/exporter/io/internal/strided_copy.h"

namespace taper::io {
namespace {

using internal::PickleReader;
using internal::PickleValue;
using Kind = PickleValue::Kind;

// 0x1950a86a20f9469cfc6c, little-endian as pickled
constexpr std::string_view magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t protocol_version = 1001;
constexpr size_t max_rank_read = 64, max_expansion = 16;

struct StorageType {
  std::string_view global;
  DType dtype;
};
constexpr StorageType storage_types[] = {
    {"torch FloatStorage", DType::f32},     {"torch DoubleStorage", DType::f64},
    {"torch HalfStorage", DType::f16},      {"torch LongStorage", DType::i64},
    {"torch BFloat16Storage", DType::bf16}, {"torch IntStorage", DType::i32},
    {"torch ShortStorage", DType::i16},     {"torch CharStorage", DType::i8},
    {"torch ByteStorage", DType::u8},       {"torch BoolStorage", DType::boolean},
};

class Checkpoint {
 public:
  Checkpoint(std::span<const std::byte> file, const std::string& name)
      : file_(file), name_(name), reader_(file, name) {}

  ArrayMap read(std::string_view prefix) {
    read_header();
    const PickleValue* root = reader_.next();
    const PickleValue* keys = reader_.next();
    read_storages(*keys);
    const PickleValue* state = find_state(root);
    ArrayMap tensors;
    size_t total = 0;
    for (size_t i = 0; i + 1 < state->items.size(); i += 2) {
      const PickleValue &key = *state->items[i], *tensor = as_tensor(state->items[i + 1]);
      if (tensor == nullptr || !is_text(key)) continue;
      const std::string_view text = key.text;
      const bool cut = !prefix.empty() && text.substr(0, prefix.size()) == prefix;
      const Array& array = tensors[std::string(cut ? text.substr(prefix.size()) : text)] =
          tensor_of(*tensor, key.text);
      total += array.size_bytes();
      if (total / max_expansion > file_.size())
        fail("its tensors share storages so often that they need more than 16 times the file");
    }
    return tensors;
  }

 private:
  struct Storage {
    DType dtype;
    std::span<const std::byte> bytes;
  };

  [[noreturn]] void fail(const std::string& what) const { throw FileError(name_ + ": " + what); }
  static bool is_text(const PickleValue& v) { return v.is(Kind::text) || v.is(Kind::bytes); }

  void read_header() {
    const auto* text = reinterpret_cast<const char*>(file_.data());
    if (file_.size() >= 4 && std::memcmp(text, "PK\x03\x04", 4) == 0)
      fail(
          "this is the zip form that PyTorch writes since 1.6; save it with torch.save(…, "
          "_use_new_zipfile_serialization=False), or as safetensors");
    if (file_.empty() || file_[0] != std::byte{0x80}) fail("not a PyTorch checkpoint");
    const PickleValue* signature = reader_.next();
    if (!signature->is(Kind::bytes) || signature->text != magic)
      fail("not a PyTorch checkpoint: another pickle");
    const PickleValue* version = reader_.next();
    if (!version->is(Kind::integer) || version->integer != protocol_version)
      fail("a PyTorch checkpoint of an unknown version");
    const PickleValue* system = reader_.next();
    for (size_t i = 0; i + 1 < system->items.size(); i += 2)
      if (system->items[i]->text == "little_endian" && system->items[i + 1]->integer == 0)
        fail("the file is big-endian");
  }

  /// Behind the pickles, for each key: i64 count of elements, the elements.
  void read_storages(const PickleValue& keys) {
    if (!keys.is(Kind::list)) fail("the list of storages is missing");
    collect_types();
    size_t at = reader_.position();
    for (const PickleValue* key : keys.items) {
      if (!is_text(*key)) fail("a storage's key is not a text");
      int64_t count = 0;
      if (file_.size() - at < sizeof count) fail("the file is cut short");
      std::memcpy(&count, file_.data() + at, sizeof count);
      at += sizeof count;
      const auto found = storages_.find(key->text);
      if (found == storages_.end()) fail("storage " + key->text + " has no known element type");
      const uint64_t available = file_.size() - at,
                     item = static_cast<uint64_t>(size_bytes(found->second.dtype));
      if (count < 0 || static_cast<uint64_t>(count) > available / item)
        fail("the file is cut short, or storage " + key->text + " is damaged");
      const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(item);
      found->second.bytes = file_.subspan(at, bytes);
      at += bytes;
    }
    if (at != file_.size())
      fail(std::to_string(file_.size() - at) + " bytes stand behind the last storage");
  }

  /// A storage's element type stands in the persistent ids: ("storage", class, key, location,
  /// count, view).
  void collect_types() {
    for (const PickleValue& v : reader_.values()) {
      if (!v.is(Kind::persistent)) continue;
      const PickleValue& id = *v.items[0];
      if (!id.is(Kind::tuple) || id.items.size() < 5 || id.items[0]->text != "storage" ||
          !is_text(*id.items[2]))
        fail("a persistent id that is not a storage");
      if (id.items.size() > 5 && !id.items[5]->is(Kind::none))
        fail("storages that are views of others are not read");
      for (const StorageType& type : storage_types) {
        if (!id.items[1]->is(Kind::global) || id.items[1]->text != type.global) continue;
        const auto [entry, added] = storages_.insert({id.items[2]->text, {type.dtype, {}}});
        if (!added && entry->second.dtype != type.dtype)
          fail("storage " + entry->first + " has two element types");
      }
    }
  }

  /// The call that rebuilds a tensor, or nullptr if the value is something else.
  const PickleValue* as_tensor(const PickleValue* v) const {
    for (int depth = 0; depth < 2; ++depth) {
      if (v->is_call_of("torch._utils _rebuild_tensor") ||
          v->is_call_of("torch._utils _rebuild_tensor_v2"))
        return v;
      const bool parameter = v->is_call_of("torch._utils _rebuild_parameter") ||
                             v->is_call_of("torch.nn.parameter Parameter");
      if (!parameter || v->arguments().empty()) return nullptr;
      v = v->arguments()[0];
    }
    return nullptr;
  }

  const PickleValue* find_state(const PickleValue* v) const {
    constexpr std::string_view usual[] = {"state_dict", "model_state_dict", "model",
                                          "net",        "params",           "ema"};
    constexpr int max_depth = 4;
    for (int depth = 0; depth < max_depth && v->is(Kind::dict); ++depth) {
      const PickleValue* inner = nullptr;
      for (size_t i = 0; i + 1 < v->items.size(); i += 2) {
        if (as_tensor(v->items[i + 1]) != nullptr) return v;
        for (const std::string_view key : usual)
          if (inner == nullptr && v->items[i]->text == key && v->items[i + 1]->is(Kind::dict))
            inner = v->items[i + 1];
      }
      if (inner == nullptr) break;
      v = inner;
    }
    fail("holds no dict of tensors");
  }

  std::vector<int64_t> integers(const PickleValue& v, const std::string& tensor) const {
    const PickleValue& tuple =
        v.is_call_of("torch Size") && v.arguments().size() == 1 ? *v.arguments()[0] : v;
    if (!tuple.is(Kind::tuple) || tuple.items.size() > max_rank_read)
      fail("tensor '" + tensor + "' is damaged");
    std::vector<int64_t> numbers;
    for (const PickleValue* item : tuple.items) {
      if (!item->is(Kind::integer) || item->integer < 0) fail("tensor '" + tensor + "' is damaged");
      numbers.push_back(item->integer);
    }
    return numbers;
  }

  /// _rebuild_tensor(storage, offset, sizes, strides, …), all in elements
  Array tensor_of(const PickleValue& call, const std::string& tensor) const {
    const auto& arguments = call.arguments();
    if (arguments.size() < 4 || !arguments[0]->is(Kind::persistent) ||
        !arguments[1]->is(Kind::integer))
      fail("tensor '" + tensor + "' is damaged");
    const auto found = storages_.find(arguments[0]->items[0]->items[2]->text);
    if (found == storages_.end())
      fail("tensor '" + tensor + "' is of a dtype that Taper does not have");
    const Storage& storage = found->second;
    const std::vector<int64_t> sizes = integers(*arguments[2], tensor),
                               strides = integers(*arguments[3], tensor);
    const int64_t item = size_bytes(storage.dtype), offset = arguments[1]->integer,
                  numel = checked_numel(sizes, item);
    if (sizes.size() != strides.size() || offset < 0 || numel < 0)
      fail("tensor '" + tensor + "' is damaged");
    // The last element that it reads must lie inside its storage, and it must not be a broadcast
    // that blows up a small file.
    int64_t last = offset;
    bool overflow = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t reach = 0;
      overflow |= __builtin_mul_overflow(sizes[d] > 0 ? sizes[d] - 1 : 0, strides[d], &reach) ||
                  __builtin_add_overflow(last, reach, &last);
    }
    const int64_t stored = static_cast<int64_t>(storage.bytes.size()) / item;
    if (numel > 0 && (overflow || last >= stored || numel > stored))
      fail("tensor '" + tensor + "' reaches outside its storage");
    Array array = Array::zeros(storage.dtype, sizes);
    internal::copy_strided(storage.bytes.data(), offset, strides, array);
    array.settle_bools();
    return array;
  }

  std::span<const std::byte> file_;
  const std::string& name_;
  PickleReader reader_;
  std::map<std::string, Storage> storages_;
};

}  // namespace

ArrayMap parse_torch_legacy(std::span<const std::byte> file, const std::string& name,
                            std::string_view prefix) {
  return Checkpoint(file, name).read(prefix);
}

ArrayMap read_torch_legacy(const std::filesystem::path& path, std::string_view prefix) {
  return parse_torch_legacy(read_file(path), path.string(), prefix);
}

}  // namespace taper::io
