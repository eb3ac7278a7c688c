#include "taper/exporter/io/torch_legacy.h"

#include <cstring>
#include <string_view>

#include "taper/exporter/io/internal/torch_pickle.h"

namespace taper::io {
namespace {

using internal::PickleValue;
using internal::TorchPickle;
using Kind = PickleValue::Kind;

// 0x1950a86a20f9469cfc6c, little-endian as pickled
constexpr std::string_view legacy_magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t protocol_version = 1001;
constexpr size_t max_expansion = 16;

class Checkpoint {
 public:
  Checkpoint(std::span<const std::byte> file, const std::string& name)
      : file_(file), pickle_(file, name) {}

  ArrayMap read(std::string_view prefix) {
    read_header();
    const PickleValue* root = pickle_.reader().next();
    read_storages(*pickle_.reader().next());
    ArrayMap tensors;
    size_t total = 0;
    for (const auto& [name, stored] : pickle_.tensors_of(root)) {
      const bool cut = !prefix.empty() && name.starts_with(prefix);
      const size_t bytes = static_cast<size_t>(
          checked_numel(stored.sizes, size_bytes(stored.dtype)) * size_bytes(stored.dtype));
      if (bytes > stored.storage.size())
        pickle_.fail("tensor '" + name + "' reaches outside its storage: it has more elements");
      total += bytes;
      if (total / max_expansion > file_.size())
        pickle_.fail(
            "its tensors share storages so often that they need more than 16 times the file");
      tensors[cut ? name.substr(prefix.size()) : name] = stored.to_array();
    }
    return tensors;
  }

 private:
  void read_header() {
    const auto* text = reinterpret_cast<const char*>(file_.data());
    if (file_.size() >= 4 && std::memcmp(text, "PK\x03\x04", 4) == 0)
      pickle_.fail(
          "this is the zip form that PyTorch writes since 1.6; save it with torch.save(…, "
          "_use_new_zipfile_serialization=False), or as safetensors");
    if (file_.empty() || file_[0] != std::byte{0x80}) pickle_.fail("not a PyTorch checkpoint");
    const PickleValue* signature = pickle_.reader().next();
    if (!signature->is(Kind::bytes) || signature->text != legacy_magic)
      pickle_.fail("not a PyTorch checkpoint: another pickle");
    const PickleValue* version = pickle_.reader().next();
    if (!version->is(Kind::integer) || version->integer != protocol_version)
      pickle_.fail("a PyTorch checkpoint of an unknown version");
    const PickleValue* system = pickle_.reader().next();
    for (size_t i = 0; i + 1 < system->items.size(); i += 2)
      if (system->items[i]->text == "little_endian" && system->items[i + 1]->integer == 0)
        pickle_.fail("the file is big-endian");
  }

  /// Behind the pickles, for each key: i64 count of elements, the elements.
  void read_storages(const PickleValue& keys) {
    if (!keys.is(Kind::list)) pickle_.fail("the list of storages is missing");
    auto& storages = pickle_.collect_storages();
    size_t at = pickle_.reader().position();
    for (const PickleValue* key : keys.items) {
      if (!TorchPickle::is_text(*key)) pickle_.fail("a storage's key is not a text");
      int64_t count = 0;
      if (file_.size() - at < sizeof count) pickle_.fail("the file is cut short");
      std::memcpy(&count, file_.data() + at, sizeof count);
      at += sizeof count;
      const auto found = storages.find(key->text);
      if (found == storages.end())
        pickle_.fail("storage " + key->text + " has no known element type");
      const uint64_t available = file_.size() - at,
                     item = static_cast<uint64_t>(size_bytes(found->second.dtype));
      if (count < 0 || static_cast<uint64_t>(count) > available / item)
        pickle_.fail("the file is cut short, or storage " + key->text + " is damaged");
      const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(item);
      found->second.bytes = file_.subspan(at, bytes);
      at += bytes;
    }
    if (at != file_.size())
      pickle_.fail(std::to_string(file_.size() - at) + " bytes stand behind the last storage");
  }

  std::span<const std::byte> file_;
  TorchPickle pickle_;
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
