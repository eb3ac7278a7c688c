#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/golden_values.h"

namespace taper::llm {
namespace {

using namespace eager;

constexpr double embedding_tolerance = 1e-5;

class Comparison {
 public:
  Comparison(Encoder& encoder, const io::SafeTensors& golden)
      : encoder_(encoder), golden_(golden) {}

  std::vector<Compared> run() {
    if (has("input_ids")) whole();
    if (has("batch.input_ids")) batch();
    if (results_.empty())
      throw ExportError("the file of golden results has nothing to compare with");
    return results_;
  }

 private:
  bool has(const std::string& name) const { return golden_.has(name); }
  Tensor tensor(const std::string& name) const { return golden_.tensor(name); }

  void whole() {
    const Tensor ids = tensor("input_ids");
    const Tensor types = has("token_type_ids") ? tensor("token_type_ids") : Tensor();
    const Encoder::Result result = encoder_(ids, ones_like(ids), types);
    compare("last_hidden_state", result.last);
    for (size_t i = 0; i < result.hidden.size(); ++i)
      compare(i == 0 ? "hidden.embed" : "hidden.layer_" + std::to_string(i - 1), result.hidden[i]);
    if (has("pooler_output")) compare("pooler_output", encoder_.pooled(result.last));
  }
  void batch() {
    const Tensor mask = tensor("batch.attention_mask");
    const Tensor last = encoder_(tensor("batch.input_ids"), mask).last;
    // padded places may hold anything
    const Tensor seen = mask.to(DType::f32).unsqueeze(-1);
    if (has("batch.last_hidden_state"))
      results_.push_back(compare_states("batch.last_hidden_state", last * seen,
                                        tensor("batch.last_hidden_state") * seen));
    if (has("batch.mean_pooled_normalized"))
      results_.push_back(golden_.states("batch.mean_pooled_normalized", mean_embedding(last, mask),
                                        embedding_tolerance));
  }
  void compare(const std::string& name, const Tensor& got) {
    if (has(name)) results_.push_back(golden_.states(name, got));
  }

  Encoder& encoder_;
  const GoldenValues golden_;
  std::vector<Compared> results_;
};

}  // namespace

std::vector<Compared> compare_with_golden(Encoder& encoder, const io::SafeTensors& golden) {
  const NoGrad guard;
  return Comparison(encoder, golden).run();
}

}  // namespace taper::llm
