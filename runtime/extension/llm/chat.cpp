#include "taper/runtime/extension/llm/chat.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "taper/runtime/extension/llm/answer_style.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/session_file.h"

namespace taper::llm {
namespace {

std::string json_of(const std::vector<ChatMessage>& messages) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ChatMessage& m : messages) pairs.emplace_back(m.role, m.content);
  return messages_json(pairs);
}

// What `json_of` wrote, in a file that may come from anywhere.
std::optional<std::vector<ChatMessage>> messages_of(std::string_view text) {
  using nlohmann::json;
  const auto is_shallow = [](int depth, json::parse_event_t, const json&) { return depth <= 2; };
  const json parsed = json::parse(text, is_shallow, /*allow_exceptions=*/false);
  if (!parsed.is_array()) return std::nullopt;
  std::vector<ChatMessage> messages;
  for (const json& m : parsed) {
    if (!m.is_object() || m.size() != 2) return std::nullopt;
    const auto role = m.find("role"), content = m.find("content");
    if (role == m.end() || content == m.end() || !role->is_string() || !content->is_string())
      return std::nullopt;
    messages.push_back({role->get<std::string>(), content->get<std::string>()});
  }
  return messages;
}

const std::string no_text;
const std::vector<TokenId> no_ids;
constexpr GenerationStatistics no_statistics;

}  // namespace

struct Chat::Parts {
  explicit Parts(Sequence made) : sequence(std::move(made)) {
    options.sampling = sequence.model().text().sampling;
  }
  ~Parts() { end_turn(); }
  void end_turn();

  Sequence sequence;
  ChatOptions options;
  std::vector<ChatMessage> history;
  std::atomic<bool> cancel{false};
  std::shared_ptr<ChatAnswer::Turn> turn;  ///< the answer that is being written
};

/// What an answer keeps when it has ended.
struct ChatAnswer::Turn {
  Chat::Parts* chat = nullptr;  ///< nullptr: the answer has ended
  std::optional<Generation> generation;
  /// Of families whose thoughts have marks of their own. They are shown as those of the others, and
  /// are no part of the history.
  std::optional<AnswerReader> reader;
  std::string piece, shown, said;
  bool thinks = false;
  Error error = Error::ok;
  std::string message;

  std::string_view new_text() const { return reader ? piece : generation->piece(); }
  const std::string& text() const { return reader ? shown : generation->text(); }
  void end() {
    if (chat == nullptr) return;
    if (error == Error::ok)
      chat->history.push_back({"assistant", reader ? said : generation->text()});
    else
      chat->history.pop_back();  // the question
    chat = nullptr;
  }
  void show(const AnswerParts& parts) {
    if (!parts.thoughts.empty()) piece += (thinks ? "" : "<think>\n") + parts.thoughts;
    thinks = thinks || !parts.thoughts.empty();
    if (!parts.text.empty()) piece += (thinks ? "\n</think>\n\n" : "") + parts.text;
    thinks = thinks && parts.text.empty();
    said += parts.text;
  }
  void step() {
    generation->step();
    const bool has_ended = generation->finish() != Finish::none;
    if (reader) {
      piece.clear();
      show(reader->push(generation->piece()));
      if (has_ended) show(reader->finish());
      shown += piece;
    }
    if (!has_ended) return;
    error = generation->error(), message = generation->message();
    end();
  }
};

void Chat::Parts::end_turn() {
  if (turn != nullptr) turn->end();
  turn.reset();
}

Chat::Chat(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

Result<Chat> Chat::load(const std::string& path, KernelSet kernels, const ModuleOptions& options) {
  TAPER_LET(model, LanguageModel::load(path, kernels, options));
  Result<Chat> chat = create(model, options.message);
  if (!chat.ok() && options.message != nullptr) options.message->insert(0, path + ": ");
  return chat;
}

Result<Chat> Chat::create(const LanguageModel& model, std::string* message) {
  return guarded<Chat>(message, [&] {
    if (!model.text().chat)
      throw Failure{Error::not_supported,
                    "the model has no chat template; give a text to continue"};
    std::string why;
    Result<Sequence> sequence = Sequence::create(model, &why);
    if (!sequence.ok()) throw Failure{sequence.error(), why};
    return Chat(std::make_unique<Parts>(std::move(sequence.value())));
  });
}

ChatOptions& Chat::options() { return parts_->options; }
const LanguageModel& Chat::model() const { return parts_->sequence.model(); }
const std::vector<ChatMessage>& Chat::history() const { return parts_->history; }
void Chat::cancel() { parts_->cancel = true; }

ChatAnswer Chat::say(std::string_view text) {
  Parts& p = *parts_;
  p.end_turn();
  p.cancel = false;
  p.history.push_back({"user", std::string(text)});
  p.turn = std::make_shared<ChatAnswer::Turn>();
  p.turn->chat = &p;
  ChatInput input;
  input.messages = json_of(p.history);
  Result<std::vector<TokenId>> prompt = model().prompt(std::move(input), &p.turn->message);
  if (prompt.ok()) {
    GenerateOptions options;
    options.sampling = p.options.sampling, options.stop = p.options.stop;
    options.max_tokens = p.options.max_tokens, options.cancel = &p.cancel;
    options.grammar = p.options.grammar, options.draft = p.options.draft;
    const AnswerStyle style = answer_style_behind(prompt.value(), model().text());
    if (style.form != AnswerForm::plain) p.turn->reader.emplace(style);
    options.shows_special_tokens = has_special_marks(style);
    p.turn->generation.emplace(p.sequence, std::move(prompt.value()), std::move(options));
  } else {
    p.turn->error = prompt.error();
    p.turn->end();
  }
  return ChatAnswer(p.turn);
}

void Chat::rewind(size_t count) {
  parts_->end_turn();
  if (count < parts_->history.size()) parts_->history.resize(count);
}

void Chat::clear(const std::string& system) {
  rewind(0);
  if (!system.empty()) parts_->history.push_back({"system", system});
}

Error Chat::use_adapter(const std::string& name, std::string* message) {
  parts_->end_turn();
  const Error e = parts_->sequence.use_adapter(name);
  if (e != Error::ok && message != nullptr) *message = parts_->sequence.message();
  return e;
}

const std::string& Chat::adapter() const { return parts_->sequence.adapter(); }

Result<Chat> Chat::fork(std::string* message) {
  parts_->end_turn();
  Result<Sequence> sequence = parts_->sequence.fork(message);
  if (!sequence.ok()) return sequence.error();
  Chat made(std::make_unique<Parts>(std::move(sequence.value())));
  ChatOptions& options = made.parts_->options;
  options = parts_->options, made.parts_->history = parts_->history;
  // both belong to one answer at a time, and two conversations may answer in turns
  options.draft = nullptr;
  if (options.grammar != nullptr)
    options.grammar = std::make_shared<GrammarMatcher>(options.grammar->another());
  return made;
}

Error Chat::save(const std::string& path, std::string* message) {
  parts_->end_turn();
  const Error e = parts_->sequence.save(path, json_of(parts_->history));
  if (e != Error::ok && message != nullptr) *message = parts_->sequence.message();
  return e;
}

Error Chat::restore(const std::string& path, std::string* message) {
  std::string why;
  Result<SessionFile> file = open_session_file(path, why);
  std::optional<std::vector<ChatMessage>> history;
  if (file.ok()) history = messages_of(file->note);
  if (file.ok() && !history) why = path + ": it holds no conversation";
  const std::string adapter(file.ok() ? file->owner.adapter_name : "");
  const std::vector<std::string>& adapters = model().text().adapters;
  if (history && !adapter.empty() &&
      std::find(adapters.begin(), adapters.end(), adapter) == adapters.end())
    why = path + ": the adapter " + adapter + " answers in it, and the model has none of that name";
  if (message != nullptr) *message = why;
  if (!why.empty()) return Error::invalid_argument;
  parts_->end_turn();
  parts_->history = std::move(*history);
  if (parts_->sequence.restore(file.value()) == Error::ok) return Error::ok;
  parts_->sequence.rewind(0);
  return parts_->sequence.use_adapter(adapter);
}

ChatAnswer::~ChatAnswer() {
  if (turn_ != nullptr) turn_->end();
}

bool ChatAnswer::next() {
  while (turn_->chat != nullptr) {
    turn_->step();
    if (!piece().empty()) return true;
  }
  return false;
}

std::string_view ChatAnswer::piece() const { return turn_->new_text(); }

const std::string& ChatAnswer::text() {
  while (next()) continue;
  return turn_->generation ? turn_->text() : no_text;
}

Error ChatAnswer::error() const { return turn_->error; }
const std::string& ChatAnswer::message() const { return turn_->message; }

Finish ChatAnswer::finish() const {
  if (turn_->error != Error::ok) return Finish::failed;
  const Finish finish = turn_->generation->finish();
  const bool ended_early = finish == Finish::none && turn_->chat == nullptr;
  return ended_early ? Finish::cancelled : finish;
}

const GenerationStatistics& ChatAnswer::statistics() const {
  return turn_->generation ? turn_->generation->statistics() : no_statistics;
}
const std::vector<TokenId>& ChatAnswer::ids() const {
  return turn_->generation ? turn_->generation->ids() : no_ids;
}

}  // namespace taper::llm
