// PyTorch checkpoints of version 1.6 and later: a ZIP archive with one pickle and a record for each
// storage. (Older ones: torch_legacy.h.)
#pragma once
#include <map>
#include <span>
#include <string>

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

}  // namespace taper::io
