#include "taper/exporter/quantize/rounded_weights.h"

#include <algorithm>
#include <map>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantize {

void RoundedWeights::put(const Weight& w, const ir::Payload& blocks) {
  const eager::NoGrad guard;
  const int64_t rows = w.rows(), padded = blocks.sizes.back();
  std::vector<float> values(static_cast<size_t>(rows * padded));
  quantized::dequantize(blocks.layout, blocks.bytes.get(), static_cast<index_t>(values.size()),
                        values.data());
  eager::Tensor t = eager::Tensor::from(values, {rows, padded}).slice(1, 0, w.depth()).contiguous();
  if (w.matrices > 0) t = t.reshape({w.matrices, rows / w.matrices, w.depth()});
  if (w.is_transposed) t = t.transpose(-2, -1).contiguous();
  const std::shared_ptr<const ir::Payload> old = w.constant->payload;
  t = t.reshape({old->sizes.begin(), old->sizes.end()}).to(old->dtype);
  originals_.emplace_back(w.constant, old);
  w.constant->payload = ir::payload_of(t);
}

void RoundedWeights::restore() {
  for (const auto& [constant, payload] : originals_) constant->payload = payload;
  originals_.clear();
}

void sort_by_uses(const ir::Graph& graph, std::vector<Weight>& weights) {
  std::map<const ir::Node*, size_t> places;
  for (const ir::Node& node : graph.nodes()) places.emplace(&node, places.size());
  const auto place_of = [&](const ir::Node* node) {
    const auto at = places.find(node);
    return at == places.end() ? places.size() : at->second;
  };
  std::ranges::stable_sort(weights, {}, [&](const Weight& w) {
    size_t first = places.size();
    for (const Reader& r : w.readers) first = std::min(first, place_of(r.node));
    if (w.readers.empty())  // that of a convolution
      for (const ir::Node* user : w.constant->value->users) first = std::min(first, place_of(user));
    return first;
  });
}

}  // namespace taper::quantize
