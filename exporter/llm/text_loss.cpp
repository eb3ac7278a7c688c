#include "taper/exporter/llm/text_loss.h"

#include <algorithm>

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

Tensor text_loss(Decoder& model, const Tensor& ids, const Tensor& next,
                 const TextLossOptions& options) {
  const Tensor states = model.states_of_texts(ids, options.checkpoints);
  const int64_t count = ids.size(0).value() * ids.size(1).value(),
                part = std::max<int64_t>(options.tokens_at_once, 1);
  const Tensor rows = states.reshape({count, model.config.hidden}), targets = next.reshape({count});
  Tensor sum;
  for (int64_t first = 0; first < count; first += part) {
    const int64_t size = std::min(part, count - first);
    const Tensor wanted = narrow(targets, 0, first, size);
    const auto loss = [&model, wanted](const Tensor& x) {
      return cross_entropy(model.logits(x), wanted, {}, Reduction::sum);
    };
    const Tensor x = narrow(rows, 0, first, size);
    const Tensor of_part = options.checkpoints ? checkpoint(loss, x) : loss(x);
    sum = sum.defined() ? sum + of_part : of_part;
  }
  return sum / eager::sum(ne(targets, -100).to(DType::f32));
}

}  // namespace taper::llm
