#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/gguf_vocabulary.h"
#include "taper/runtime/extension/llm/tokenizer/added_tokens.h"
#include "taper/runtime/extension/llm/tokenizer/decoder.h"
#include "taper/runtime/extension/llm/tokenizer/model.h"
#include "taper/runtime/extension/llm/tokenizer/normalizer.h"
#include "taper/runtime/extension/llm/tokenizer/pre_tokenizer.h"

namespace taper::llm {

/// An element of a template: a special token, or the tokens of a text.
struct TemplateItem {
  enum class Kind : uint8_t { token, first, second };
  Kind kind;
  int32_t type_id;
  TokenId id;
};

/// What stands around the tokens of one text, and of two.
struct PostProcessor {
  std::vector<TemplateItem> single = {{TemplateItem::Kind::first, 0, no_token}};
  std::vector<TemplateItem> pair = {{TemplateItem::Kind::first, 0, no_token},
                                    {TemplateItem::Kind::second, 1, no_token}};
  bool trims_offsets = false;      ///< offsets leave white space at the ends of tokens out
  bool keeps_first_blank = false;  ///< but for the blank that the tokenizer itself put in front
};

/// All parts of a tokenizer, in the order in which they work.
struct Pipeline {
  std::shared_ptr<const Vocabulary> vocabulary;
  AddedTokens added;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::unique_ptr<const WordModel> model;
  PostProcessor post;
  std::vector<DecoderStep> decoder;
  TokenId unknown = no_token, begin_of_text = no_token, end_of_text = no_token;
};

/// These throw a Failure.
Pipeline read_tokenizer_json(std::string_view text);
Pipeline read_sentencepiece(std::string_view bytes);
Pipeline read_gguf_vocabulary(const GgufVocabulary& vocabulary);

}  // namespace taper::llm
