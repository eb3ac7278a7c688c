#include "taper/exporter/llm/golden.h"

#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/golden_values.h"

namespace taper::llm {
namespace {

using Ids = std::vector<int64_t>;

constexpr size_t first_call = 32;      // tokens of `decode` that go in at once
constexpr size_t prompt_of_gguf = 16;  // tokens of input_ids before a GGUF file's greedy ones

Tensor at(int64_t start) { return row_of({start})[0]; }

Ids slice(const Ids& ids, size_t first, size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(first),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

class Comparison {
 public:
  Comparison(Runner& runner, const io::SafeTensors& golden, const std::string& prefix)
      : runner_(runner), golden_(golden), prefix_(prefix) {}

  std::vector<Compared> run() {
    if (has("input_ids") && has(prefix_ + "logits")) whole("input_ids", prefix_ + "logits");
    if (has("text_only.logits")) whole("text_only.input_ids", "text_only.logits");
    if (has("long.logits")) whole("long.input_ids", "long.logits");
    if (prefix_.empty() && has("hidden.embed")) hidden();
    if (has("greedy.tokens"))
      continuation(ids("greedy.prompt"), "greedy.tokens");
    else if (has(prefix_ + "greedy"))
      continuation(slice(ids("input_ids"), 0, prompt_of_gguf), prefix_ + "greedy");
    if (has("decode.logits")) decode();
    if (has("batch.logits")) batch();
    if (results_.empty())
      throw ExportError(
          "the file of golden results has nothing to compare with" +
          (prefix_.empty() ? "" : " for weights of type " + prefix_.substr(0, prefix_.size() - 1)));
    return results_;
  }

 private:
  bool has(const std::string& name) const { return golden_.has(name); }
  Ids ids(const std::string& name) const { return golden_.ids(name); }
  std::span<const float> floats(const std::string& name) const { return golden_.floats(name); }

  void whole(const std::string& input, const std::string& name) {
    results_.push_back(golden_.logits(name, runner_.logits(ids(input), 0, true)));
  }
  void hidden() {
    const std::vector<Tensor> got = runner_.hidden(ids("input_ids"));
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string name = i == 0                ? "hidden.embed"
                               : i == got.size() - 1 ? "hidden.final"
                                                     : "hidden.layer_" + std::to_string(i - 1);
      if (has(name)) results_.push_back(golden_.states(name, got[i]));
    }
  }
  void continuation(const Ids& prompt, const std::string& name) {
    results_.push_back(golden_.tokens(name, greedy(runner_, prompt, ids(name).size())));
  }
  void decode() {
    const Ids all = ids("input_ids");
    const size_t first = std::min(first_call, all.size());
    Tensor last = runner_.logits(slice(all, 0, first), 0, false);
    for (size_t i = first; i < all.size(); ++i)
      last = runner_.logits({all[i]}, static_cast<int64_t>(i), false);
    results_.push_back(golden_.logits("decode.logits", last));
  }
  void batch() {
    const auto [rows, n] = golden_.rows("batch.input_ids");
    const Ids mask = ids("batch.attention_mask"), all = ids("batch.input_ids");
    const std::span<const float> want = floats("batch.logits");
    const size_t vocabulary = want.size() / std::max<size_t>(rows * n, 1);
    double most = 0;
    for (size_t r = 0; r < rows; ++r) {
      Ids tokens;
      std::vector<float> wanted;
      for (size_t i = r * n; i < (r + 1) * n; ++i) {
        if (mask.at(i) == 0) continue;
        tokens.push_back(all[i]);
        const auto logits = want.subspan(i * vocabulary, vocabulary);
        wanted.insert(wanted.end(), logits.begin(), logits.end());
      }
      most = std::max(most, distance(runner_.logits(tokens, 0, true).to_vector<float>(), wanted));
    }
    results_.push_back({"batch.logits", most, logit_tolerance});
  }

  Runner& runner_;
  const GoldenValues golden_;
  const std::string prefix_;
  std::vector<Compared> results_;
};

}  // namespace

Tensor row_of(const Ids& ids) { return Tensor::from(ids, {1, static_cast<int64_t>(ids.size())}); }

Tensor EagerRunner::logits(const Ids& ids, int64_t start, bool all) {
  const eager::NoGrad guard;
  return decoder_(row_of(ids), at(start), DecoderOptions{.all_logits = all}).logits[0];
}

std::vector<Tensor> EagerRunner::hidden(const Ids& ids) {
  const eager::NoGrad guard;
  return decoder_(row_of(ids), at(0), DecoderOptions{.all_logits = true, .keep_hidden = true})
      .hidden;
}

Ids greedy(Runner& runner, const Ids& prompt, size_t count) {
  Ids tokens;
  Ids next = prompt;
  auto position = int64_t{0};
  while (tokens.size() < count) {
    const std::vector<float> logits = runner.logits(next, position, false).to_vector<float>();
    position += static_cast<int64_t>(next.size());
    next = {std::ranges::max_element(logits) - logits.begin()};
    tokens.push_back(next[0]);
  }
  return tokens;
}

std::vector<Compared> compare_with_golden(Runner& runner, const io::SafeTensors& golden,
                                          const std::string& prefix) {
  return Comparison(runner, golden, prefix).run();
}

io::SafeTensors results_of_context(const Config& config, const io::SafeTensors& golden) {
  io::SafeTensors results = golden;
  if (config.rotary.long_frequencies.empty()) return results;
  const bool is_long = config.rotary.is_long(config.capacity);
  std::erase_if(results.tensors,
                [&](const auto& tensor) { return tensor.first.starts_with("long.") != is_long; });
  return results;
}

}  // namespace taper::llm
