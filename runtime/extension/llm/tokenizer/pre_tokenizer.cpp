#include "taper/runtime/extension/llm/tokenizer/pre_tokenizer.h"

#include <utility>

namespace taper::llm {
namespace {

struct Piece {
  Range range;
  bool delimiter;
};

// Receives the pieces of one word, in order, and writes ranges.
class Joiner {
 public:
  Joiner(SplitBehavior behavior, std::vector<Range>& out) : behavior_(behavior), out_(out) {}

  void begin_word() { first_ = true; }
  void add(const Piece& piece) {
    if (piece.range.size() == 0) return;
    if (behavior_ == SplitBehavior::removed && piece.delimiter) return;
    if (!first_ && joins(piece)) {
      out_.back().end = piece.range.end;
    } else {
      out_.push_back(piece.range);
    }
    first_ = false;
    previous_is_delimiter_ = piece.delimiter;
  }

 private:
  bool joins(const Piece& piece) const {
    switch (behavior_) {
      case SplitBehavior::with_previous:
        return piece.delimiter && !previous_is_delimiter_;
      case SplitBehavior::with_next:
        return !piece.delimiter && previous_is_delimiter_;
      case SplitBehavior::contiguous:
        return piece.delimiter == previous_is_delimiter_;
      default:
        return false;
    }
  }

  SplitBehavior behavior_;
  std::vector<Range>& out_;
  bool first_ = true, previous_is_delimiter_ = false;
};

// Cuts every word with `cut(word, joiner, offset)`.
template <class Cut>
void cut_words(Words& words, SplitBehavior behavior, Cut cut) {
  std::vector<Range> ranges;
  ranges.reserve(words.ranges.size() + words.text.bytes.size() / 4);
  Joiner joiner(behavior, ranges);
  for (const Range& range : words.ranges) {
    joiner.begin_word();
    cut(part(words.text.bytes, range), joiner, range.begin);
  }
  words.ranges = std::move(ranges);
}

// Writes the words again, each with what `change(builder, range)` makes of it.
template <class Change>
void rewrite_words(Words& words, Change change) {
  TextBuilder builder(words.text);
  std::vector<Range> ranges;
  for (const Range& range : words.ranges) {
    const size_t begin = builder.size();
    change(builder, range);
    if (builder.size() > begin) ranges.push_back({begin, builder.size()});
  }
  words.text = builder.finish();
  words.ranges = std::move(ranges);
}

}  // namespace

PreTokenizer split(Regex pattern, SplitBehavior behavior, bool invert) {
  return [pattern, behavior, invert](Words& words) {
    cut_words(words, behavior, [&](std::string_view word, Joiner& joiner, size_t offset) {
      Regex::Search search(pattern, word);
      size_t done = 0;
      for (Range match; search.next(match); done = match.end) {
        joiner.add({{offset + done, offset + match.begin}, invert});
        joiner.add({{offset + match.begin, offset + match.end}, !invert});
      }
      joiner.add({{offset + done, offset + word.size()}, invert});
    });
  };
}

PreTokenizer split(std::function<bool(char32_t)> is_delimiter, SplitBehavior behavior) {
  return [is_delimiter, behavior](Words& words) {
    cut_words(words, behavior, [&](std::string_view word, Joiner& joiner, size_t offset) {
      size_t done = 0;
      for (size_t at = 0; at < word.size();) {
        const size_t next = at + character_length(word[at]);
        if (is_delimiter(character_at(word, at))) {
          joiner.add({{offset + done, offset + at}, false});
          joiner.add({{offset + at, offset + next}, true});
          done = next;
        }
        at = next;
      }
      joiner.add({{offset + done, offset + word.size()}, false});
    });
  };
}

PreTokenizer metaspace(std::string replacement, PrependScheme scheme, bool splits) {
  const PreTokenizer splitter =
      split(Regex(quoted_pattern(replacement)), SplitBehavior::with_next, false);
  return [replacement, scheme, splits, splitter](Words& words) {
    rewrite_words(words, [&](TextBuilder& builder, Range range) {
      const std::string_view word = part(words.text.bytes, range);
      const bool starts_input = words.starts_input && range.begin == 0;
      const bool has_one = word[0] == ' ' || word.substr(0, replacement.size()) == replacement;
      if (!has_one &&
          (scheme == PrependScheme::always || (scheme == PrependScheme::first && starts_input))) {
        builder.put(replacement, range.begin);
      }
      for (size_t at = range.begin; at < range.end; ++at) {
        if (words.text.bytes[at] == ' ') {
          builder.put(replacement, at);
        } else {
          builder.copy({at, at + 1});
        }
      }
    });
    if (splits) splitter(words);
  };
}

PreTokenizer cut_before(std::string mark) {
  return [mark](Words& words) {
    std::vector<Range> ranges;
    ranges.reserve(words.text.bytes.size() / 4);
    for (const Range& range : words.ranges) {
      const std::string_view word = part(words.text.bytes, range);
      size_t begin = 0, after_mark = 0;
      for (size_t at = 0; (at = word.find(mark, at)) != std::string_view::npos;) {
        if (at > begin && at != after_mark) {
          ranges.push_back({range.begin + begin, range.begin + at});
          begin = at;
        }
        at += mark.size();
        after_mark = at;
      }
      ranges.push_back({range.begin + begin, range.end});
    }
    words.ranges = std::move(ranges);
  };
}

PreTokenizer add_prefix_space() {
  return [](Words& words) {
    rewrite_words(words, [&](TextBuilder& builder, Range range) {
      if (words.text.bytes[range.begin] != ' ') builder.put(" ", range.begin);
      builder.copy(range);
    });
  };
}

PreTokenizer change_words(Normalizer normalizer) {
  return [normalizer](Words& words) {
    Text all;
    all.tracked = words.text.tracked;
    std::vector<Range> ranges;
    for (const Range& range : words.ranges) {
      TextBuilder builder(words.text);
      builder.copy(range);
      Text word = builder.finish();
      normalizer(word);
      if (word.bytes.empty()) continue;
      ranges.push_back({all.bytes.size(), all.bytes.size() + word.bytes.size()});
      all.bytes += word.bytes;
      all.origins.insert(all.origins.end(), word.origins.begin(), word.origins.end());
    }
    words.text = std::move(all);
    words.ranges = std::move(ranges);
  };
}

}  // namespace taper::llm
