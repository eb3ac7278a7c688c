#include "taper/runtime/extension/llm/tokenizer/pieces.h"

#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/precompiled.h"
#include "taper/runtime/extension/llm/tokenizer/unigram.h"

namespace taper::llm {
namespace {

constexpr const char* blank = "\u2581";  // how SentencePiece writes it

void set_normalizers(const Pieces& pieces, Pipeline& pipeline) {
  std::vector<Normalizer>& steps = pipeline.normalizers;
  if (!pieces.character_map.empty()) {
    steps.push_back(precompiled(pieces.character_map, CharacterMapRules::sentencepiece));
  }
  if (pieces.removes_extra_blanks) steps.push_back(collapse_blanks());
  if (pieces.adds_prefix) steps.push_back(prepend(blank));
  steps.push_back(replace(Regex(quoted_pattern(" ")), blank));
}

void set_decoder(const Pieces& pieces, Pipeline& pipeline) {
  DecoderStep spaces{DecoderStep::Kind::replace};
  spaces.pattern = Regex(quoted_pattern(blank));
  spaces.by = " ";
  pipeline.decoder = {spaces, {DecoderStep::Kind::byte_fallback}, {DecoderStep::Kind::fuse}};
  if (!pieces.adds_prefix) return;
  DecoderStep strip{DecoderStep::Kind::strip};
  strip.text = " ";
  strip.start = 1;
  pipeline.decoder.push_back(strip);
}

bool has_type(const Pieces& pieces, size_t id, PieceType type) {
  return pieces.types[id] == static_cast<int32_t>(type);
}

std::unique_ptr<WordModel> unigram_of(const Pieces& pieces, const Pipeline& pipeline) {
  const size_t count = pieces.tokens.size();
  std::vector<bool> usable(count);
  for (size_t i = 0; i < count; ++i) {
    usable[i] =
        has_type(pieces, i, PieceType::normal) || has_type(pieces, i, PieceType::user_defined);
  }
  return std::make_unique<Unigram>(
      pipeline.vocabulary, std::vector<double>(pieces.scores.begin(), pieces.scores.end()), usable,
      pieces.unknown, /*byte_fallback=*/true, ScoreSums::in_float);
}

}  // namespace

std::vector<AddedToken> added_by_type(const std::vector<std::string>& tokens,
                                      const std::vector<int32_t>& types) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < tokens.size() && i < types.size(); ++i) {
    const auto type = static_cast<PieceType>(types[i]);
    const bool special = type == PieceType::control || type == PieceType::unknown;
    if ((special || type == PieceType::user_defined) && !tokens[i].empty()) {
      added.push_back({static_cast<TokenId>(i), tokens[i], special});
    }
  }
  return added;
}

PostProcessor around(TokenId begin, TokenId end) {
  using Item = TemplateItem;
  PostProcessor post;
  post.single.clear();
  post.pair.clear();
  for (const int32_t type : {0, 1}) {
    std::vector<TemplateItem> items;
    if (begin != no_token) items.push_back({Item::Kind::token, type, begin});
    items.push_back({type == 0 ? Item::Kind::first : Item::Kind::second, type, no_token});
    if (end != no_token) items.push_back({Item::Kind::token, type, end});
    if (type == 0) post.single = items;
    post.pair.insert(post.pair.end(), items.begin(), items.end());
  }
  return post;
}

void cut_long_words(const PairTable& merges, const BpeOptions& options, Pipeline& pipeline) {
  const bool plain =
      !options.ignore_merges && options.end_suffix.empty() && options.continuing_prefix.empty();
  if (plain && cuts_before(blank, *pipeline.vocabulary, merges)) {
    pipeline.pre_tokenizers.push_back(cut_before(blank));
  }
}

Pipeline pipeline_of(Pieces pieces) {
  const size_t count = pieces.tokens.size();
  if (count == 0) refuse("the vocabulary has no tokens");
  if (pieces.scores.size() != count || pieces.types.size() != count) {
    refuse("there are " + std::to_string(count) + " tokens, but " +
           std::to_string(pieces.scores.size()) + " scores and " +
           std::to_string(pieces.types.size()) + " types");
  }
  Pipeline pipeline;
  pipeline.vocabulary = std::make_shared<const Vocabulary>(pieces.tokens);
  set_normalizers(pieces, pipeline);
  set_decoder(pieces, pipeline);
  pipeline.added = AddedTokens(added_by_type(pieces.tokens, pieces.types), pipeline.normalizers);
  pipeline.unknown = pieces.unknown;
  pipeline.begin_of_text = pieces.begin;
  pipeline.end_of_text = pieces.end;
  pipeline.post =
      around(pieces.adds_begin ? pieces.begin : no_token, pieces.adds_end ? pieces.end : no_token);
  if (pieces.unigram) {
    pipeline.model = unigram_of(pieces, pipeline);
    return pipeline;
  }
  BpeOptions options;
  options.byte_fallback = true;
  options.fuse_unknown = true;
  options.unknown = pieces.unknown;
  PairTable merges = merges_by_score(*pipeline.vocabulary, pieces.scores);
  cut_long_words(merges, options, pipeline);
  pipeline.model = std::make_unique<Bpe>(pipeline.vocabulary, std::move(merges), options);
  return pipeline;
}

}  // namespace taper::llm
