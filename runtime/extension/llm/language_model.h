/// Language models in program files that `taper export` wrote. A LanguageModel is what all
/// conversations share. A Sequence is one text that the model reads and continues. Most
/// applications use `Chat` (chat.h) instead.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/text_parts.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

/// The weights, the tokenizer and the chat template. It is immutable: copies are the same model,
/// and any number of threads may use it. The threads of `ModuleOptions` outlive all of them.
class LanguageModel {
 public:
  /// Loads a file with these kernels. Errors: those of `Module::load`, and invalid_argument if the
  /// program is not a language model with a tokenizer.
  static Result<LanguageModel> load(const std::string& path, KernelSet kernels,
                                    const ModuleOptions& options = {});
  /// With all kernels.
  static Result<LanguageModel> load(const std::string& path, const ModuleOptions& options = {});

  const TextParts& text() const;
  const Tokenizer& tokenizer() const { return text().tokenizer; }
  /// The most tokens of a text.
  int64_t context() const { return text().context; }
  /// Whether the program also gives the logits of every token: its method `forward_all`.
  bool has_all_logits() const;
  /// Whether the program also gives the last state of every token: its method `states`.
  bool has_states() const;
  /// How many texts one session of the program holds: sequences that may read a token each in one
  /// call (`Sequence::append_each`). 1 unless the program was exported with more.
  int64_t rows() const;
  /// The memory that the caches of a text take when it is as long as the context. The system gives
  /// it as the text grows.
  size_t cache_bytes() const;
  /// Whether the model ends its answer with this token.
  bool ends(TokenId id) const { return text().ends.count(id) > 0; }

  /// The tokens of a conversation, up to where the assistant begins. `input.messages` is a JSON
  /// list of objects with `role` and `content`. bos_token and eos_token are the model's. What users
  /// and tools say is never read as a special token, so it cannot end their turn. If the template
  /// knows no tools, they are described in words (`with_tools_as_text`).
  /// not_supported: the model has no chat template.
  Result<std::vector<TokenId>> prompt(ChatInput input, std::string* message = nullptr) const;

 private:
  friend class Sequence;
  struct Parts;
  bool has_method(const char* name) const;
  explicit LanguageModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

class Sequence;
struct SessionFile;

/// A token that a sequence takes together with others.
struct NextToken {
  Sequence* sequence = nullptr;
  TokenId id = 0;
  Error error = Error::ok;  ///< `message()` of the sequence says more
  Span<float> logits;       ///< as `Sequence::append` returns them
};

/// The tokens that a model has read, and its caches. Sequences of one model share its weights. One
/// thread at a time.
class Sequence {
 public:
  /// `message` gets the reason of an error, such as too little memory.
  static Result<Sequence> create(const LanguageModel& model, std::string* message = nullptr);
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence();

  const LanguageModel& model() const;
  /// Lets one of `model().text().adapters` compute from now on; "": the model itself. Another one
  /// than before forgets all tokens. Sequences with different adapters may share a call.
  /// invalid_argument: the model has no such adapter.
  Error use_adapter(const std::string& name);
  const std::string& adapter() const;
  const std::vector<TokenId>& tokens() const;
  int64_t position() const { return static_cast<int64_t>(tokens().size()); }
  /// How many tokens still fit.
  int64_t room() const { return model().context() - position(); }
  /// The most tokens that the model reads in one step. More go in by pieces of this size.
  int64_t chunk() const;

  /// Takes tokens that follow those of earlier calls. Returns the logits behind the last of them,
  /// one for each token of the vocabulary, which the caller may change. They are valid until the
  /// next call. If `cancel` becomes true, the call ends early with limit_reached; then and after
  /// other errors the sequence has the tokens of whole chunks.
  /// Errors: invalid_argument (no tokens, too many, or one that the vocabulary lacks).
  Result<Span<float>> append(Span<const TokenId> ids, const std::atomic<bool>* cancel = nullptr);
  /// Takes one token in each of these sequences, and sets its `error` and `logits`. The results are
  /// those of `append`, bit for bit. The sequences of a session take one call of the model, which
  /// costs little more than a token of one of them. A sequence must not be there twice.
  static void append_each(Span<NextToken> tokens);
  /// The same as `append` in one step, with the logits behind each token, one row after the other.
  /// For a model that `has_all_logits`. At most `all_logits_chunk` tokens.
  Result<Span<float>> append_all(Span<const TokenId> ids,
                                 const std::atomic<bool>* cancel = nullptr);
  /// The most tokens of `append_all`; 0: the model has no such method, or there is no memory for
  /// it.
  int64_t all_logits_chunk();
  /// The same with the last state of each token, the one that logits are computed from, instead of
  /// its logits. For a model that `has_states`.
  Result<Span<float>> append_states(Span<const TokenId> ids,
                                    const std::atomic<bool>* cancel = nullptr);
  /// The most tokens of `append_states`; 0: as above.
  int64_t states_chunk();

  /// Forgets all tokens from `position` on. Models that remember more than a cache, such as LFM2
  /// and Mamba, forget all: look at `position()` afterwards.
  void rewind(int64_t position);
  /// How many tokens of `prompt` need not be read again. At least the last one is left to be read,
  /// because its logits are wanted.
  int64_t known_prefix(Span<const TokenId> prompt) const;
  /// Forgets what differs from `prompt`. Returns `known_prefix`, or 0 if all had to be forgotten.
  int64_t keep_prefix(Span<const TokenId> prompt);

  /// Another sequence that has read the same tokens. The two go on apart. They share the memory of
  /// what they have read where the system can share pages (Linux, Android 11); else it is copied.
  /// Errors: as `create`.
  Result<Sequence> fork(std::string* message = nullptr);
  /// Forgets all, and takes over the first `count` tokens that another sequence of the model has
  /// read, in the same way. Returns how many. 0: there is nothing to take, or the model cannot
  /// rewind and `count` is not all; then nothing is forgotten. No other thread may use the two
  /// meanwhile.
  int64_t take_prefix(Sequence& from, int64_t count);

  /// Writes the tokens and the caches to a file, and a note of the application. The file is written
  /// whole or not at all. It takes the memory of the tokens, about `model().cache_bytes()` for a
  /// full context.
  Error save(const std::string& path, std::string_view note = {});
  /// Forgets all, and takes over what `save` wrote, in another process, too: also the adapter.
  /// Nothing is read again. Any program of the model will do that stores its weights in the same
  /// way, whatever its context and its number of texts (model_identity.h).
  /// Errors: invalid_argument if the file is damaged, or another model or adapter wrote it; then
  /// nothing is changed.
  Error restore(const std::string& path);

  /// Why the last call failed.
  const std::string& message() const;

 private:
  friend class Chat;
  struct Parts;
  Error restore(const SessionFile& file);
  explicit Sequence(std::unique_ptr<Parts> parts);
  static void decode(Span<NextToken* const> tokens);

  std::unique_ptr<Parts> parts_;
};

// Inline, so that only an app that calls this function links all kernels.
inline Result<LanguageModel> LanguageModel::load(const std::string& path,
                                                 const ModuleOptions& options) {
  return load(path, default_kernels(), options);
}

}  // namespace taper::llm
