#include "taper/exporter/llm/step.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

namespace {

/// One number for each feature: each frequency belongs to two.
Tensor by_feature(const std::vector<float>& frequencies, bool interleaved, const Tensor& factors) {
  if (frequencies.empty()) return {};
  Tensor f = Tensor::from(frequencies, {static_cast<int64_t>(frequencies.size())});
  if (factors.defined()) f = f / factors;
  return interleaved ? repeat_interleave(f, 2, 0) : cat({f, f});
}

}  // namespace

RotaryTable::RotaryTable(const Rotary& rotary, const Tensor& factors, int64_t capacity)
    : rotary_(rotary),
      frequencies_(
          by_feature(rotary.is_long(capacity) ? rotary.long_frequencies : rotary.frequencies,
                     rotary.interleaved, factors)) {}

Rotation RotaryTable::at(const Tensor& positions) const {
  if (!frequencies_.defined()) return {};
  const Tensor angles = (positions.to(DType::f32).unsqueeze(-1) * frequencies_).unsqueeze(1);
  Rotation r{cos(angles), sin(angles), rotary_.interleaved};
  if (rotary_.scaling != 1) r.cos = r.cos * rotary_.scaling, r.sin = r.sin * rotary_.scaling;
  return r;
}

Tensor rotate(const Tensor& x, const Rotation& r) {
  if (!r.defined()) return x;
  const int64_t turned = r.cos.size(-1).value(), features = x.size(-1).value();
  if (turned == features) return rotary_embedding(x, r.cos, r.sin, r.interleaved);
  const Tensor first = rotary_embedding(narrow(x, -1, 0, turned), r.cos, r.sin, r.interleaved);
  return cat({first, narrow(x, -1, turned, features - turned)}, -1);
}

Tensor rows_of(const Tensor& state, const Step& step) {
  return step.batch.defined() ? index_select(state, 0, step.batch) : state;
}

Tensor kept(const Tensor& state, const Step& step) {
  if (step.is_whole) {
    Dims sizes = state.sizes();
    sizes[0] = step.start.size(0);
    return zeros(sizes, state.dtype());
  }
  Tensor goes_on = ne(step.start, 0).to(state.dtype());
  while (goes_on.rank() < state.rank()) goes_on = goes_on.unsqueeze(-1);
  return rows_of(state, step) * goes_on;
}

void keep(Tensor& state, const Tensor& rows, const Step& step) {
  if (step.is_whole) return;
  state.copy_(step.batch.defined() ? index_copy(state, 0, step.batch, rows) : rows);
}

}  // namespace taper::llm
