#include "taper/runtime/extension/llm/tokenizer/json_parts.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/precompiled.h"

namespace taper::llm {
namespace {

using Json = nlohmann::json;

// Parts nest in sequences, of which files have one or two.
constexpr int max_nesting = 16;

constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Calls `read(part, kind)` for the part of the root, or for each element of a sequence.
template <class Read>
void for_each_part(const Json& part, const char* list, const std::string& where, Read read,
                   int depth = 0) {
  if (part.is_null()) return;
  if (!part.is_object()) refuse(where + " is not an object");
  if (depth > max_nesting) refuse(where + " is nested too deep");
  const std::string kind = text_of(part, "type", where);
  if (kind != "Sequence") return read(part, kind);
  const auto parts = part.find(list);
  if (parts == part.end() || !parts->is_array()) refuse(where + "." + list + " is not a list");
  for (const Json& inner : *parts) for_each_part(inner, list, where, read, depth + 1);
}

const Json& member(const Json& object, const char* name) {
  static const Json null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

// {"String": "…"} or {"Regex": "…"}
Regex pattern_of(const Json& part, const std::string& where) {
  const Json& pattern = member(part, "pattern");
  if (pattern.is_object() && pattern.contains("Regex")) {
    return Regex(text_of(pattern, "Regex", where));
  }
  if (pattern.is_object() && pattern.contains("String")) {
    return Regex(quoted_pattern(text_of(pattern, "String", where)));
  }
  refuse(where + ".pattern is neither a String nor a Regex");
}

SplitBehavior behavior_of(const Json& part, const std::string& where) {
  const std::string name = text_of(part, "behavior", where);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::with_previous;
  if (name == "MergedWithNext") return SplitBehavior::with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  refuse(where + ": no such behavior as " + name);
}

void read_bert_normalizer(const Json& part, std::vector<Normalizer>& out) {
  const bool lowers = flag_of(part, "lowercase", true);
  if (flag_of(part, "clean_text", true)) out.push_back(clean_text());
  if (flag_of(part, "handle_chinese_chars", true)) out.push_back(space_ideographs());
  if (flag_of(part, "strip_accents", lowers)) {
    out.push_back(unicode_normalizer(NormalForm::nfd));
    out.push_back(strip_accents());
  }
  if (lowers) out.push_back(lowercase());
}

void read_one_normalizer(const Json& part, const std::string& kind, std::vector<Normalizer>& out) {
  const std::string where = "normalizer " + kind;
  if (kind == "NFC") return out.push_back(unicode_normalizer(NormalForm::nfc));
  if (kind == "NFD") return out.push_back(unicode_normalizer(NormalForm::nfd));
  if (kind == "NFKC") return out.push_back(unicode_normalizer(NormalForm::nfkc));
  if (kind == "NFKD") return out.push_back(unicode_normalizer(NormalForm::nfkd));
  if (kind == "Lowercase") return out.push_back(lowercase());
  if (kind == "StripAccents") return out.push_back(strip_accents());
  if (kind == "Prepend") return out.push_back(prepend(text_of(part, "prepend", where)));
  if (kind == "BertNormalizer") return read_bert_normalizer(part, out);
  if (kind == "ByteLevel") return out.push_back(visible_bytes());
  if (kind == "Replace") {
    return out.push_back(replace(pattern_of(part, where), text_of(part, "content", where)));
  }
  if (kind == "Strip") {
    return out.push_back(
        strip(flag_of(part, "strip_left", true), flag_of(part, "strip_right", true)));
  }
  if (kind == "Precompiled") {
    const std::string map = from_base64(text_of(part, "precompiled_charsmap", where));
    return out.push_back(precompiled(map, CharacterMapRules::hugging_face));
  }
  leave_out(where + " is not supported");
}

PreTokenizer read_metaspace(const Json& part, const std::string& where) {
  const std::string scheme = optional_text_of(part, "prepend_scheme");
  const bool always =
      scheme == "always" || (scheme.empty() && flag_of(part, "add_prefix_space", true));
  return metaspace(text_of(part, "replacement", where),
                   scheme == "first" ? PrependScheme::first
                   : always          ? PrependScheme::always
                                     : PrependScheme::never,
                   flag_of(part, "split", true));
}

void read_one_pre_tokenizer(const Json& part, const std::string& kind,
                            std::vector<PreTokenizer>& out) {
  const std::string where = "pre_tokenizer " + kind;
  const auto is_number = [](char32_t c) { return is_numeric(c); };
  if (kind == "ByteLevel") {
    if (flag_of(part, "add_prefix_space", false)) out.push_back(add_prefix_space());
    if (flag_of(part, "use_regex", true)) {
      out.push_back(split(Regex(gpt2_pattern), SplitBehavior::isolated, false));
    }
    return;
  }
  if (kind == "Split") {
    return out.push_back(
        split(pattern_of(part, where), behavior_of(part, where), flag_of(part, "invert", false)));
  }
  if (kind == "Digits") {
    const bool individual = flag_of(part, "individual_digits", false);
    return out.push_back(
        split(is_number, individual ? SplitBehavior::isolated : SplitBehavior::contiguous));
  }
  if (kind == "Metaspace") return out.push_back(read_metaspace(part, where));
  if (kind == "Whitespace") {
    return out.push_back(split(Regex(R"(\w+|[^\w\s]+)"), SplitBehavior::removed, true));
  }
  if (kind == "WhitespaceSplit") return out.push_back(split(is_whitespace, SplitBehavior::removed));
  if (kind == "Punctuation") {
    const bool named = !optional_text_of(part, "behavior").empty();
    return out.push_back(
        split(is_punctuation, named ? behavior_of(part, where) : SplitBehavior::isolated));
  }
  if (kind == "BertPreTokenizer") {
    out.push_back(split(is_whitespace, SplitBehavior::removed));
    return out.push_back(split(is_punctuation, SplitBehavior::isolated));
  }
  if (kind == "CharDelimiterSplit") {
    const std::string delimiter = text_of(part, "delimiter", where);
    return out.push_back(split(Regex(quoted_pattern(delimiter)), SplitBehavior::removed, false));
  }
  leave_out(where + " is not supported");
}

TokenId special_id(const Json& part, const char* name, const std::string& where) {
  const Json& pair = member(part, name);
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_integer()) {
    refuse(where + "." + name + " is not [token, id]");
  }
  return pair[1].get<TokenId>();
}

// BERT and RoBERTa: [CLS] A [SEP], then B [SEP], which RoBERTa puts another [SEP] before.
void read_sentence_pair(const Json& part, const std::string& kind, PostProcessor& post) {
  using Item = TemplateItem;
  const TokenId begin = special_id(part, "cls", kind), end = special_id(part, "sep", kind);
  const bool roberta = kind == "RobertaProcessing";
  post.single = {
      {Item::Kind::token, 0, begin}, {Item::Kind::first, 0, no_token}, {Item::Kind::token, 0, end}};
  post.pair = post.single;
  if (roberta) post.pair.push_back({Item::Kind::token, 0, end});
  const int32_t type = roberta ? 0 : 1;
  post.pair.push_back({Item::Kind::second, type, no_token});
  post.pair.push_back({Item::Kind::token, type, end});
}

void append_special(const Json& special, const std::string& name, int32_t type,
                    std::vector<TemplateItem>& items) {
  const Json& entry = member(special, name.c_str());
  if (!entry.is_object() || !member(entry, "ids").is_array()) {
    refuse("post_processor: the template names \"" + name + "\", which special_tokens lacks");
  }
  for (const Json& id : entry["ids"]) {
    if (!id.is_number_integer()) refuse("post_processor: an id of \"" + name + "\" is no number");
    items.push_back({TemplateItem::Kind::token, type, id.get<TokenId>()});
  }
}

std::vector<TemplateItem> read_template(const Json& part, const char* name) {
  const Json& list = member(part, name);
  if (!list.is_array()) refuse(std::string("post_processor.") + name + " is not a list");
  std::vector<TemplateItem> items;
  for (const Json& entry : list) {
    const Json& special = member(entry, "SpecialToken");
    const Json& sequence = member(entry, "Sequence");
    const Json& item = special.is_object() ? special : sequence;
    if (!item.is_object()) refuse("post_processor: an element is no SpecialToken and no Sequence");
    const std::string id = text_of(item, "id", "post_processor");
    const auto type = static_cast<int32_t>(number_of(item, "type_id", 0));
    if (special.is_object()) {
      append_special(member(part, "special_tokens"), id, type, items);
    } else {
      items.push_back(
          {id == "A" ? TemplateItem::Kind::first : TemplateItem::Kind::second, type, no_token});
    }
  }
  return items;
}

DecoderStep replace_step(Regex pattern, std::string by) {
  DecoderStep step{DecoderStep::Kind::replace};
  step.pattern = std::move(pattern);
  step.by = std::move(by);
  return step;
}

DecoderStep read_one_decoder(const Json& part, const std::string& kind) {
  using Kind = DecoderStep::Kind;
  const std::string where = "decoder " + kind;
  if (kind == "ByteLevel") return {Kind::byte_level};
  if (kind == "ByteFallback") return {Kind::byte_fallback};
  if (kind == "Fuse") return {Kind::fuse};
  if (kind == "Replace") {
    return replace_step(pattern_of(part, where), text_of(part, "content", where));
  }
  DecoderStep step{Kind::strip};
  if (kind == "Strip") {
    step.text = text_of(part, "content", where);
    step.start = static_cast<size_t>(std::max<int64_t>(number_of(part, "start", 0), 0));
    step.stop = static_cast<size_t>(std::max<int64_t>(number_of(part, "stop", 0), 0));
    constexpr size_t most = 1024;  // the stream holds so many back
    if (step.stop > most) refuse(where + ".stop is above " + std::to_string(most));
  } else if (kind == "Metaspace") {
    step.kind = Kind::metaspace;
    step.text = text_of(part, "replacement", where);
    step.drops_first = optional_text_of(part, "prepend_scheme") != "never";
  } else if (kind == "WordPiece") {
    step.kind = Kind::word_piece;
    step.text = text_of(part, "prefix", where);
    step.cleans_up = flag_of(part, "cleanup", true);
  } else if (kind == "BPEDecoder") {
    step.kind = Kind::suffix;
    step.text = text_of(part, "suffix", where);
  } else {
    leave_out(where + " is not supported");
  }
  return step;
}

}  // namespace

std::string text_of(const Json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) refuse(where + "." + name + " is not a text");
  return found->get<std::string>();
}

std::string optional_text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

bool flag_of(const Json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_boolean() ? otherwise : found->get<bool>();
}

int64_t number_of(const Json& object, const char* name, int64_t otherwise) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number_integer() ? otherwise : found->get<int64_t>();
}

void read_normalizer(const Json& root, Pipeline& pipeline) {
  for_each_part(member(root, "normalizer"), "normalizers", "normalizer",
                [&](const Json& part, const std::string& kind) {
                  read_one_normalizer(part, kind, pipeline.normalizers);
                });
}

bool read_pre_tokenizer(const Json& root, bool model_reads_bytes, Pipeline& pipeline) {
  bool bytes = false;
  for_each_part(member(root, "pre_tokenizer"), "pretokenizers", "pre_tokenizer",
                [&](const Json& part, const std::string& kind) {
                  if (bytes) leave_out("pre_tokenizer " + kind + " stands behind ByteLevel");
                  read_one_pre_tokenizer(part, kind, pipeline.pre_tokenizers);
                  bytes = kind == "ByteLevel";
                });
  if (bytes && !model_reads_bytes) pipeline.pre_tokenizers.push_back(change_words(visible_bytes()));
  return bytes;
}

void read_post_processor(const Json& root, Pipeline& pipeline) {
  PostProcessor& post = pipeline.post;
  for_each_part(member(root, "post_processor"), "processors", "post_processor",
                [&](const Json& part, const std::string& kind) {
                  if (kind == "ByteLevel" || kind == "RobertaProcessing") {
                    post.trims_offsets = flag_of(part, "trim_offsets", true);
                    post.keeps_first_blank = flag_of(part, "add_prefix_space", true);
                  }
                  if (kind == "TemplateProcessing") {
                    post.single = read_template(part, "single");
                    post.pair = read_template(part, "pair");
                  } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
                    read_sentence_pair(part, kind, post);
                  } else if (kind != "ByteLevel") {
                    leave_out("post_processor " + kind + " is not supported");
                  }
                });
}

void read_decoder(const Json& root, Pipeline& pipeline) {
  const Json& decoder = member(root, "decoder");
  if (decoder.is_null()) pipeline.decoder.push_back({DecoderStep::Kind::words});
  for_each_part(decoder, "decoders", "decoder", [&](const Json& part, const std::string& kind) {
    pipeline.decoder.push_back(read_one_decoder(part, kind));
  });
}

}  // namespace taper::llm
