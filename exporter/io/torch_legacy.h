// PyTorch checkpoints of the time before version 1.6: five pickles behind each other, then the raw
// storages.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// The tensors of a file written by `torch.save` before PyTorch 1.6 (or with
/// `_use_new_zipfile_serialization=False`), by name.
///
/// Takes the file's object if it is a dict of tensors; otherwise descends through the usual keys
/// `state_dict`, `model_state_dict`, `model`, `net`, `params`, `ema`. Entries that are no tensors
/// (epoch, accuracy) are left out. Strides are resolved to row-major; tensors that share a storage
/// get bytes of their own. `prefix` is cut off every name that begins with it ("module." of
/// DataParallel).
///
/// Executes nothing: see internal/pickle.h. Throws FileError for the newer zip form, for pickled
/// objects other than tensors in containers, for big-endian files and for damage.
ArrayMap read_torch_legacy(const std::filesystem::path& path, std::string_view prefix = "");

/// The same over bytes in memory; `name` stands in front of messages.
ArrayMap parse_torch_legacy(std::span<const std::byte> file, const std::string& name,
                            std::string_view prefix = "");

}  // namespace taper::io
