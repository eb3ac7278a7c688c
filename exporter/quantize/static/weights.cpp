#include "taper/exporter/quantize/static/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/static/grid.h"

namespace taper::quantize {
namespace {

/// Says to which slice along an axis an element belongs.
class Slices {
 public:
  Slices(const std::vector<int64_t>& sizes, int axis) {
    if (axis < 0) return;
    count_ = static_cast<size_t>(sizes[static_cast<size_t>(axis)]);
    for (size_t d = static_cast<size_t>(axis) + 1; d < sizes.size(); ++d)
      inner_ *= static_cast<size_t>(sizes[d]);
  }
  size_t count() const { return count_; }
  size_t of(size_t element) const { return element / inner_ % count_; }

 private:
  size_t inner_ = 1, count_ = 1;
};

}  // namespace

IntegerWeight round_weight(const ir::Constant& weight, int axis, const StaticOptions& options,
                           const std::vector<float>& bounds) {
  const std::vector<float> elements = ir::tensor_of(weight.payload).to_vector<float>();
  const Slices slices(weight.payload->sizes, axis);
  const int highest = options.highest_weight();
  std::vector<float> most(slices.count(), 0.0f);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!std::isfinite(elements[i]))
      throw ExportError(weight.path +
                        " has an element that is NaN or infinite; it cannot be quantized");
    float& here = most[slices.of(i)];
    here = std::max(here, std::abs(elements[i]));
  }
  IntegerWeight rounded;
  rounded.axis = axis;
  for (size_t c = 0; c < most.size(); ++c) {
    const auto scale =
        static_cast<float>(symmetric_grid(most[c], options.least_weight_scale, highest).scale);
    rounded.scales.push_back(bounds.empty() ? scale : std::max(scale, bounds[c]));
  }
  std::vector<int8_t> integers(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    // As quantize_per_channel computes it.
    const float inverse = 1.0f / rounded.scales[slices.of(i)];
    integers[i] =
        static_cast<int8_t>(std::clamp(std::nearbyint(elements[i] * inverse),
                                       static_cast<float>(-highest), static_cast<float>(highest)));
  }
  rounded.integers = ir::Payload::from(integers, weight.payload->sizes);
  return rounded;
}

std::shared_ptr<const ir::Payload> values_of(const IntegerWeight& weight) {
  const Slices slices(weight.integers->sizes, weight.axis);
  const auto* integers = reinterpret_cast<const int8_t*>(weight.integers->bytes.get());
  std::vector<float> values(weight.integers->size_bytes);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(integers[i]) * weight.scales[slices.of(i)];
  return ir::Payload::from(values, weight.integers->sizes);
}

}  // namespace taper::quantize
