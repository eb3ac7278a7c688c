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
  return ir::Payload::from(halves, payload.sizes);
}

}  // namespace

bool HalfType::is_too_large(float x) const { return std::isfinite(x) && std::fabs(x) > largest(); }

bool HalfType::is_too_small(float x) const {
  return x != 0 && (dtype_ == DType::f16 ? float{Half(x)} : float{BFloat16(x)}) == 0;
}

std::shared_ptr<const ir::Payload> HalfType::convert(const ir::Payload& payload) const {
  return dtype_ == DType::f16 ? convert_to<Half>(payload, largest())
                              : convert_to<BFloat16>(payload, largest());
}

}  // namespace taper::passes
