#include <atomic>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/session.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/llm/chat.h"
#include "taper/runtime/extension/llm/session_file.h"

namespace taper::cli {
namespace {

std::atomic<llm::Chat*> talking{nullptr};
std::atomic<bool> chat_ended{false};
void stop_answer(int) {
  if (llm::Chat* chat = talking) chat->cancel();
}
void end_chat(int signal) {
  chat_ended = true;
  stop_answer(signal);
}

/// While it lives, a signal calls a function. Reading a line ends then.
class OnSignal {
 public:
  OnSignal(int signal, void (*call)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = call;
    ::sigaction(signal, &action, &before_);
  }
  ~OnSignal() { ::sigaction(signal_, &before_, nullptr); }
  OnSignal(const OnSignal&) = delete;

 private:
  const int signal_;
  struct sigaction before_ {};
};

constexpr char help[] =
    "/clear begins a new conversation, /system TEXT tells the model who it is, /undo takes back\n"
    "the last question and its answer, /save FILE and /load FILE keep conversations, /lora NAME\n"
    "lets an adapter answer, /exit ends. Ctrl-C stops an answer.\n";

llm::Chat chat_with(const llm::LanguageModel& model, const AnswerOptions& options) {
  std::string why;
  Result<llm::Chat> created = llm::Chat::create(model, &why);
  if (!created.ok()) throw ExportError(options.model.model + ": " + why);
  llm::Chat& chat = created.value();
  chat.options().sampling = options.sampling(model);
  chat.options().stop = options.stop, chat.options().max_tokens = options.max_tokens;
  chat.options().grammar = options.matcher(model);
  chat.options().draft = options.model.draft_for(model);
  if (chat.use_adapter(options.adapter, &why) != Error::ok) throw ExportError("--adapter: " + why);
  return std::move(chat);
}

void say(llm::Chat& chat, const std::string& text, std::ostream& out) {
  talking = &chat;
  const OnSignal interrupted(SIGINT, stop_answer);
  llm::ChatAnswer answer = chat.say(text);
  for (const std::string_view piece : answer) out << piece << std::flush;
  talking = nullptr;
  if (answer.error() != Error::ok) out << "error: " << answer.message();
  if (answer.finish() == llm::Finish::context_full)
    out << "\n(the context is full: /clear begins a new conversation)";
  out << '\n';
}

void undo(llm::Chat& chat) {
  const size_t said = chat.history().size();
  if (said >= 2) chat.rewind(said - 2);
}

void save(llm::Chat& chat, const std::string& file) {
  std::string why;
  if (chat.save(file, &why) != Error::ok) throw ExportError(why);
}

/// The file may be one that another chat goes on with.
void save_besides(llm::Chat& chat, const std::string& file, const std::string& session) {
  FileLock lock;
  std::error_code none;
  const bool is_own = file == session || std::filesystem::equivalent(file, session, none);
  if (std::string why; !is_own && !llm::lock_session_file(file, lock, why))
    throw ExportError(why + "; give another file");
  save(chat, file);
}

void load(llm::Chat& chat, const std::string& file, std::ostream& out) {
  std::string why;
  if (chat.restore(file, &why) != Error::ok) throw ExportError(why);
  if (chat.history().empty()) return;
  const llm::ChatMessage& last = chat.history().back();
  out << "(" << chat.history().size() << " messages"
      << (chat.adapter().empty() ? "" : ", with the adapter " + chat.adapter())
      << "; the last one, of the " << io::printable(last.role) << ": "
      << io::printable(last.content) << ")\n";
}

void use_adapter(llm::Chat& chat, const std::string& name, std::ostream& out) {
  std::string why;
  if (chat.use_adapter(name, &why) != Error::ok) throw ExportError(why);
  out << (name.empty() ? "(the model itself)" : "(" + name + ")") << '\n';
}

/// Returns false at the end.
bool obey(const std::string& line, llm::Chat& chat, const std::string& session, std::ostream& out) {
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space),
                    rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (line == "/exit") return false;
  if (line == "/clear")
    chat.clear();
  else if (line == "/undo")
    undo(chat);
  else if (word == "/system" && !rest.empty())
    chat.clear(rest);
  else if (word == "/lora")
    use_adapter(chat, rest, out);
  else if (word == "/save" && !rest.empty())
    save_besides(chat, rest, session);
  else if (word == "/load" && !rest.empty())
    load(chat, rest, out);
  else
    out << help;
  return true;
}

void talk(llm::Chat& chat, const std::string& session, std::ostream& out) {
  out << help;
  std::string line;
  while (!chat_ended && out << "> " << std::flush, std::getline(std::cin, line)) {
    if (line.empty()) continue;
    try {
      if (line[0] != '/')
        say(chat, line, out);
      else if (!obey(line, chat, session, out))
        return;
    } catch (const ExportError& e) {
      out << "error: " << e.what() << '\n';
    }
  }
  out << '\n';
}

struct ChatArguments {
  AnswerOptions answer;
  std::string session;
};

void chat(const ChatArguments& a, std::ostream& out) {
  a.answer.check();
  const SessionOption session(a.session);
  llm::Chat chat = chat_with(a.answer.model.load(), a.answer);
  if (!session.is_given()) return talk(chat, session.path(), out);
  if (session.is_there()) load(chat, session.path(), out);
  if (!a.answer.adapter.empty())
    (void)chat.use_adapter(a.answer.adapter);  // it is there: see above
  chat_ended = false;
  const OnSignal interrupted(SIGINT, end_chat), terminated(SIGTERM, end_chat),
      hung_up(SIGHUP, end_chat);
  talk(chat, session.path(), out);
  save(chat, session.path());
}

}  // namespace

void add_chat_command(CommandLine& line, std::ostream& out) {
  const auto arguments = std::make_shared<ChatArguments>();
  Command command = line.add("chat", "Talks with a language model.");
  arguments->answer.add_to(command);
  command.option("--session FILE", arguments->session,
                 "go on with the conversation in this file, and keep it there at the end");
  command.does([arguments, &out] { chat(*arguments, out); });
}

}  // namespace taper::cli
