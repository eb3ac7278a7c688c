#include "taper/exporter/llm/golden.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"

namespace taper::llm {
namespace {

using Ids = std::vector<int64_t>;

constexpr double logit_tolerance = 2e-4, hidden_tolerance = 1e-4;
constexpr size_t first_call = 32;      // tokens of `decode` that go in at once
constexpr size_t prompt_of_gguf = 16;  // tokens of input_ids before a GGUF file's greedy ones

Tensor row(const Ids& ids) { return Tensor::from(ids, {1, static_cast<int64_t>(ids.size())}); }
Tensor at(int64_t start) { return Tensor::from(std::vector<int64_t>{start}, {1}); }

Ids slice(const Ids& ids, size_t first, size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(first),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Not a number counts as infinitely far.
double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}

double largest(std::span<const float> a) {
  double most = 0;
  for (const float x : a) most = std::max(most, std::abs(double{x}));
  return most;
}

class Comparison {
 public:
  Comparison(Runner& runner, const io::SafeTensors& golden, const std::string& prefix)
      : runner_(runner), golden_(golden), prefix_(prefix) {}

  std::vector<Compared> run() {
    if (has("input_ids") && has(prefix_ + "logits")) whole("input_ids", prefix_ + "logits");
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
  bool has(const std::string& name) const { return golden_.tensors.contains(name); }
  const io::Array& array(const std::string& name, DType dtype) const {
    const io::Array& a = golden_.at(name);
    if (a.dtype != dtype)
      throw ExportError("golden results: " + name + " is " + a.describe() + ", not " +
                        name_of(dtype));
    return a;
  }
  Ids ids(const std::string& name) const {
    const auto all = array(name, DType::i64).values<int64_t>();
    return {all.begin(), all.end()};
  }
  std::span<const float> floats(const std::string& name) const {
    return array(name, DType::f32).values<float>();
  }
  void add(const std::string& name, double difference, double tolerance) {
    results_.push_back({name, difference, tolerance});
  }

  void whole(const std::string& input, const std::string& name) {
    const std::vector<float> got = runner_.logits(ids(input), 0, true).to_vector<float>();
    add(name, distance(got, floats(name)), logit_tolerance);
  }
  void hidden() {
    const std::vector<Tensor> got = runner_.hidden(ids("input_ids"));
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string name = i == 0                ? "hidden.embed"
                               : i == got.size() - 1 ? "hidden.final"
                                                     : "hidden.layer_" + std::to_string(i - 1);
      const std::span<const float> want = floats(name);
      add(name, distance(got[i].to_vector<float>(), want), hidden_tolerance * largest(want));
    }
  }
  void continuation(const Ids& prompt, const std::string& name) {
    const Ids want = ids(name), got = greedy(runner_, prompt, want.size());
    double wrong = 0;
    for (size_t i = 0; i < want.size(); ++i) wrong += got[i] != want[i];
    add(name, wrong, 0);
  }
  void decode() {
    const Ids all = ids("input_ids");
    const size_t first = std::min(first_call, all.size());
    Tensor last = runner_.logits(slice(all, 0, first), 0, false);
    for (size_t i = first; i < all.size(); ++i)
      last = runner_.logits({all[i]}, static_cast<int64_t>(i), false);
    add("decode.logits", distance(last.to_vector<float>(), floats("decode.logits")),
        logit_tolerance);
  }
  void batch() {
    const io::Array& input = array("batch.input_ids", DType::i64);
    const auto rows = static_cast<size_t>(input.sizes.at(0)),
               n = static_cast<size_t>(input.sizes.at(1));
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
    add("batch.logits", most, logit_tolerance);
  }

  Runner& runner_;
  const io::SafeTensors& golden_;
  const std::string prefix_;
  std::vector<Compared> results_;
};

}  // namespace

Tensor EagerRunner::logits(const Ids& ids, int64_t start, bool all) {
  const eager::NoGrad guard;
  return decoder_(row(ids), at(start), DecoderOptions{.all_logits = all}).logits[0];
}

std::vector<Tensor> EagerRunner::hidden(const Ids& ids) {
  const eager::NoGrad guard;
  return decoder_(row(ids), at(0), DecoderOptions{.all_logits = true, .keep_hidden = true}).hidden;
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

}  // namespace taper::llm
