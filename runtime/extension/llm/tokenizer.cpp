#include "taper/runtime/extension/llm/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/encoder.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("the file cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The tokens of one text, with the cache if no other thread has it.
std::vector<Token> encode_text(const Pipeline& pipeline, WordCache& cache, std::string_view text,
                               const EncodeOptions& options) {
  const bool tracked = options.offsets;
  const std::unique_lock<std::mutex> lock(cache.mutex(), std::try_to_lock);
  WordCache* mine = lock.owns_lock() ? &cache : nullptr;
  std::vector<Token> tokens =
      is_valid_utf8(text)
          ? tokens_of(pipeline, text, options.parse_special_tokens, tracked, mine)
          : tokens_of(pipeline, valid_utf8(text), options.parse_special_tokens, tracked, mine);
  if (tracked && pipeline.post.trims_offsets) trim_ranges(pipeline, tokens);
  return tokens;
}

void append(const std::vector<Token>& tokens, int32_t type_id, bool offsets, Encoding& encoding) {
  for (const Token& token : tokens) {
    encoding.ids.push_back(token.id);
    encoding.type_ids.push_back(type_id);
    if (offsets) encoding.offsets.push_back({token.range.begin, token.range.end});
  }
}

Encoding fill_template(const std::vector<TemplateItem>& items, const std::vector<Token>& first,
                       const std::vector<Token>& second, const EncodeOptions& options) {
  Encoding encoding;
  for (const TemplateItem& item : items) {
    if (item.kind == TemplateItem::Kind::token) {
      if (options.add_special_tokens) {
        append({{item.id, {0, 0}}}, item.type_id, options.offsets, encoding);
      }
    } else {
      append(item.kind == TemplateItem::Kind::first ? first : second, item.type_id, options.offsets,
             encoding);
    }
  }
  return encoding;
}

// The file to read, if `path` is a folder.
std::filesystem::path tokenizer_file(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (std::filesystem::exists(path / name)) return path / name;
  }
  refuse(path.string() + " has neither tokenizer.json nor tokenizer.model");
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos;) {
    text.replace(at, what.size(), by);
    at += by.size();
  }
}

// What one step makes of a token inside of a text.
std::string bytes_inside(const DecoderStep& step, std::string token) {
  switch (step.kind) {
    case DecoderStep::Kind::byte_level: {
      std::string bytes;
      for (size_t at = 0; at < token.size(); at += character_length(token[at])) {
        const int byte = byte_of_visible(character_at(token, at));
        if (byte < 0) return token;
        bytes += static_cast<char>(byte);
      }
      return bytes;
    }
    case DecoderStep::Kind::byte_fallback: {
      const int byte = byte_of_token(token);
      return byte < 0 ? token : std::string(1, static_cast<char>(byte));
    }
    case DecoderStep::Kind::replace: {
      if (!is_valid_utf8(token)) return token;  // a part of a character
      Text text{std::move(token), false, {}};
      replace(*step.pattern, step.by)(text);
      return std::move(text.bytes);
    }
    case DecoderStep::Kind::metaspace:
    case DecoderStep::Kind::suffix:
      replace_all(token, step.text, " ");
      return token;
    case DecoderStep::Kind::word_piece:
      if (token.substr(0, step.text.size()) == step.text) return token.substr(step.text.size());
      return " " + token;
    case DecoderStep::Kind::words:
      return " " + token;
    default:
      return token;
  }
}

}  // namespace

Tokenizer::Tokenizer(Pipeline pipeline)
    : pipeline_(std::make_shared<const Pipeline>(std::move(pipeline))),
      cache_(std::make_shared<WordCache>()) {}

Result<Tokenizer> Tokenizer::load(const std::string& path, std::string* message) {
  return guarded<Tokenizer>(message, [&] {
    const std::filesystem::path file = tokenizer_file(path);
    try {
      const std::string bytes = read_file(file);
      const bool json = file.extension() == ".json";
      return Tokenizer(json ? read_tokenizer_json(bytes) : read_sentencepiece(bytes));
    } catch (Failure& failure) {
      failure.why = file.string() + ": " + failure.why;
      throw;
    }
  });
}

Result<Tokenizer> Tokenizer::from_json(std::string_view text, std::string* message) {
  return guarded<Tokenizer>(message, [&] { return Tokenizer(read_tokenizer_json(text)); });
}

Result<Tokenizer> Tokenizer::from_sentencepiece(std::string_view bytes, std::string* message) {
  return guarded<Tokenizer>(message, [&] { return Tokenizer(read_sentencepiece(bytes)); });
}

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocabulary& vocabulary, std::string* message) {
  return guarded<Tokenizer>(message, [&] { return Tokenizer(read_gguf_vocabulary(vocabulary)); });
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  EncodeOptions without_offsets = options;
  without_offsets.offsets = false;
  return encode_with_details(text, without_offsets).ids;
}

Encoding Tokenizer::encode_with_details(std::string_view text, const EncodeOptions& options) const {
  return fill_template(pipeline_->post.single, encode_text(*pipeline_, *cache_, text, options), {},
                       options);
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  return fill_template(pipeline_->post.pair, encode_text(*pipeline_, *cache_, first, options),
                       encode_text(*pipeline_, *cache_, second, options), options);
}

std::string Tokenizer::decode(Span<const TokenId> ids, bool skip_special_tokens) const {
  StreamDecoder decoder(*this, skip_special_tokens);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

TokenId Tokenizer::vocabulary_size() const { return pipeline_->vocabulary->size(); }

std::string_view Tokenizer::token(TokenId id) const {
  if (!pipeline_->vocabulary->contains(id)) return {};
  return pipeline_->vocabulary->token(id);
}

TokenId Tokenizer::id_of(std::string_view token) const {
  return pipeline_->vocabulary->find(token);
}

bool Tokenizer::is_special(TokenId id) const { return pipeline_->added.is_special(id); }

std::string Tokenizer::bytes_of(TokenId id) const {
  if (is_special(id)) return {};
  if (const AddedToken* added = pipeline_->added.find(id)) return added->content;
  std::string bytes(token(id));
  if (bytes.empty()) return bytes;
  for (const DecoderStep& step : pipeline_->decoder) bytes = bytes_inside(step, std::move(bytes));
  return bytes;
}

TokenId Tokenizer::begin_of_text() const { return pipeline_->begin_of_text; }
TokenId Tokenizer::end_of_text() const { return pipeline_->end_of_text; }

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer),
      stream_(std::make_unique<DecoderStream>(tokenizer.pipeline_->decoder)),
      skip_special_tokens_(skip_special_tokens) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(TokenId id) {
  const std::string_view token = tokenizer_.token(id);
  if (token.empty() && tokenizer_.pipeline_->added.find(id) == nullptr) {
    // an empty text may still be a token, which a decoder counts
    if (!tokenizer_.pipeline_->vocabulary->contains(id)) return {};
  }
  if (skip_special_tokens_ && tokenizer_.is_special(id)) return {};
  return stream_->push(std::string(token));
}

std::string StreamDecoder::finish() { return stream_->finish(); }

}  // namespace taper::llm
