#include <atomic>
#include <csignal>
#include <iostream>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/runtime/extension/llm/chat.h"

namespace taper::cli {
namespace {

std::atomic<llm::Chat*> talking{nullptr};
void interrupt(int) {
  if (llm::Chat* chat = talking) chat->cancel();
}

/// While it lives, Ctrl-C stops the answer and not the program.
class StopsAnswers {
 public:
  explicit StopsAnswers(llm::Chat& chat) {
    talking = &chat;
    before_ = std::signal(SIGINT, interrupt);
  }
  ~StopsAnswers() {
    std::signal(SIGINT, before_);
    talking = nullptr;
  }
  StopsAnswers(const StopsAnswers&) = delete;

 private:
  void (*before_)(int);
};

constexpr char help[] =
    "/clear begins a new conversation, /system TEXT tells the model who it is, /undo takes back\n"
    "the last question and its answer, /exit ends. Ctrl-C stops an answer.\n";

llm::Chat chat_with(const llm::LanguageModel& model, const AnswerOptions& options) {
  std::string why;
  Result<llm::Chat> created = llm::Chat::create(model, &why);
  if (!created.ok()) throw ExportError(options.model.model + ": " + why);
  llm::Chat& chat = created.value();
  chat.options().sampling = options.sampling(model);
  chat.options().stop = options.stop, chat.options().max_tokens = options.max_tokens;
  chat.options().grammar = options.matcher(model);
  chat.options().draft = options.model.draft_for(model);
  return std::move(chat);
}

void say(llm::Chat& chat, const std::string& text, std::ostream& out) {
  const StopsAnswers guard(chat);
  llm::ChatAnswer answer = chat.say(text);
  for (const std::string_view piece : answer) out << piece << std::flush;
  if (answer.error() != Error::ok) out << "error: " << answer.message();
  if (answer.finish() == llm::Finish::context_full)
    out << "\n(the context is full: /clear begins a new conversation)";
  out << '\n';
}

void undo(llm::Chat& chat) {
  const size_t said = chat.history().size();
  if (said >= 2) chat.rewind(said - 2);
}

/// Returns false at the end.
bool obey(const std::string& line, llm::Chat& chat, std::ostream& out) {
  const std::string system = "/system ";
  if (line == "/exit") return false;
  if (line == "/clear")
    chat.clear();
  else if (line == "/undo")
    undo(chat);
  else if (line.starts_with(system))
    chat.clear(line.substr(system.size()));
  else
    out << help;
  return true;
}

void chat(const AnswerOptions& options, std::ostream& out) {
  options.check();
  llm::Chat chat = chat_with(options.model.load(), options);
  out << help;
  std::string line;
  while (out << "> " << std::flush, std::getline(std::cin, line)) {
    if (line.empty()) continue;
    if (line[0] != '/')
      say(chat, line, out);
    else if (!obey(line, chat, out))
      return;
  }
  out << '\n';
}

}  // namespace

void add_chat_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<AnswerOptions>();
  Command command = line.add("chat", "Talks with a language model.");
  arguments->add_to(command);
  command.does([arguments, &out] { chat(*arguments, out); });
}

}  // namespace taper::cli
