/// Lets a model write only what a grammar or a JSON schema allows.
///
///   taper::Result<taper::llm::Grammar> grammar =
///       taper::llm::Grammar::from_json_schema(R"({"type": "integer"})", &why);
///   taper::llm::GrammarMatcher matcher(*grammar, taper::llm::TokenTexts(tokenizer));
///   for (;;) {
///     int32_t next = matcher.sample(sampler, logits, tokens_so_far, ends);
///     …
///   }
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/core/result.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/sampler.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {

class Language;
class TokenTrie;

/// What texts may be. It is immutable; copies share it, and any number of threads may use it.
class Grammar {
 public:
  /// GBNF, the notation of llama.cpp: `root ::= "yes" | "no"`. `message` gets the reason of an
  /// error: "line 3: there is no rule 'digit'". A rule must not begin with itself.
  static Result<Grammar> from_gbnf(std::string_view text, std::string* message = nullptr);

  /// A JSON schema (draft 2020-12). Texts are JSON that the schema accepts, with any blanks and any
  /// order of keys. An error names the place: "#/properties/id/pattern: …".
  ///
  /// What can be told before a value ends is refused at once. So are beginnings of strings,
  /// escapes, exponents, arrays and objects that could not end. `not`, `oneOf` and the like are
  /// judged where the value ends, and nothing wrong can end. So with these a model may reach a
  /// place where no token is allowed. Integers are not written as 30e-1, and no key stands there
  /// twice.
  ///
  /// Not supported, and refused: `unevaluatedProperties`, `unevaluatedItems`, references to other
  /// documents, and patterns that look around. `format` counts for date, ipv4 and uuid.
  static Result<Grammar> from_json_schema(std::string_view text, std::string* message = nullptr);

 private:
  friend class GrammarMatcher;
  explicit Grammar(std::shared_ptr<const Language> language) : language_(std::move(language)) {}

  std::shared_ptr<const Language> language_;
};

/// The bytes of all tokens, sorted for a search. Make it once for each tokenizer; copies share it.
class TokenTexts {
 public:
  explicit TokenTexts(const Tokenizer& tokenizer);
  /// The bytes of token 0, 1, …; empty for tokens without text, which no grammar allows. So are
  /// tokens of more than 256 bytes.
  explicit TokenTexts(std::vector<std::string> texts);

 private:
  friend class GrammarMatcher;
  std::shared_ptr<const TokenTrie> trie_;
};

/// Follows one text, token by token. It remembers what followed from each state, so it gets faster
/// with use. It belongs to one thread.
class GrammarMatcher {
 public:
  GrammarMatcher(const Grammar& grammar, const TokenTexts& texts);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  /// Another matcher of the same grammar and tokens, at the beginning of its own text.
  GrammarMatcher another() const;

  /// Whether the text may end here. Only then a token that ends the text is allowed.
  bool may_end();
  /// Whether the text is at its end: at most blanks may follow.
  bool is_complete();
  /// A bit for each token: bit `id % 64` of word `id / 64`. Valid until the next call. A schema may
  /// have conditions that only `accept` judges: unique items, and keys that are there twice.
  Span<const uint64_t> allowed();
  /// Takes a token. False, without any change, if the grammar does not allow it.
  bool accept(TokenId id);
  /// The same for any text.
  bool accept(std::string_view text);
  /// Begins a new text, with all that was learned.
  void reset();

  /// Sets the logits of all tokens to -inf that are not allowed. `ends` are the tokens that end a
  /// text.
  void restrict(Span<float> logits, Span<const TokenId> ends);
  /// Restricts the logits, chooses a token and takes it. -1 if none is left. A token of `ends` is
  /// returned only where the text may end.
  TokenId sample(Sampler& sampler, Span<float> logits, Span<const TokenId> context,
                 Span<const TokenId> ends);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
