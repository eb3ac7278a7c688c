#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/session.h"

namespace taper::cli {
namespace {

struct GenerateArguments {
  AnswerOptions answer;
  std::string prompt, messages, session;
  bool json = false, statistics = false;
};

std::vector<llm::TokenId> prompt_of(const GenerateArguments& a, const llm::LanguageModel& model) {
  if (a.messages.empty()) return model.tokenizer().encode(a.prompt);
  llm::ChatInput input;
  input.messages = text_of_file(a.messages);
  std::string why;
  Result<std::vector<llm::TokenId>> prompt = model.prompt(std::move(input), &why);
  if (!prompt.ok()) throw ExportError(a.answer.model.model + ": " + why);
  return std::move(prompt.value());
}

llm::Sequence sequence_of(const GenerateArguments& a, const llm::LanguageModel& model,
                          const SessionOption& session) {
  std::string why;
  Result<llm::Sequence> sequence = llm::Sequence::create(model, &why);
  if (!sequence.ok()) throw ExportError(a.answer.model.model + ": " + why);
  if (sequence->use_adapter(a.answer.adapter) != Error::ok)
    throw ExportError("--adapter: " + sequence->message());
  if (!session.is_there()) return std::move(sequence.value());
  if (sequence->restore(session.path()) != Error::ok)
    throw ExportError("--session " + sequence->message() + "; give another file");
  if (!a.answer.adapter.empty() && a.answer.adapter != sequence->adapter())
    throw ExportError(
        "--session " + session.path() + ": " +
        (sequence->adapter().empty() ? "the model itself" : "the adapter " + sequence->adapter()) +
        " wrote it; leave out --adapter, or give another file");
  return std::move(sequence.value());
}

/// As OpenAI's interface names it.
const char* reason_of(llm::Finish finish) {
  const bool is_cut = finish == llm::Finish::max_tokens || finish == llm::Finish::context_full;
  return is_cut ? "length" : "stop";
}

void print(const GenerateArguments& a, const std::vector<llm::TokenId>& prompt,
           const llm::Generation& answer, std::ostream& out) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const llm::GenerationStatistics& s = answer.statistics();
  const double reads = rate(s.prompt_tokens, s.prompt_seconds),
               writes = rate(s.answer_tokens, s.answer_seconds);
  if (a.json) {
    nlohmann::json result = {{"prompt_ids", prompt},
                             {"ids", answer.ids()},
                             {"text", answer.text()},
                             {"finish_reason", reason_of(answer.finish())}};
    if (a.statistics)
      result["prompt_tokens_per_second"] = reads, result["tokens_per_second"] = writes,
      result["steps"] = s.answer_steps, result["cached_tokens"] = s.cached_tokens;
    out << result.dump() << '\n';
    return;
  }
  out << '\n';
  if (a.statistics)
    out << s.prompt_tokens << " tokens read at " << static_cast<int64_t>(reads + 0.5)
        << " a second, " << s.answer_tokens << " written at " << static_cast<int64_t>(writes + 0.5)
        << " a second\n";
}

void generate(const GenerateArguments& a, std::ostream& out) {
  if (a.prompt.empty() == a.messages.empty())
    throw UsageError("give either --prompt TEXT or --messages FILE.json");
  a.answer.check();
  const SessionOption session(a.session);
  if (session.is_there()) session.require_no_conversation();
  const llm::LanguageModel model = a.answer.model.load();
  const std::vector<llm::TokenId> prompt = prompt_of(a, model);
  llm::Sequence sequence = sequence_of(a, model, session);
  llm::GenerateOptions options;
  options.sampling = a.answer.sampling(model);
  options.stop = a.answer.stop, options.max_tokens = a.answer.max_tokens;
  options.grammar = a.answer.matcher(model), options.draft = a.answer.model.draft_for(model);
  const std::shared_ptr<llm::GrammarMatcher> grammar = options.grammar;
  llm::Generation answer(sequence, prompt, std::move(options));
  while (answer.step())
    if (!a.json) out << answer.piece() << std::flush;
  if (answer.error() != Error::ok)
    throw ExportError(a.answer.model.model + ": " + answer.message());
  print(a, prompt, answer, out);
  if (session.is_given() && sequence.save(session.path()) != Error::ok)
    throw ExportError(sequence.message());
  if (!a.json && grammar != nullptr && !grammar->may_end())
    throw ExportError(answer.finish() == llm::Finish::end
                          ? "no token fits the grammar behind this text; try another --seed"
                          : "the text ends before the grammar does; allow more --max-tokens");
}

}  // namespace

void add_generate_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<GenerateArguments>();
  Command command =
      line.add("generate", "Lets a language model continue a text, or answer a conversation.");
  arguments->answer.add_to(command);
  command.option("--prompt", arguments->prompt, "the text to continue");
  command.option("--messages", arguments->messages,
                 "a JSON list of objects with `role` and `content`");
  command.option("--session FILE", arguments->session,
                 "keep what the model has read in this file, so that the next call need not read "
                 "it again");
  command.flag("--json", arguments->json, "print one object with prompt_ids, ids and text");
  command.flag("--statistics", arguments->statistics, "print the speed, too");
  command.does([arguments, &out] { generate(*arguments, out); });
}

}  // namespace taper::cli
