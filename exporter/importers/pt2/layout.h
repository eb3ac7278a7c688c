// The layout of tensors in memory. PyTorch's results often keep the strides of their arguments, but
// Taper's results are row-major. So an operator that reads memory directly may find other elements.
#pragma once
#include <memory>
#include <set>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// The memory that a tensor refers to. All views of a tensor share one memory.
const std::shared_ptr<eager::Storage>& memory_of(const eager::Tensor& tensor);
/// A set of memories. It does not mistake new memory for old memory that had the same address.
using Memories = std::set<std::weak_ptr<eager::Storage>, std::owner_less<>>;

/// Throws ExportError if the strides of `tensor` differ from PyTorch's, which the file records in
/// `meta` under `name`. Strides that are no numbers are not compared.
void require_strides(const eager::Tensor& tensor, const std::string& name, const TensorMeta& meta);

}  // namespace taper::pt2
