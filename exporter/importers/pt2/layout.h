// Where tensors lie. PyTorch's results often keep the strides of their arguments, results here are
// row-major: what looks at memory may find something else there.
#pragma once
#include <memory>
#include <set>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// The memory that a tensor looks at, one for all views of a tensor.
const std::shared_ptr<eager::Storage>& memory_of(const eager::Tensor& tensor);
/// Memories, told apart also from others that come to lie where one of them was.
using Memories = std::set<std::weak_ptr<eager::Storage>, std::owner_less<>>;

/// Throws ExportError if `tensor`, which the file records as `meta` under `name`, has other strides
/// than PyTorch's. Strides that are no numbers are not compared.
void require_strides(const eager::Tensor& tensor, const std::string& name, const TensorMeta& meta);

}  // namespace taper::pt2
