#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/bpe.h"
#include "taper/runtime/extension/llm/tokenizer/gguf_patterns.h"
#include "taper/runtime/extension/llm/tokenizer/longest_match.h"
#include "taper/runtime/extension/llm/tokenizer/pieces.h"
#include "taper/runtime/extension/llm/tokenizer/wordpiece.h"

namespace taper::llm {
namespace {

TokenId known(const std::optional<int32_t>& id, const GgufVocabulary& from, const char* key) {
  if (!id.has_value() || *id == no_token) return no_token;
  if (*id < 0 || static_cast<size_t>(*id) >= from.tokens.size()) {
    refuse(std::string("tokenizer.ggml.") + key + " = " + std::to_string(*id) +
           " is not a token of " + std::to_string(from.tokens.size()));
  }
  return *id;
}

Pipeline read_pieces(const GgufVocabulary& from, bool unigram) {
  Pieces pieces;
  pieces.tokens = from.tokens;
  pieces.scores = from.scores;
  pieces.types = from.token_type;
  pieces.unigram = unigram;
  pieces.character_map = from.precompiled_charsmap;
  pieces.adds_prefix = from.add_space_prefix.value_or(true);
  pieces.removes_extra_blanks = from.remove_extra_whitespaces.value_or(unigram);
  pieces.unknown = known(from.unknown_token_id, from, "unknown_token_id");
  pieces.begin = known(from.bos_token_id, from, "bos_token_id");
  pieces.end = known(from.eos_token_id, from, "eos_token_id");
  pieces.adds_begin = from.add_bos_token.value_or(!unigram);
  pieces.adds_end = from.add_eos_token.value_or(unigram);
  return pipeline_of(std::move(pieces));
}

void set_vocabulary(const GgufVocabulary& from, Pipeline& pipeline) {
  if (from.tokens.empty()) refuse("tokenizer.ggml.tokens is empty");
  pipeline.vocabulary = std::make_shared<const Vocabulary>(from.tokens);
  pipeline.added = AddedTokens(added_by_type(from.tokens, from.token_type), {});
  pipeline.begin_of_text = known(from.bos_token_id, from, "bos_token_id");
  pipeline.end_of_text = known(from.eos_token_id, from, "eos_token_id");
  pipeline.unknown = known(from.unknown_token_id, from, "unknown_token_id");
}

Pipeline read_byte_level(const GgufVocabulary& from) {
  Pipeline pipeline;
  set_vocabulary(from, pipeline);
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string& merge : from.merges) {
    merges.push_back(parse_merge(merge, *pipeline.vocabulary));
  }
  const GgufPattern& pattern = gguf_pattern(from.pre.empty() ? "default" : from.pre);
  for (const std::string& text : pattern.splits) {
    pipeline.pre_tokenizers.push_back(split(Regex(text), SplitBehavior::isolated, false));
  }
  BpeOptions options;
  options.byte_level = true;
  options.ignore_merges = pattern.ignores_merges;
  pipeline.model = std::make_unique<Bpe>(
      pipeline.vocabulary, merges_in_order(*pipeline.vocabulary, merges, ""), options);
  pipeline.decoder = {{DecoderStep::Kind::byte_level}};
  const bool begins = from.add_bos_token.value_or(pattern.ignores_merges);
  pipeline.post = around(begins ? pipeline.begin_of_text : no_token,
                         from.add_eos_token.value_or(false) ? pipeline.end_of_text : no_token);
  return pipeline;
}

// The words of the vocabulary begin with U+2581, and their continuations with nothing.
Pipeline read_bert(const GgufVocabulary& from) {
  constexpr const char* blank = "\u2581";
  constexpr size_t max_characters = 100;
  Pipeline pipeline;
  set_vocabulary(from, pipeline);
  pipeline.normalizers = {clean_text(), space_ideographs(), unicode_normalizer(NormalForm::nfd),
                          strip_accents(), lowercase()};
  pipeline.pre_tokenizers = {split(is_whitespace, SplitBehavior::removed),
                             split(is_punctuation, SplitBehavior::isolated)};
  pipeline.model =
      std::make_unique<WordPiece>(pipeline.vocabulary, pipeline.unknown, blank, "", max_characters);
  DecoderStep spaces{DecoderStep::Kind::metaspace};
  spaces.text = blank;
  spaces.drops_first = true;
  pipeline.decoder = {spaces};
  const TokenId begin = from.cls_token_id.has_value()
                            ? known(from.cls_token_id, from, "cls_token_id")
                            : pipeline.begin_of_text;
  const TokenId end = known(from.separator_token_id, from, "seperator_token_id");
  pipeline.post = around(begin, end);
  using Item = TemplateItem;
  pipeline.post.pair = pipeline.post.single;  // [CLS] A [SEP] B [SEP]
  pipeline.post.pair.push_back({Item::Kind::second, 1, no_token});
  pipeline.post.pair.push_back({Item::Kind::token, 1, end});
  return pipeline;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// RWKV's own tokens have up to 128. Each byte of a text may look at as many that follow.
constexpr size_t most_token_bytes = 1024;

/// The bytes of a token that is written as a literal of Python: `\xe2\x82`, `\n`, `\\`.
std::string bytes_of_literal(const std::string& token) {
  std::string bytes;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '\\' || i + 1 == token.size()) {
      bytes += token[i];
      continue;
    }
    const char kind = token[++i];
    const bool is_hex = kind == 'x' && i + 2 < token.size() && hex_digit(token[i + 1]) >= 0 &&
                        hex_digit(token[i + 2]) >= 0;
    if (kind == 'x' && !is_hex)
      refuse("the token " + token.substr(0, 100) + " has a \\x without two digits");
    if (is_hex) {
      bytes += static_cast<char>(hex_digit(token[i + 1]) * 16 + hex_digit(token[i + 2]));
      i += 2;
    } else {
      bytes += kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind == 't' ? '\t' : kind;
    }
  }
  return bytes;
}

// Tokens are bytes that need not be characters. The vocabulary writes them as visible characters.
Pipeline read_longest_match(GgufVocabulary from) {
  std::vector<std::string> bytes(from.tokens.size());
  for (size_t i = 0; i < from.tokens.size(); ++i) {
    const bool is_normal = i >= from.token_type.size() ||
                           from.token_type[i] == static_cast<int32_t>(PieceType::normal);
    if (!is_normal) continue;
    bytes[i] = bytes_of_literal(from.tokens[i]);
    if (bytes[i].size() > most_token_bytes)
      refuse("token " + std::to_string(i) + " has " + std::to_string(bytes[i].size()) + " bytes; " +
             std::to_string(most_token_bytes) + " are allowed");
    from.tokens[i].clear();
    for (const char byte : bytes[i])
      from.tokens[i] += visible_byte(static_cast<unsigned char>(byte));
  }
  Pipeline pipeline;
  set_vocabulary(from, pipeline);
  pipeline.model = std::make_unique<LongestMatch>(bytes, pipeline.unknown);
  pipeline.decoder = {{DecoderStep::Kind::byte_level}};
  pipeline.post = around(from.add_bos_token.value_or(false) ? pipeline.begin_of_text : no_token,
                         from.add_eos_token.value_or(false) ? pipeline.end_of_text : no_token);
  return pipeline;
}

}  // namespace

Pipeline read_gguf_vocabulary(const GgufVocabulary& from) {
  if (from.model == "gpt2") return read_byte_level(from);
  if (from.model == "llama") return read_pieces(from, false);
  if (from.model == "t5") return read_pieces(from, true);
  if (from.model == "bert") return read_bert(from);
  if (from.model == "rwkv") return read_longest_match(from);
  leave_out("tokenizer.ggml.model = \"" + from.model + "\" is not gpt2, llama, t5, bert or rwkv");
}

}  // namespace taper::llm
