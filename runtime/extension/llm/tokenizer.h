/// Turns text into the numbers that a language model reads, and back.
///
///   std::string why;
///   taper::Result<taper::llm::Tokenizer> tokenizer =
///       taper::llm::Tokenizer::load("tokenizer.json", &why);
///   if (!tokenizer.ok()) return fail(why);
///   std::vector<int32_t> ids = tokenizer->encode("Hello");
///   std::string text = tokenizer->decode(ids);
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/core/result.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/gguf_vocabulary.h"

namespace taper::llm {

using TokenId = int32_t;
struct Pipeline;
class DecoderStream;
class WordCache;

struct EncodeOptions {
  /// Adds the tokens that the model expects around a text, such as the one at its start.
  bool add_special_tokens = true;
  /// `<|im_end|>` in the text becomes that token. Texts of users must not be able to end their
  /// turn: switch this off for them.
  bool parse_special_tokens = true;
  /// Fills `Encoding::offsets`.
  bool offsets = false;
};

struct Encoding {
  struct Offsets {
    size_t begin, end;
  };
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;  ///< 0 or 1: which of two texts, as encoders such as BERT read it
  std::vector<Offsets> offsets;   ///< bytes of the text; {0, 0} for tokens that were put around it
};

/// A tokenizer is immutable: copies share one vocabulary, and any number of threads may use it.
class Tokenizer {
 public:
  /// Reads `tokenizer.json` of Hugging Face, or SentencePiece's `tokenizer.model`. `path` may also
  /// be a folder with one of them. `message` gets the reason of an error.
  static Result<Tokenizer> load(const std::string& path, std::string* message = nullptr);
  static Result<Tokenizer> from_json(std::string_view text, std::string* message = nullptr);
  static Result<Tokenizer> from_sentencepiece(std::string_view bytes,
                                              std::string* message = nullptr);
  static Result<Tokenizer> from_gguf(const GgufVocabulary& vocabulary,
                                     std::string* message = nullptr);

  /// Bytes that are not UTF-8 are read as U+FFFD.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_with_details(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;

  /// The text of tokens. It is valid UTF-8. Ids that the vocabulary lacks are left out.
  std::string decode(Span<const TokenId> ids, bool skip_special_tokens = false) const;

  TokenId vocabulary_size() const;
  /// The token as the vocabulary writes it, such as `Ġthe`; empty for an id that has none.
  std::string_view token(TokenId id) const;
  /// The id of such a token, or -1.
  TokenId id_of(std::string_view token) const;
  bool is_special(TokenId id) const;
  /// The bytes that a token adds inside of a text, which may be a part of a character. Empty for
  /// special tokens.
  std::string bytes_of(TokenId id) const;

  TokenId begin_of_text() const;  ///< -1: the tokenizer names none
  TokenId end_of_text() const;    ///< -1: the tokenizer names none

 private:
  friend class StreamDecoder;
  explicit Tokenizer(Pipeline pipeline);

  std::shared_ptr<const Pipeline> pipeline_;
  std::shared_ptr<WordCache> cache_;
};

/// Decodes tokens as they come. No text that it returns ends inside of a character, and all of
/// them together are the text of all tokens.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  std::string push(TokenId id);
  /// What still waits for more tokens. The next token starts a new text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  std::unique_ptr<DecoderStream> stream_;
  bool skip_special_tokens_;
};

}  // namespace taper::llm
