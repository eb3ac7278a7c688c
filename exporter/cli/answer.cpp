#include "taper/exporter/cli/answer.h"

#include <chrono>
#include <memory>

#include "taper/exporter/cli/stages.h"
#include "taper/exporter/eager/threads.h"
#include "taper/runtime/extension/llm/stop_strings.h"

namespace taper::cli {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void AnswerOptions::add_to(Command& command) {
  command.option("MODEL", model, "a folder as Hugging Face writes it, or a .gguf file").required();
  command.option("--context", context, "the most tokens of a conversation; 0: up to 4096");
  command.option("--max-tokens", max_tokens, "the most tokens of an answer").shows_default();
  command.flag("--greedy", greedy, "always take the most likely token");
  command.option("--temperature", temperature, "0: the most likely token").shows_default();
  command.option("--top-k", top_k, "only so many likely tokens; 0: all").shows_default();
  command.option("--top-p", top_p, "only likely tokens, of this probability together")
      .shows_default();
  command.option("--min-p", min_p, "only tokens of this part of the largest probability");
  command.option("--repetition-penalty", repetition_penalty, "above 1: avoid tokens of the text");
  command.option("--seed", seed, "equal seeds give equal answers");
  command.option("--stop", stop, "a text that ends the answer; may be given several times")
      .one_value();
  command.flag("--exact", exact, "compute in f32 on de-quantized weights");
}

llm::TextModel AnswerOptions::load() const {
  if (context < 0) throw UsageError("--context", "it must not be negative");
  if (max_tokens < 1) throw UsageError("--max-tokens", "it must be positive");
  Stages stages(6);
  llm::TextModelOptions options;
  options.exact = exact, options.context = context, options.threads = eager::threads();
  options.stage = [&](const std::string& stage) { stages.begin(stage); };
  return llm::TextModel(model, options);
}

llm::SamplingOptions AnswerOptions::sampling() const {
  llm::SamplingOptions s;
  s.temperature = greedy ? 0.0f : static_cast<float>(temperature);
  s.top_k = static_cast<int>(top_k), s.top_p = static_cast<float>(top_p);
  s.min_p = static_cast<float>(min_p);
  s.repetition_penalty = static_cast<float>(repetition_penalty);
  s.seed = static_cast<uint64_t>(seed);
  return s;
}

Answer write_answer(llm::TextModel& model, const std::vector<llm::TokenId>& prompt,
                    const AnswerOptions& options,
                    const std::function<bool(std::string_view)>& shows) {
  Answer answer;
  llm::Sampler sampler(options.sampling());
  llm::StreamDecoder decoder(model.tokenizer());
  llm::StopStrings stop(options.stop);
  std::vector<llm::TokenId> all = prompt;
  const auto show = [&](std::string_view text) {
    answer.text += text;
    return (text.empty() || shows(text)) && !stop.stopped();
  };

  const auto start = Clock::now();
  const auto seen = static_cast<std::ptrdiff_t>(model.position());
  Span<float> logits = model.append({prompt.begin() + seen, prompt.end()});
  answer.prompt_seconds = seconds_since(start);
  const auto answer_start = Clock::now();
  bool goes_on = true;
  while (goes_on) {
    const llm::TokenId id = sampler.sample(logits, {all.data(), static_cast<index_t>(all.size())});
    if (id < 0) break;
    answer.ids.push_back(id), all.push_back(id);
    if (model.ends(id)) break;
    goes_on = show(stop.push(decoder.push(id))) &&
              static_cast<int64_t>(answer.ids.size()) < options.max_tokens &&
              model.position() < model.context();
    if (goes_on) logits = model.append({id});
  }
  show(stop.push(decoder.finish())), show(stop.finish());
  answer.answer_seconds = seconds_since(answer_start);
  return answer;
}

}  // namespace taper::cli
