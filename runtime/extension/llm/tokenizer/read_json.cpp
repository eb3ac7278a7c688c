#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/bpe.h"
#include "taper/runtime/extension/llm/tokenizer/json_parts.h"
#include "taper/runtime/extension/llm/tokenizer/pieces.h"
#include "taper/runtime/extension/llm/tokenizer/unigram.h"
#include "taper/runtime/extension/llm/tokenizer/wordpiece.h"

namespace taper::llm {
namespace {

using Json = nlohmann::json;

// An id far above all others would make a vocabulary of empty texts.
constexpr int64_t max_vocabulary = 1 << 24;

size_t checked_id(const Json& id, const std::string& token) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= max_vocabulary) {
    refuse("the id of token \"" + token + "\" is not a number from 0 to " +
           std::to_string(max_vocabulary - 1));
  }
  return id.get<size_t>();
}

void put(std::vector<std::string>& tokens, size_t id, const std::string& token) {
  if (tokens.size() <= id) tokens.resize(id + 1);
  tokens[id] = token;
}

// The tokens of the model: an object of ids, or a list of [token, score].
std::vector<std::string> model_tokens(const Json& vocab, std::vector<double>& scores) {
  std::vector<std::string> tokens;
  if (vocab.is_object()) {
    for (const auto& [token, id] : vocab.items()) put(tokens, checked_id(id, token), token);
    return tokens;
  }
  if (!vocab.is_array()) refuse("model.vocab is neither an object nor a list");
  for (const Json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      refuse("model.vocab[" + std::to_string(tokens.size()) + "] is not [token, score]");
    }
    tokens.push_back(entry[0].get<std::string>());
    scores.push_back(entry[1].get<double>());
  }
  return tokens;
}

std::vector<AddedToken> added_tokens(const Json& root) {
  std::vector<AddedToken> tokens;
  const auto list = root.find("added_tokens");
  if (list == root.end() || list->is_null()) return tokens;
  if (!list->is_array()) refuse("added_tokens is not a list");
  for (const Json& entry : *list) {
    if (!entry.is_object()) refuse("added_tokens has an element that is not an object");
    AddedToken token;
    token.content = text_of(entry, "content", "added_tokens");
    const auto id = entry.find("id");
    token.id = static_cast<TokenId>(checked_id(id == entry.end() ? Json() : *id, token.content));
    token.special = flag_of(entry, "special", false);
    token.normalized = flag_of(entry, "normalized", !token.special);
    token.single_word = flag_of(entry, "single_word", false);
    token.strips_left = flag_of(entry, "lstrip", false);
    token.strips_right = flag_of(entry, "rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::vector<std::pair<std::string, std::string>> merges_of(const Json& model,
                                                           const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string, std::string>> merges;
  const auto list = model.find("merges");
  if (list == model.end() || !list->is_array()) refuse("model.merges is not a list");
  for (const Json& entry : *list) {
    if (entry.is_string()) {
      merges.push_back(parse_merge(entry.get_ref<const std::string&>(), vocabulary));
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      merges.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
    } else {
      refuse("model.merges[" + std::to_string(merges.size()) + "] is not a pair of tokens");
    }
  }
  return merges;
}

TokenId unknown_of(const Json& model, const Vocabulary& vocabulary) {
  const std::string unknown = optional_text_of(model, "unk_token");
  return unknown.empty() ? no_token : vocabulary.find(unknown);
}

std::unique_ptr<WordModel> read_bpe(const Json& model, Pipeline& pipeline, bool byte_level) {
  BpeOptions options;
  options.byte_level = byte_level;
  options.byte_fallback = flag_of(model, "byte_fallback", false);
  options.fuse_unknown = flag_of(model, "fuse_unk", false);
  options.ignore_merges = flag_of(model, "ignore_merges", false);
  options.continuing_prefix = optional_text_of(model, "continuing_subword_prefix");
  options.end_suffix = optional_text_of(model, "end_of_word_suffix");
  options.unknown = pipeline.unknown = unknown_of(model, *pipeline.vocabulary);
  PairTable merges = merges_in_order(*pipeline.vocabulary, merges_of(model, *pipeline.vocabulary),
                                     options.continuing_prefix);
  if (!byte_level) cut_long_words(merges, options, pipeline);
  return std::make_unique<Bpe>(pipeline.vocabulary, std::move(merges), std::move(options));
}

std::unique_ptr<WordModel> read_unigram(const Json& model, Pipeline& pipeline,
                                        std::vector<double> scores) {
  const size_t of_model = scores.size();
  const auto all = static_cast<size_t>(pipeline.vocabulary->size());
  std::vector<bool> usable(all, false);
  std::fill(usable.begin(), usable.begin() + static_cast<ptrdiff_t>(of_model), true);
  scores.resize(all);
  const auto unknown = model.find("unk_id");
  if (unknown != model.end() && unknown->is_number_integer() &&
      pipeline.vocabulary->contains(unknown->get<TokenId>())) {
    pipeline.unknown = unknown->get<TokenId>();
  }
  return std::make_unique<Unigram>(pipeline.vocabulary, std::move(scores), usable, pipeline.unknown,
                                   flag_of(model, "byte_fallback", false), ScoreSums::in_double);
}

std::unique_ptr<WordModel> read_word_piece(const Json& model, Pipeline& pipeline) {
  pipeline.unknown = unknown_of(model, *pipeline.vocabulary);
  const auto most = static_cast<size_t>(number_of(model, "max_input_chars_per_word", 100));
  return std::make_unique<WordPiece>(pipeline.vocabulary, pipeline.unknown, "",
                                     optional_text_of(model, "continuing_subword_prefix"), most);
}

// Files from before 2020 do not name the kind.
std::string kind_of_model(const Json& model) {
  const std::string kind = optional_text_of(model, "type");
  if (!kind.empty()) return kind;
  if (model.contains("merges")) return "BPE";
  return model.contains("unk_id") ? "Unigram" : "WordPiece";
}

}  // namespace

Pipeline read_tokenizer_json(std::string_view text) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object()) refuse("this is not a JSON object");
  const auto found = root.find("model");
  if (found == root.end() || !found->is_object()) refuse("`model` is not an object");
  const Json& model = *found;

  Pipeline pipeline;
  std::vector<double> scores;
  std::vector<std::string> tokens =
      model_tokens(model.contains("vocab") ? model["vocab"] : Json(), scores);
  std::vector<AddedToken> added = added_tokens(root);
  for (const AddedToken& token : added) {
    put(tokens, static_cast<size_t>(token.id), token.content);
  }
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(tokens));

  const std::string kind = kind_of_model(model);
  read_normalizer(root, pipeline);
  const bool byte_level = read_pre_tokenizer(root, kind == "BPE", pipeline);
  pipeline.added = AddedTokens(std::move(added), pipeline.normalizers);
  if (kind == "BPE") {
    pipeline.model = read_bpe(model, pipeline, byte_level);
  } else if (kind == "Unigram") {
    pipeline.model = read_unigram(model, pipeline, std::move(scores));
  } else if (kind == "WordPiece") {
    pipeline.model = read_word_piece(model, pipeline);
  } else if (kind == "WordLevel") {
    pipeline.unknown = unknown_of(model, *pipeline.vocabulary);
    pipeline.model = std::make_unique<WordLevel>(pipeline.vocabulary, pipeline.unknown);
  } else {
    leave_out("model: no such kind of tokenizer as " + kind);
  }
  read_post_processor(root, pipeline);
  read_decoder(root, pipeline);
  return pipeline;
}

}  // namespace taper::llm
