#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/llm/text_scorer.h"

namespace taper::cli {
namespace {

struct EvalArguments {
  std::string model, text, choices, lora, cache_dtype = "f32";
  int64_t window = 512, stride = 0, tokens = 0;
  bool exact = false, json = false;
};

using Ids = std::vector<llm::TokenId>;

Ids plain_ids(const llm::Tokenizer& tokenizer, const std::string& text) {
  llm::EncodeOptions plain;
  plain.add_special_tokens = false;  // texts contain those that they mean, such as <|endoftext|>
  return tokenizer.encode(text, plain);
}

// ---- perplexity

struct Perplexity {
  double value = 0;
  size_t tokens = 0;
};

/// exp(-mean log p) over all tokens but the first. Windows that overlap give a token more context:
/// each token counts once, in the first window that has it.
Perplexity perplexity(llm::TextScorer& scorer, const Ids& ids, size_t stride) {
  const auto window = static_cast<size_t>(scorer.window());
  double sum = 0;
  size_t counted = 0, known = 0;  // tokens before `known` were in a window
  for (size_t begin = 0; known < ids.size(); begin += stride) {
    const size_t end = std::min(begin + window, ids.size());
    const std::vector<double> scores =
        scorer.log_probabilities({ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                  ids.begin() + static_cast<std::ptrdiff_t>(end)});
    for (size_t i = std::max(known, begin + 1); i < end; ++i)
      sum += scores[i - begin - 1], ++counted;
    known = end;
  }
  return {std::exp(-sum / static_cast<double>(counted)), counted};
}

void print_perplexity(llm::TextScorer& scorer, const EvalArguments& a, std::ostream& out) {
  Ids ids = plain_ids(scorer.tokenizer(), text_of_file(a.text));
  if (a.tokens > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(a.tokens)));
  if (ids.size() < 2) throw ExportError(a.text + ": a text needs at least two tokens");
  const int64_t stride = a.stride > 0 ? std::min(a.stride, scorer.window()) : scorer.window();
  const Perplexity p = perplexity(scorer, ids, static_cast<size_t>(stride));
  if (a.json)
    out << nlohmann::json({{"perplexity", p.value}, {"tokens", p.tokens}}).dump() << '\n';
  else
    out << "perplexity " << std::fixed << std::setprecision(3) << p.value << " of " << p.tokens
        << " tokens, in windows of " << scorer.window() << '\n';
}

// ---- multiple choice

struct Question {
  std::string prompt;
  std::vector<std::string> choices;
  size_t answer = 0;
};

std::vector<Question> read_questions(const std::string& path) {
  std::vector<Question> questions;
  try {
    for (const nlohmann::json& item : nlohmann::json::parse(text_of_file(path)))
      questions.push_back({item.at("prompt").get<std::string>(),
                           item.at("choices").get<std::vector<std::string>>(),
                           item.at("answer").get<size_t>()});
  } catch (const nlohmann::json::exception& e) {
    throw ExportError(
        path + ": it must be a list of objects with `prompt`, `choices` and `answer`: " + e.what());
  }
  for (const Question& q : questions)
    if (q.answer >= q.choices.size())
      throw ExportError(path + ": an `answer` is the index of one of its `choices`");
  if (questions.empty()) throw ExportError(path + ": it has no questions");
  return questions;
}

/// The logarithm of the probability of `choice` behind the prompt. The text is cut into tokens as a
/// whole, as EleutherAI's evaluation harness does it.
double likelihood(llm::TextScorer& scorer, const std::string& prompt, const std::string& choice) {
  const size_t before = scorer.tokenizer().encode(prompt).size();
  const Ids all = scorer.tokenizer().encode(prompt + choice);
  const std::vector<double> scores = scorer.log_probabilities(all);
  const size_t first = std::min(std::max<size_t>(before, 1) - 1, scores.size());
  return std::accumulate(scores.begin() + static_cast<std::ptrdiff_t>(first), scores.end(), 0.0);
}

void print_accuracy(llm::TextScorer& scorer, const EvalArguments& a, std::ostream& out) {
  const std::vector<Question> questions = read_questions(a.choices);
  size_t right = 0, right_by_length = 0;
  for (const Question& q : questions) {
    std::vector<double> whole, by_byte;
    for (const std::string& choice : q.choices) {
      whole.push_back(likelihood(scorer, q.prompt, choice));
      by_byte.push_back(whole.back() / static_cast<double>(std::max<size_t>(choice.size(), 1)));
    }
    const auto best = [](const std::vector<double>& v) {
      return static_cast<size_t>(std::max_element(v.begin(), v.end()) - v.begin());
    };
    right += best(whole) == q.answer, right_by_length += best(by_byte) == q.answer;
  }
  const auto part = [&](size_t n) {
    return static_cast<double>(n) / static_cast<double>(questions.size());
  };
  if (a.json)
    out << nlohmann::json({{"questions", questions.size()},
                           {"accuracy", part(right)},
                           {"accuracy_by_length", part(right_by_length)}})
               .dump()
        << '\n';
  else
    out << "accuracy " << std::fixed << std::setprecision(3) << part(right) << ": " << right
        << " of " << questions.size() << "; likelihood per byte: " << part(right_by_length) << '\n';
}

void eval(const EvalArguments& a, std::ostream& out) {
  if (a.text.empty() == a.choices.empty())
    throw UsageError("give either --text FILE or --choices FILE.json");
  if (a.window < 2) throw UsageError("--window", "it must be at least 2");
  if (a.stride < 0) throw UsageError("--stride", "it must not be negative");
  llm::TextScorerOptions options;
  options.exact = a.exact, options.window = a.window, options.threads = eager::threads();
  options.cache_type = llm::cache_type_named(a.cache_dtype);
  for (const std::string& adapter : ModelChoice::one_lora(a.lora)) options.lora = adapter;
  std::unique_ptr<llm::TextScorer> scorer;
  {
    Stages stages(5);
    options.stage = [&](const std::string& stage) { stages.begin(stage); };
    scorer = std::make_unique<llm::TextScorer>(a.model, options);
  }
  a.text.empty() ? print_accuracy(*scorer, a, out) : print_perplexity(*scorer, a, out);
}

}  // namespace

void add_eval_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<EvalArguments>();
  EvalArguments& a = *arguments;
  Command command = line.add("eval", "Measures how likely a language model finds texts.");
  command
      .option("MODEL", a.model,
              "a folder as Hugging Face writes it, a .gguf file, or a program that export wrote")
      .required();
  command.option("--text", a.text, "a file, of which the perplexity is printed");
  command.option("--choices", a.choices,
                 "a JSON list of objects with `prompt`, `choices` and the index `answer`");
  command.option("--window", a.window, "the most tokens that the model sees").shows_default();
  command.option("--stride", a.stride,
                 "how far the next window begins behind this one; 0: where this one ends");
  command.option("--tokens", a.tokens, "only so many tokens of the text; 0: all");
  add_cache_dtype(command, a.cache_dtype);
  ModelChoice::add_one_lora(command, a.lora);
  command.flag("--exact", a.exact, "compute in f32 on de-quantized weights");
  command.flag("--json", a.json, "print one object");
  command.does([arguments, &out] { eval(*arguments, out); });
}

}  // namespace taper::cli
