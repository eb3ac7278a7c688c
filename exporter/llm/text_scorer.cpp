#include "taper/exporter/llm/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_model.h"
#include "taper/exporter/llm/tokenizer_file.h"

namespace taper::llm {
namespace {

constexpr int64_t most_logits = 64;  // those of a vocabulary of 128k take 34 MB

/// log softmax(row)[id]
double log_probability(std::span<const float> row, TokenId id) {
  const double peak = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(x - peak);
  return row[static_cast<size_t>(id)] - peak - std::log(sum);
}

}  // namespace

struct TextScorer::Parts {
  virtual ~Parts() = default;
  /// The logits behind each of `ids`, one row after the other; they begin at position `start`.
  virtual std::span<const float> logits(const std::vector<TokenId>& ids, int64_t start) = 0;

  std::string path;
  std::optional<Tokenizer> tokenizer;
  int64_t window = 0;
  int64_t chunk = most_logits;  ///< tokens of a call
  int64_t vocabulary = 0;       ///< 0: the program checks the tokens
};

namespace {

void begin_stage(const TextScorerOptions& options, const char* what) {
  if (options.stage) options.stage(what);
}

/// A model's file, which becomes a program in memory.
struct Traced : TextScorer::Parts {
  Traced(const std::string& file, const TextScorerOptions& options) {
    begin_stage(options, "loading");
    tokenizer = read_tokenizer(file);
    LoadOptions load;
    load.most_capacity = options.window, load.cache = options.cache_type;
    load.lora = options.lora;
    const Model model = llm::load(file, load);
    window = model.config.capacity, vocabulary = model.config.vocabulary;
    begin_stage(options, "tracing");
    Exporter exporter;
    add_methods(exporter, *model.decoder, {.chunk = most_logits, .all_logits = true});
    ExportOptions written;
    written.exact = options.exact, written.quiet = true, written.debug = false;
    written.stage = options.stage;
    runner = std::make_unique<ProgramRunner>(exporter.write(written), options.threads);
  }
  std::span<const float> logits(const std::vector<TokenId>& ids, int64_t start) override {
    last = runner->logits({ids.begin(), ids.end()}, start, true);
    return {last.data<float>(), static_cast<size_t>(last.numel().value())};
  }

  std::unique_ptr<ProgramRunner> runner;
  Tensor last;
};

/// A program that `taper export` wrote.
struct Exported : TextScorer::Parts {
  Exported(const std::string& file, const TextScorerOptions& options)
      : model(load_text_model(file, {.exact = options.exact,
                                     .lora = lora_of(options),
                                     .cache_type = options.cache_type,
                                     .threads = options.threads})),
        sequence(made(file, model)) {
    tokenizer = model.tokenizer(), window = std::min(options.window, model.context());
    // one token at a time where the program gives the logits of the last one alone
    chunk = std::clamp<int64_t>(sequence.all_logits_chunk(), 1, most_logits);
  }
  std::span<const float> logits(const std::vector<TokenId>& ids, int64_t start) override {
    sequence.rewind(start);
    const Span<const TokenId> given(ids.data(), static_cast<index_t>(ids.size()));
    const Result<Span<float>> all =
        model.has_all_logits() ? sequence.append_all(given) : sequence.append(given);
    if (!all.ok()) throw ExportError(path + ": " + sequence.message());
    return {all.value().data(), static_cast<size_t>(all.value().size())};
  }
  static std::vector<std::string> lora_of(const TextScorerOptions& options) {
    return options.lora.empty() ? std::vector<std::string>() : std::vector{options.lora};
  }
  static Sequence made(const std::string& file, const LanguageModel& model) {
    std::string why;
    Result<Sequence> sequence = Sequence::create(model, &why);
    if (!sequence.ok()) throw ExportError(file + ": " + why);
    return std::move(sequence.value());
  }

  LanguageModel model;
  Sequence sequence;
};

}  // namespace

TextScorer::TextScorer(const std::string& path, const TextScorerOptions& options) {
  if (is_language_model(path)) {
    parts_ = std::make_unique<Traced>(path, options);
  } else {
    begin_stage(options, "loading");
    parts_ = std::make_unique<Exported>(path, options);
  }
  parts_->path = path;
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
    if (id < 0 || (p.vocabulary > 0 && id >= p.vocabulary))
      throw ExportError(p.path + ": the tokenizer gives the token " + std::to_string(id) +
                        ", but the model has a vocabulary of " + std::to_string(p.vocabulary));
  std::vector<double> scores;
  for (int64_t start = 0; start + 1 < count; start += p.chunk) {
    const int64_t end = std::min(start + p.chunk, count - 1);  // the last token predicts nothing
    const std::span<const float> logits = p.logits({ids.begin() + start, ids.begin() + end}, start);
    const size_t size = logits.size() / static_cast<size_t>(end - start);
    for (int64_t i = start; i < end; ++i) {
      const TokenId next = ids[static_cast<size_t>(i + 1)];
      if (static_cast<size_t>(next) >= size)
        throw ExportError(p.path + ": the token " + std::to_string(next) +
                          " is outside its vocabulary of " + std::to_string(size));
      scores.push_back(
          log_probability(logits.subspan(static_cast<size_t>(i - start) * size, size), next));
    }
  }
  return scores;
}

}  // namespace taper::llm
