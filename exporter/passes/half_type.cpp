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
  stored.layout = HalfType(dtypes_of<T>::dtype).layout();
  return std::make_shared<const ir::Payload>(std::move(stored));
}

}  // namespace

bool read_in_halves(const target::Candidates& candidates, const ir::Node& node, size_t i,
                    const ir::Value& v, Layout layout) {
  const ir::Type& whole = ir::base_of(&v)->type;
  const bool shows_all = v.type.dtype == whole.dtype && proves_equal(v.type.numel(), whole.numel());
  const bool lies_right =
      candidates.strides(static_cast<int>(i)) == Strides::any || ir::is_dense(v.type);
  return shows_all && lies_right && candidates.read(node, i, layout);
}

std::shared_ptr<const ir::Payload> HalfType::convert(const ir::Payload& payload) const {
  return dtype_ == DType::f16 ? convert_to<Half>(payload, largest())
                              : convert_to<BFloat16>(payload, largest());
}

}  // namespace taper::passes
