// Makes tensors of a program's payloads.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/io/stored_tensor.h"

namespace taper::pt2 {

/// A tensor for each path, named after the path. A dense tensor stays where it is stored. Paths
/// that store the same tensor share one. Paths that store different views of one storage become
/// views of one tensor, which is called "PATH.storage" after the first of them.
///
///   file  the memory in which `stored` lies. It may be written, and `owner` keeps it alive
std::map<std::string, eager::Tensor> make_tensors(
    const std::map<std::string, io::StoredTensor>& stored, std::span<const std::byte> file,
    const std::shared_ptr<const void>& owner);

}  // namespace taper::pt2
