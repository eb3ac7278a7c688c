#include "taper/exporter/llm/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/tokenizer_file.h"

namespace taper::llm {
namespace {

constexpr int64_t chunk = 64;  // the logits of 64 tokens of a vocabulary of 128k take 34 MB

/// log softmax(row)[id]
double log_probability(const float* row, int64_t size, TokenId id) {
  const double peak = *std::max_element(row, row + size);
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += std::exp(row[i] - peak);
  return row[id] - peak - std::log(sum);
}

}  // namespace

struct TextScorer::Parts {
  std::string path;
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<ProgramRunner> runner;
  int64_t window = 0, vocabulary = 0;
};

TextScorer::TextScorer(const std::string& path, const TextScorerOptions& options)
    : parts_(std::make_unique<Parts>()) {
  const auto stage = [&](const char* what) {
    if (options.stage) options.stage(what);
  };
  Parts& p = *parts_;
  p.path = path;
  stage("loading");
  p.tokenizer = read_tokenizer(path);
  LoadOptions load;
  load.most_capacity = options.window;
  const Model model = llm::load(path, load);
  p.window = model.config.capacity, p.vocabulary = model.config.vocabulary;
  stage("tracing");
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = chunk, .all_logits = true});
  ExportOptions written;
  written.exact = options.exact, written.quiet = true, written.debug = false;
  written.stage = options.stage;
  p.runner = std::make_unique<ProgramRunner>(exporter.write(written), options.threads);
}
TextScorer::~TextScorer() = default;

const Tokenizer& TextScorer::tokenizer() const { return *parts_->tokenizer; }
int64_t TextScorer::window() const { return parts_->window; }

std::vector<double> TextScorer::log_probabilities(const std::vector<TokenId>& ids) {
  Parts& p = *parts_;
  const auto count = static_cast<int64_t>(ids.size());
  if (count > p.window)
    throw ExportError(p.path + ": " + std::to_string(count) +
                      " tokens do not fit into a window of " + std::to_string(p.window));
  for (const TokenId id : ids)
    if (id < 0 || id >= p.vocabulary)
      throw ExportError(p.path + ": the tokenizer gives the token " + std::to_string(id) +
                        ", but the model has a vocabulary of " + std::to_string(p.vocabulary));
  std::vector<double> scores;
  for (int64_t start = 0; start + 1 < count; start += chunk) {
    const int64_t end = std::min(start + chunk, count - 1);  // the last token predicts nothing
    const Tensor logits = p.runner->logits({ids.begin() + start, ids.begin() + end}, start, true);
    for (int64_t i = start; i < end; ++i)
      scores.push_back(log_probability(logits.data<float>() + (i - start) * p.vocabulary,
                                       p.vocabulary, ids[static_cast<size_t>(i + 1)]));
  }
  return scores;
}

}  // namespace taper::llm
