#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"

namespace taper::cli {
namespace {

std::atomic<bool> interrupted{false};
void interrupt(int) { interrupted = true; }

/// While it lives, Ctrl-C stops the answer and not the program.
class StopsAnswers {
 public:
  StopsAnswers() : before_(std::signal(SIGINT, interrupt)) { interrupted = false; }
  ~StopsAnswers() { std::signal(SIGINT, before_); }
  StopsAnswers(const StopsAnswers&) = delete;

 private:
  void (*before_)(int);
};

constexpr char help[] =
    "/clear begins a new conversation, /system TEXT tells the model who it is, /exit ends.\n"
    "Ctrl-C stops an answer.\n";

class Conversation {
 public:
  Conversation(const AnswerOptions& options, std::ostream& out)
      : options_(options), model_(options.load()), out_(out) {}

  void say(const std::string& text) {
    const nlohmann::json before = messages_;
    try {
      messages_.push_back({{"role", "user"}, {"content", text}});
      answer(model_.prompt(text_of(messages_)));
    } catch (const ExportError&) {
      messages_ = before;  // so that another question may follow
      seen_.clear();
      model_.rewind(0);
      throw;
    }
  }
  void clear() { messages_ = nlohmann::json::array(), seen_.clear(), model_.rewind(0); }
  void set_system(const std::string& text) {
    clear();
    messages_.push_back({{"role", "system"}, {"content", text}});
  }

 private:
  /// Bytes that are no UTF-8 become U+FFFD.
  static std::string text_of(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void answer(const std::vector<llm::TokenId>& prompt) {
    // what the caches hold already stays; the last token is read again for its logits
    const auto known = std::ranges::mismatch(prompt, seen_).in1 - prompt.begin();
    model_.rewind(std::min<int64_t>(known, static_cast<int64_t>(prompt.size()) - 1));
    const StopsAnswers guard;
    const Answer answer = write_answer(model_, prompt, options_, [&](std::string_view piece) {
      out_ << piece << std::flush;
      return !interrupted;
    });
    out_ << '\n';
    seen_ = prompt;
    seen_.insert(seen_.end(), answer.ids.begin(), answer.ids.end());
    seen_.resize(static_cast<size_t>(model_.position()));
    messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
  }

  const AnswerOptions& options_;
  llm::TextModel model_;
  std::ostream& out_;
  nlohmann::json messages_ = nlohmann::json::array();
  std::vector<llm::TokenId> seen_;  ///< the tokens in the caches
};

/// Returns false at the end.
bool obey(const std::string& line, Conversation& conversation, std::ostream& out) {
  const std::string system = "/system ";
  if (line == "/exit") return false;
  if (line == "/clear")
    conversation.clear();
  else if (line.starts_with(system))
    conversation.set_system(line.substr(system.size()));
  else
    out << help;
  return true;
}

void chat(const AnswerOptions& options, std::ostream& out) {
  Conversation conversation(options, out);
  out << help;
  std::string line;
  while (out << "> " << std::flush, std::getline(std::cin, line)) {
    if (line.empty()) continue;
    if (line[0] == '/') {
      if (!obey(line, conversation, out)) return;
      continue;
    }
    try {
      conversation.say(line);
    } catch (const ExportError& e) {
      out << "error: " << e.what() << '\n';
    }
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
