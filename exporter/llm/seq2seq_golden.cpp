#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/golden_values.h"

namespace taper::llm {
namespace {

using Ids = std::vector<int64_t>;

constexpr size_t first_call = 14;  // tokens of `decode` that go in at once

class Comparison {
 public:
  Comparison(Seq2SeqRunner& runner, const io::SafeTensors& golden)
      : runner_(runner), golden_(golden) {}

  std::vector<Compared> run() {
    const char* source = golden_.has("input_features") ? "input_features" : "input_ids";
    if (!golden_.has(source) || !golden_.has("decoder_input_ids"))
      throw ExportError("the file of golden results has nothing to compare with");
    read(source);
    write();
    if (golden_.has("batch.logits")) batch();
    return results_;
  }

 private:
  void add(const Compared& compared) { results_.push_back(compared); }
  void read(const char* source) {
    const Seq2SeqRunner::Read result = runner_.encode(golden_.tensor(source));
    add(golden_.states("encoder_last_hidden_state", result.last));
    for (size_t i = 0; i < result.hidden.size(); ++i)
      add(golden_.states("encoder_hidden." + std::to_string(i), result.hidden[i]));
  }
  void write() {
    const Ids ids = golden_.ids("decoder_input_ids");
    add(golden_.logits("logits", runner_.logits(ids, 0, true)));
    std::vector<Tensor> hidden = runner_.hidden(ids);
    // the result of the last layer is not recorded, but that of the norm behind it
    if (hidden.size() >= 2) hidden.erase(hidden.end() - 2);
    for (size_t i = 0; i < hidden.size(); ++i)
      add(golden_.states("decoder_hidden." + std::to_string(i), hidden[i]));
    if (golden_.has("greedy.tokens")) {
      const size_t count = golden_.ids("greedy.tokens").size();
      add(golden_.tokens("greedy.tokens", greedy(runner_, golden_.ids("greedy.prompt"), count)));
    }
    if (golden_.has("decode.logits")) decode(ids);
  }
  void decode(const Ids& ids) {
    const size_t first = std::min(first_call, ids.size());
    Tensor last =
        runner_.logits({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first)}, 0, false);
    for (size_t i = first; i < ids.size(); ++i)
      last = runner_.logits({ids[i]}, static_cast<int64_t>(i), false);
    add(golden_.logits("decode.logits", last));
  }
  /// Each row alone, without its padding.
  void batch() {
    const Tensor source = golden_.tensor("batch.input_ids"),
                 mask = golden_.tensor("batch.attention_mask"),
                 ids = golden_.tensor("batch.decoder_input_ids"),
                 want = golden_.tensor("batch.logits");
    double most = 0;
    for (int64_t r = 0; r < source.size(0).value(); ++r) {
      const auto length = eager::sum(mask[r]).item<int64_t>();
      (void)runner_.encode(eager::narrow(source[r], 0, 0, length).unsqueeze(0));
      const Tensor got = runner_.logits(ids[r].to_vector<int64_t>(), 0, true);
      most = std::max(most, distance(got.to_vector<float>(), want[r].to_vector<float>()));
    }
    add({"batch.logits", most, logit_tolerance});
  }

  Seq2SeqRunner& runner_;
  const GoldenValues golden_;
  std::vector<Compared> results_;
};

Tensor at(int64_t start) { return row_of({start})[0]; }

}  // namespace

Seq2SeqRunner::Read EagerSeq2SeqRunner::encode(const Tensor& source) {
  const eager::NoGrad guard;
  const SourceEncoder::Result result = model_.encode(source);
  return {result.last, result.hidden};
}

Tensor EagerSeq2SeqRunner::logits(const Ids& ids, int64_t start, bool all) {
  const eager::NoGrad guard;
  DecoderOptions options;
  options.all_logits = all;
  return model_(row_of(ids), at(start), options).logits[0];
}

std::vector<Tensor> EagerSeq2SeqRunner::hidden(const Ids& ids) {
  const eager::NoGrad guard;
  DecoderOptions options;
  options.all_logits = options.keep_hidden = true;
  return model_(row_of(ids), at(0), options).hidden;
}

std::vector<Compared> compare_with_golden(Seq2SeqRunner& runner, const io::SafeTensors& golden) {
  return Comparison(runner, golden).run();
}

}  // namespace taper::llm
