#include "taper/exporter/passes/half_type.h"

#include <cmath>

namespace taper::passes {
namespace {

template <class T>
std::shared_ptr<const ir::Payload> convert_to(const ir::Payload& payload, float largest) {
  std::vector<T> halves;
  halves.reserve(payload.size_bytes / sizeof(float));
  for (const float x : f32_elements(payload)) {
    const T y(x);
    const bool overflows = std::isfinite(x) && !std::isfinite(float{y});
    halves.push_back(overflows ? T(std::copysign(largest, x)) : y);
  }
  ir::Payload stored = *ir::Payload::from(halves, payload.sizes);
  stored.dtype = DType::f32;
  stored.layout = dtypes_of<T>::dtype == DType::f16 ? Layout::dense_f16 : Layout::dense_bf16;
  return std::make_shared<const ir::Payload>(std::move(stored));
}

}  // namespace

std::shared_ptr<const ir::Payload> HalfType::convert(const ir::Payload& payload) const {
  return dtype_ == DType::f16 ? convert_to<Half>(payload, largest())
                              : convert_to<BFloat16>(payload, largest());
}

}  // namespace taper::passes
