#include "taper/runtime/extension/llm/tokenizer/encoder.h"

#include <algorithm>
#include <utility>

namespace taper::llm {
namespace {

// Takes one input through the parts of a pipeline.
class Encoder {
 public:
  Encoder(const Pipeline& pipeline, bool parse_special, bool tracked, WordCache* cache)
      : pipeline_(pipeline), parse_special_(parse_special), tracked_(tracked), cache_(cache) {}

  std::vector<Token> run(std::string_view input) {
    for (const Section& section : pipeline_.added.find_in_input(input, parse_special_)) {
      if (section.id != no_token) {
        tokens_.push_back({section.id, section.range});
      } else {
        add_text(text_of(input, section.range, tracked_), section.range.begin == 0);
      }
    }
    return std::move(tokens_);
  }

 private:
  void add_text(Text text, bool starts_input) {
    for (const Normalizer& normalizer : pipeline_.normalizers) normalizer(text);
    if (!pipeline_.added.any_normalized()) return add_words(std::move(text), starts_input);
    for (const Section& section : pipeline_.added.find_in_normalized(text.bytes, parse_special_)) {
      if (section.id != no_token) {
        tokens_.push_back({section.id, origin(text, section.range)});
        continue;
      }
      TextBuilder builder(text);
      builder.copy(section.range);
      add_words(builder.finish(), starts_input && section.range.begin == 0);
    }
  }

  void add_words(Text text, bool starts_input) {
    if (text.bytes.empty()) return;
    const Range all{0, text.bytes.size()};
    Words words{std::move(text), {all}, starts_input};
    for (const PreTokenizer& pre_tokenizer : pipeline_.pre_tokenizers) pre_tokenizer(words);
    for (const Range& range : words.ranges) add_word(words.text, range);
  }

  void add_word(const Text& text, Range range) {
    const size_t first = tokens_.size();
    const std::string_view word = part(text.bytes, range);
    if (cache_ != nullptr) {
      cache_->tokenize(*pipeline_.model, word, tokens_);
    } else {
      pipeline_.model->tokenize(word, tokens_);
    }
    if (!tracked_) return;
    for (size_t i = first; i < tokens_.size(); ++i) {
      const Range inside = tokens_[i].range;
      tokens_[i].range = origin(text, {range.begin + inside.begin, range.begin + inside.end});
    }
  }

  Range origin(const Text& text, Range range) const {
    if (!tracked_ || range.size() == 0) return {};
    return {text.origins[range.begin].begin, text.origins[range.end - 1].end};
  }

  const Pipeline& pipeline_;
  bool parse_special_, tracked_;
  WordCache* cache_;
  std::vector<Token> tokens_;
};

bool is_blank(char32_t c) { return is_whitespace(c) || byte_of_visible(c) == ' '; }

}  // namespace

std::vector<Token> tokens_of(const Pipeline& pipeline, std::string_view input, bool parse_special,
                             bool tracked, WordCache* cache) {
  return Encoder(pipeline, parse_special, tracked, cache).run(input);
}

void trim_ranges(const Pipeline& pipeline, std::vector<Token>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!pipeline.vocabulary->contains(tokens[i].id)) continue;
    const std::string& token = pipeline.vocabulary->token(tokens[i].id);
    std::vector<bool> blanks;
    for (size_t at = 0; at < token.size(); at += character_length(token[at])) {
      blanks.push_back(is_blank(character_at(token, at)));
    }
    auto leading =
        static_cast<size_t>(std::find(blanks.begin(), blanks.end(), false) - blanks.begin());
    const auto trailing =
        static_cast<size_t>(std::find(blanks.rbegin(), blanks.rend(), false) - blanks.rbegin());
    Range& range = tokens[i].range;
    if (leading > 0 && pipeline.post.keeps_first_blank && (i == 0 || range.begin == 0)) --leading;
    range.begin = std::min(range.begin + leading, range.end);
    if (range.end >= trailing) range.end = std::max(range.end - trailing, range.begin);
  }
}

}  // namespace taper::llm
