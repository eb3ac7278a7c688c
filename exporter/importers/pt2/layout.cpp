#include "taper/exporter/importers/pt2/layout.h"

namespace taper::pt2 {

const std::shared_ptr<eager::Storage>& memory_of(const eager::Tensor& tensor) {
  const eager::Tensor& base = tensor.impl()->base;
  return (base.defined() ? base : tensor).impl()->storage;
}

void require_strides(const eager::Tensor& tensor, const std::string& name, const TensorMeta& meta) {
  const TensorType<Dim> type = tensor.type();
  for (size_t d = 0; d < meta.strides.size() && d < static_cast<size_t>(type.rank); ++d) {
    const auto* recorded = std::get_if<int64_t>(&meta.strides[d]);
    // the stride of a size 1 has no meaning
    const bool counts = !proves_equal(type.sizes[d], Dim(1));
    if (recorded != nullptr && counts && proves_different(type.strides[d], Dim(*recorded)))
      throw ExportError("as_strided: dimension " + std::to_string(d) + " of " + name +
                        " has the stride " + std::to_string(*recorded) + " in PyTorch and " +
                        type.strides[d].to_string() +
                        " here, where results are row-major, so it would take other elements; "
                        "call contiguous() before it, or use view, select, slice");
  }
}

}  // namespace taper::pt2
