#include <nlohmann/json.hpp>
#include <ostream>

#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

struct GenerateArguments {
  AnswerOptions answer;
  std::string prompt, messages;
  bool json = false, statistics = false;
};

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<llm::TokenId> prompt_of(const GenerateArguments& a, const llm::TextModel& model) {
  if (a.prompt.empty() == a.messages.empty())
    throw UsageError("give either --prompt TEXT or --messages FILE.json");
  return a.messages.empty() ? model.tokenizer().encode(a.prompt)
                            : model.prompt(text_of(a.messages));
}

void generate(const GenerateArguments& a, std::ostream& out) {
  if (a.prompt.empty() == a.messages.empty())
    throw UsageError("give either --prompt TEXT or --messages FILE.json");
  llm::TextModel model = a.answer.load();
  const std::vector<llm::TokenId> prompt = prompt_of(a, model);
  const Answer answer = write_answer(model, prompt, a.answer, [&](std::string_view text) {
    if (!a.json) out << text << std::flush;
    return true;
  });
  const auto rate = [](size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const double reads = rate(prompt.size(), answer.prompt_seconds),
               writes = rate(answer.ids.size(), answer.answer_seconds);
  if (a.json) {
    nlohmann::json result = {{"prompt_ids", prompt}, {"ids", answer.ids}, {"text", answer.text}};
    if (a.statistics)
      result["prompt_tokens_per_second"] = reads, result["tokens_per_second"] = writes;
    out << result.dump() << '\n';
    return;
  }
  out << '\n';
  if (a.statistics)
    out << prompt.size() << " tokens read at " << static_cast<int64_t>(reads + 0.5) << " a second, "
        << answer.ids.size() << " written at " << static_cast<int64_t>(writes + 0.5)
        << " a second\n";
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
  command.flag("--json", arguments->json, "print one object with prompt_ids, ids and text");
  command.flag("--statistics", arguments->statistics, "print the speed, too");
  command.does([arguments, &out] { generate(*arguments, out); });
}

}  // namespace taper::cli
