#include "taper/exporter/io/torch_checkpoint.h"

#include "taper/exporter/io/internal/torch_pickle.h"
#include "taper/exporter/io/zip.h"

namespace taper::io {

std::map<std::string, StoredTensor> parse_torch_checkpoint(std::span<const std::byte> file,
                                                           const std::string& name) {
  const ZipArchive archive(file, name);
  if (archive.records().empty()) throw FileError(name + ": an empty archive");
  const std::string first = archive.records().begin()->first,
                    root = first.substr(0, first.find('/') + 1);
  if (!archive.has(root + "data.pkl"))
    throw FileError(name + ": not a PyTorch checkpoint: it has no record data.pkl");
  if (archive.has(root + "constants.pkl"))
    throw FileError(name + ": a TorchScript archive, not a checkpoint of tensors");
  if (archive.has(root + "byteorder") && archive.read_text(root + "byteorder") != "little")
    throw FileError(name + ": the file is big-endian");

  internal::TorchPickle pickle(archive.read(root + "data.pkl"), name);
  const internal::PickleValue* object = pickle.reader().next();
  for (auto& [key, storage] : pickle.collect_storages())
    storage.bytes = archive.read(root + "data/" + key);
  return pickle.tensors_of(object);
}

}  // namespace taper::io
