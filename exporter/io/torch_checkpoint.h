// PyTorch checkpoints of version 1.6 and later: a ZIP archive with one pickle and a record for each
// storage. (Older ones: torch_legacy.h.)
#pragma once
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "taper/exporter/io/stored_tensor.h"

namespace taper::io {

/// The tensors of a file written by `torch.save`, by name, as they lie in the file: the bytes are
/// `file`'s own. An empty dict gives none; entries that are no tensors are left out. Takes the
/// file's object or one of its usual parts, as read_torch_legacy does.
///
/// Executes nothing: see internal/pickle.h. Throws FileError for another kind of archive, for
/// pickled objects other than tensors in containers, for big-endian files and for damage; `name`
/// stands in front of messages.
std::map<std::string, StoredTensor> parse_torch_checkpoint(std::span<const std::byte> file,
                                                           const std::string& name);

/// The plain tensors inside of a tensor subclass that `torch.save` wrote, such as torchao's
/// weights: "qdata", "scale". Those of a subclass inside of it are called "outer.inner". Executes
/// nothing; of other objects it reads no more than where they end. Throws as parse_torch_checkpoint
/// does.
std::map<std::string, StoredTensor> parse_torch_subclass(std::span<const std::byte> file,
                                                         const std::string& name);

/// An argument that holds no others: None, a number, a text or a tensor.
using TorchLeaf = std::variant<std::monostate, bool, int64_t, double, std::string, StoredTensor>;

/// The arguments of a call: tuples, lists and dicts taken apart, in the order of torch's pytree.
struct TorchArguments {
  std::vector<TorchLeaf> positional;
  std::vector<std::pair<std::string, std::vector<TorchLeaf>>> named;
};
/// What `torch.save((args, kwargs))` wrote. Executes nothing and throws as parse_torch_checkpoint
/// does.
TorchArguments parse_torch_arguments(std::span<const std::byte> file, const std::string& name);

}  // namespace taper::io
