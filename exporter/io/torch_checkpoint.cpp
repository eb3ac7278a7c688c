#include "taper/exporter/io/torch_checkpoint.h"

#include "taper/exporter/io/internal/torch_pickle.h"
#include "taper/exporter/io/zip.h"

namespace taper::io {
namespace {

using internal::PickleReader;
using internal::PickleValue;
using internal::TorchPickle;
using Kind = PickleValue::Kind;

/// A file of `torch.save`, read.
class File {
 public:
  File(std::span<const std::byte> file, const std::string& name,
       PickleReader::Objects objects = PickleReader::Objects::tensors)
      : archive_(file, name), root_(root_of(archive_, name)), pickle_(data(name), name, objects) {
    object_ = pickle_.reader().next();
    for (auto& [key, storage] : pickle_.collect_storages())
      storage.bytes = archive_.read(root_ + "data/" + key);
  }
  const TorchPickle& pickle() const { return pickle_; }
  const PickleValue* object() const { return object_; }

 private:
  static std::string root_of(const ZipArchive& archive, const std::string& name) {
    if (archive.records().empty()) throw FileError(name + ": an empty archive");
    const std::string first = archive.records().begin()->first;
    return first.substr(0, first.find('/') + 1);
  }
  std::span<const std::byte> data(const std::string& name) const {
    if (!archive_.has(root_ + "data.pkl"))
      throw FileError(name + ": not a PyTorch checkpoint: it has no record data.pkl");
    if (archive_.has(root_ + "constants.pkl"))
      throw FileError(name + ": a TorchScript archive, not a checkpoint of tensors");
    if (archive_.has(root_ + "byteorder") && archive_.read_text(root_ + "byteorder") != "little")
      throw FileError(name + ": the file is big-endian");
    return archive_.read(root_ + "data.pkl");
  }

  ZipArchive archive_;
  std::string root_;
  TorchPickle pickle_;
  const PickleValue* object_;
};

/// The leaves of a value. Hostile pickles may contain cycles, and share parts until they are
/// endless.
class Leaves {
 public:
  explicit Leaves(const TorchPickle& pickle) : pickle_(pickle) {}

  std::vector<TorchLeaf> of(const PickleValue& v) {
    std::vector<TorchLeaf> list;
    add(v, list, 0);
    return list;
  }

 private:
  static constexpr int max_depth = 32, max_values = 1 << 16;

  void add(const PickleValue& v, std::vector<TorchLeaf>& list, int depth) {
    if (depth > max_depth || ++values_ > max_values)
      pickle_.fail("its arguments are nested too deeply, or too many");
    const auto add_all = [&](size_t first, size_t step) {
      for (size_t i = first; i < v.items.size(); i += step) add(*v.items[i], list, depth + 1);
    };
    if (const PickleValue* tensor = pickle_.as_tensor(&v))
      list.emplace_back(pickle_.tensor_of(*tensor, "argument " + std::to_string(list.size())));
    else if (v.is(Kind::none))
      list.emplace_back();
    else if (v.is(Kind::boolean))
      list.emplace_back(v.integer != 0);
    else if (v.is(Kind::integer))
      list.emplace_back(v.integer);
    else if (v.is(Kind::real))
      list.emplace_back(v.real);
    else if (TorchPickle::is_text(v))
      list.emplace_back(v.text);
    else if (v.is(Kind::tuple) || v.is(Kind::list))
      add_all(0, 1);
    else if (v.is(Kind::dict))
      add_all(1, 2);
    else
      pickle_.fail("an argument that is neither a tensor nor a number, a text or a container");
  }

  const TorchPickle& pickle_;
  int values_ = 0;
};

}  // namespace

std::map<std::string, StoredTensor> parse_torch_checkpoint(std::span<const std::byte> file,
                                                           const std::string& name) {
  const File content(file, name);
  return content.pickle().tensors_of(content.object());
}

std::map<std::string, StoredTensor> parse_torch_subclass(std::span<const std::byte> file,
                                                         const std::string& name) {
  const File content(file, name, PickleReader::Objects::any);
  return content.pickle().parts_of_subclass(content.object());
}

TorchArguments parse_torch_arguments(std::span<const std::byte> file, const std::string& name) {
  const File content(file, name);
  const std::vector<PickleValue*>& parts = content.object()->items;
  if (!content.object()->is(Kind::tuple) || parts.size() != 2 || !parts[0]->is(Kind::tuple) ||
      !parts[1]->is(Kind::dict))
    content.pickle().fail("not the arguments of a call, (args, kwargs)");
  Leaves leaves(content.pickle());
  TorchArguments arguments{leaves.of(*parts[0]), {}};
  const std::vector<PickleValue*>& named = parts[1]->items;
  for (size_t i = 0; i + 1 < named.size(); i += 2) {
    if (!TorchPickle::is_text(*named[i]))
      content.pickle().fail("an argument whose name is no text");
    arguments.named.emplace_back(named[i]->text, leaves.of(*named[i + 1]));
  }
  return arguments;
}

}  // namespace taper::io
