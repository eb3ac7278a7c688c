/// Talks with a language model that `taper export` wrote.
///
///   taper::llm::Chat chat = taper::llm::Chat::load("smollm.taper").value();
///   for (std::string_view piece : chat.say("Why is the sky blue?")) std::cout << piece <<
///   std::flush;
#pragma once
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/generation.h"

namespace taper::llm {

class ChatAnswer;

/// A part of a conversation. Roles are "system", "user" and "assistant".
struct ChatMessage {
  std::string role, content;
};

struct ChatOptions {
  SamplingOptions sampling;
  std::vector<std::string> stop;            ///< texts that end an answer
  int64_t max_tokens = 512;                 ///< the most tokens of an answer
  std::shared_ptr<GrammarMatcher> grammar;  ///< what answers may be; null: any text
  std::shared_ptr<Draft> draft;             ///< GenerateOptions::draft
};

/// One conversation. What the model has read stays in its caches, so a long conversation is not
/// read again. One thread at a time, but for `cancel`.
class Chat {
 public:
  /// Loads a file with these kernels. `options.threads` outlives the chat. Errors: those of
  /// `LanguageModel::load`, and not_supported if the model has no chat template.
  static Result<Chat> load(const std::string& path, KernelSet kernels,
                           const ModuleOptions& options = {});
  /// With all kernels.
  static Result<Chat> load(const std::string& path, const ModuleOptions& options = {});
  /// A conversation with a model that is loaded, beside others.
  static Result<Chat> create(const LanguageModel& model, std::string* message = nullptr);

  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  /// The sampling is what the model's authors recommend. Change it before `say`.
  ChatOptions& options();

  /// Says something, and returns the answer, which the model writes while you read it. The answer
  /// ends at the latest when it is destroyed, when the chat is, or when something else is said. If
  /// it fails, the history is as it was before.
  ChatAnswer say(std::string_view text);
  /// Ends the answer that is being written. Any thread may call it.
  void cancel();

  /// What was said so far. An answer that was ended early is in it, as far as it was read.
  const std::vector<ChatMessage>& history() const;
  /// Takes back all but the first `count` messages.
  void rewind(size_t count);
  /// Begins anew. The first message tells the model who it is; empty: there is none.
  void clear(const std::string& system = "");

  /// Lets an adapter answer from now on: `Sequence::use_adapter`. It reads the conversation anew.
  Error use_adapter(const std::string& name, std::string* message = nullptr);
  const std::string& adapter() const;  ///< that answers now; "": none
  /// Another conversation that goes on from here: `Sequence::fork`. Both may answer in turns. It
  /// has the same options, with a matcher of its own for the grammar, and without the draft, which
  /// serves one answer at a time: give it another one.
  Result<Chat> fork(std::string* message = nullptr);
  /// Writes the conversation to a file, whole or not at all. `options` are not part of it.
  Error save(const std::string& path, std::string* message = nullptr);
  /// Goes on with a conversation that `save` wrote, in another process, too. If another model wrote
  /// it, or other options of this one, the next `say` reads the conversation anew. The adapter that
  /// answered goes on. invalid_argument: the file is damaged, or the model has no such adapter;
  /// then nothing is changed.
  Error restore(const std::string& path, std::string* message = nullptr);

  const LanguageModel& model() const;

 private:
  friend class ChatAnswer;
  struct Parts;
  explicit Chat(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

/// The pieces of an answer, each one or more whole characters. It is read once.
class ChatAnswer {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    std::string_view operator*() const { return answer_->piece(); }
    iterator& operator++() {
      if (!answer_->next()) answer_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const iterator& other) const { return answer_ == other.answer_; }
    bool operator!=(const iterator& other) const { return answer_ != other.answer_; }

   private:
    friend class ChatAnswer;
    explicit iterator(ChatAnswer* answer) : answer_(answer) {}
    ChatAnswer* answer_;  // nullptr: the end
  };

  ChatAnswer(ChatAnswer&&) noexcept = default;
  ChatAnswer& operator=(ChatAnswer&&) = delete;
  /// Ends the answer.
  ~ChatAnswer();

  iterator begin() { return ++iterator(this); }
  iterator end() { return iterator(nullptr); }
  /// Writes the rest of the answer, and returns all of it.
  const std::string& text();

  /// invalid_argument: the conversation is too long, or the template refuses it.
  Error error() const;
  const std::string& message() const;  ///< the error in words
  Finish finish() const;
  const GenerationStatistics& statistics() const;
  const std::vector<TokenId>& ids() const;

 private:
  friend class Chat;
  struct Turn;
  explicit ChatAnswer(std::shared_ptr<Turn> turn) : turn_(std::move(turn)) {}
  bool next();
  std::string_view piece() const;

  std::shared_ptr<Turn> turn_;
};

// Inline, so that only an app that calls this function links all kernels.
inline Result<Chat> Chat::load(const std::string& path, const ModuleOptions& options) {
  return load(path, default_kernels(), options);
}

}  // namespace taper::llm
