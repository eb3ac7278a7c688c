#include "taper/runtime/extension/llm/grammar.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/grammar/gbnf.h"
#include "taper/runtime/extension/llm/grammar/json_machine.h"
#include "taper/runtime/extension/llm/grammar/mask_search.h"
#include "taper/runtime/extension/llm/grammar/rule_machine.h"

namespace taper::llm {
namespace {

constexpr float removed = -std::numeric_limits<float>::infinity();

class RuleLanguage : public Language {
 public:
  explicit RuleLanguage(Rules rules) : rules_(std::make_shared<const Rules>(std::move(rules))) {}
  std::unique_ptr<Machine> machine() const override {
    return std::make_unique<RuleMachine>(rules_);
  }

 private:
  std::shared_ptr<const Rules> rules_;
};

class JsonLanguage : public Language {
 public:
  explicit JsonLanguage(std::shared_ptr<const json_text::JsonSchema> schema)
      : schema_(std::move(schema)) {}
  std::unique_ptr<Machine> machine() const override {
    return std::make_unique<json_text::JsonMachine>(schema_);
  }

 private:
  std::shared_ptr<const json_text::JsonSchema> schema_;
};

bool has_bit(Span<const uint64_t> mask, index_t id) {
  return (mask[id / 64] >> (id % 64) & 1) != 0;
}

std::vector<std::string> texts_of(const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    texts.push_back(tokenizer.bytes_of(id));
  }
  return texts;
}

}  // namespace

Result<Grammar> Grammar::from_gbnf(std::string_view text, std::string* message) {
  return guarded<Grammar>(
      message, [&] { return Grammar(std::make_shared<const RuleLanguage>(read_gbnf(text))); });
}

Result<Grammar> Grammar::from_json_schema(std::string_view text, std::string* message) {
  return guarded<Grammar>(message, [&] {
    return Grammar(std::make_shared<const JsonLanguage>(json_text::read_json_schema(text)));
  });
}

TokenTexts::TokenTexts(const Tokenizer& tokenizer) : TokenTexts(texts_of(tokenizer)) {}
TokenTexts::TokenTexts(std::vector<std::string> texts)
    : trie_(std::make_shared<const TokenTrie>(std::move(texts))) {}

struct GrammarMatcher::Parts {
  Parts(const Grammar& of, const TokenTexts& tokens, std::unique_ptr<Machine> made)
      : grammar(of),
        texts(tokens),
        machine(std::move(made)),
        trie(texts.trie_),
        search(*machine, trie) {}

  Grammar grammar;
  TokenTexts texts;
  std::unique_ptr<Machine> machine;
  std::shared_ptr<const TokenTrie> trie;
  MaskSearch search;
  Machine::State state = machine->start();

  void tidy() {
    if (!machine->is_full()) return;
    search.forget();
    state = machine->forget_all_but(state);
  }
};

GrammarMatcher::GrammarMatcher(const Grammar& grammar, const TokenTexts& texts)
    : parts_(std::make_unique<Parts>(grammar, texts, grammar.language_->machine())) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

GrammarMatcher GrammarMatcher::another() const { return {parts_->grammar, parts_->texts}; }

bool GrammarMatcher::may_end() { return parts_->machine->may_end(parts_->state); }

bool GrammarMatcher::is_complete() { return parts_->machine->is_complete(parts_->state); }

void GrammarMatcher::reset() { parts_->state = parts_->machine->start(); }

Span<const uint64_t> GrammarMatcher::allowed() {
  parts_->tidy();
  return parts_->search.allowed(parts_->state);
}

bool GrammarMatcher::accept(std::string_view text) {
  const Machine::State after = parts_->machine->take(parts_->state, text);
  if (after == Machine::dead) return false;
  parts_->state = after;
  parts_->tidy();
  return true;
}

bool GrammarMatcher::accept(TokenId id) {
  const TokenTrie& trie = *parts_->trie;
  if (id < 0 || static_cast<size_t>(id) >= trie.vocabulary_size()) return false;
  const std::string& text = trie.text(id);
  return !text.empty() && text.size() <= TokenTrie::longest && accept(text);
}

void GrammarMatcher::restrict(Span<float> logits, Span<const TokenId> ends) {
  const Span<const uint64_t> mask = allowed();
  std::vector<std::pair<TokenId, float>> kept;
  if (may_end()) {
    for (const TokenId id : ends) {
      if (id >= 0 && id < logits.size()) kept.emplace_back(id, logits[id]);
    }
  }
  for (index_t id = 0; id < logits.size(); ++id) {
    if (id / 64 >= mask.size() || !has_bit(mask, id)) logits[id] = removed;
  }
  for (const TokenId id : ends) {
    if (id >= 0 && id < logits.size()) logits[id] = removed;
  }
  for (const auto& [id, logit] : kept) logits[id] = logit;
}

TokenId GrammarMatcher::sample(Sampler& sampler, Span<float> logits, Span<const TokenId> context,
                               Span<const TokenId> ends) {
  restrict(logits, ends);
  const std::vector<float> allowed_logits(logits.begin(), logits.end());
  std::vector<TokenId> refused;
  for (;;) {
    const TokenId id = sampler.sample(logits, context);
    const bool is_end = std::find(ends.begin(), ends.end(), id) != ends.end();
    if (id < 0 || is_end || accept(id)) return id;
    refused.push_back(id);
    std::copy(allowed_logits.begin(), allowed_logits.end(), logits.begin());
    for (const TokenId other : refused) logits[other] = removed;
  }
}

}  // namespace taper::llm
