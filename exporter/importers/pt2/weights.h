// From a program's payloads to tensors.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/io/stored_tensor.h"

namespace taper::pt2 {

/// A tensor for each path, named after it. Dense ones lie where they are stored; paths that store
/// the same tensor share one, and paths that store different views of one storage are views of one
/// tensor, called "PATH.storage" after the first of them.
///
///   file  the memory in which `stored` lies; may be written, is kept alive by `owner`
std::map<std::string, eager::Tensor> make_tensors(
    const std::map<std::string, io::StoredTensor>& stored, std::span<const std::byte> file,
    const std::shared_ptr<const void>& owner);

}  // namespace taper::pt2
