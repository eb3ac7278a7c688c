#include "taper/runtime/extension/llm/grammar/rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

constexpr size_t most_nodes = size_t{1} << 18, most_steps = size_t{1} << 22;
constexpr char32_t last_character = 0x10FFFF, before_surrogates = 0xD7FF,
                   behind_surrogates = 0xE000;

ByteSet byte_range(uint8_t first, uint8_t last) {
  ByteSet set;
  for (unsigned byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

// Ranges of bytes, one behind the other.
using ByteRanges = std::vector<std::pair<uint8_t, uint8_t>>;

// Cuts a range of characters into parts whose UTF-8 is a product of ranges of bytes. The cuts are
// those of RE2 (R. Cox, "Regular Expression Matching in the Wild").
void add_utf8(char32_t first, char32_t last, std::vector<ByteRanges>& all) {
  for (const char32_t end : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
    if (first <= end && last > end) {
      add_utf8(first, end, all);
      add_utf8(end + 1, last, all);
      return;
    }
  }
  if (last > 0x7F) {
    for (int i = 1; i < 4; ++i) {
      const char32_t low = (char32_t{1} << (6 * i)) - 1;
      if ((first & ~low) == (last & ~low)) continue;
      const bool cut_first = (first & low) != 0;
      if (!cut_first && (last & low) == low) continue;
      const char32_t cut = cut_first ? first | low : (last & ~low) - 1;
      add_utf8(first, cut, all);
      add_utf8(cut + 1, last, all);
      return;
    }
  }
  std::string low, high;
  append_character(low, first);
  append_character(high, last);
  ByteRanges ranges;
  for (size_t i = 0; i < low.size(); ++i) {
    ranges.emplace_back(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i]));
  }
  all.push_back(std::move(ranges));
}

// The same characters, without surrogates, which UTF-8 does not have.
void add_utf8_without_surrogates(CodeRange range, std::vector<ByteRanges>& all) {
  const char32_t last = std::min(range.last, last_character);
  if (range.first <= std::min(last, before_surrogates)) {
    add_utf8(range.first, std::min(last, before_surrogates), all);
  }
  const char32_t first = std::max(range.first, behind_surrogates);
  if (first <= last) add_utf8(first, last, all);
}

}  // namespace

std::vector<CodeRange> all_but(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  std::vector<CodeRange> others;
  char32_t first = 0;
  for (const CodeRange& range : ranges) {
    if (range.first > first) others.push_back({first, range.first - 1});
    first = std::max(first, static_cast<char32_t>(range.last + 1));
  }
  if (first <= last_character) others.push_back({first, last_character});
  return others;
}

uint32_t RuleBuilder::add(Rules::Kind kind, uint32_t value, uint32_t next) {
  if (rules_.nodes.size() >= most_nodes) {
    refuse("it has more than " + std::to_string(most_nodes) +
           " parts when all repetitions are written out");
  }
  rules_.nodes.push_back({kind, value, next});
  return static_cast<uint32_t>(rules_.nodes.size() - 1);
}

uint32_t RuleBuilder::bytes(const ByteSet& set, uint32_t next) {
  rules_.sets.push_back(set);
  return add(Rules::Kind::bytes, static_cast<uint32_t>(rules_.sets.size() - 1), next);
}

uint32_t RuleBuilder::either(const std::vector<uint32_t>& nodes) {
  if (nodes.empty()) return bytes({}, Rules::end);  // which no byte leaves
  uint32_t first = nodes.back();
  for (size_t i = nodes.size() - 1; i-- > 0;) first = add(Rules::Kind::split, first, nodes[i]);
  return first;
}

uint32_t RuleBuilder::build(const Expression& e, uint32_t next) {
  if (++steps_ > most_steps) refuse("its repetitions are too many");
  switch (e.kind) {
    case Expression::Kind::text:
      return build_text(e.text, next);
    case Expression::Kind::characters:
      return build_characters(e.ranges, next);
    case Expression::Kind::rule:
      return add(Rules::Kind::call, e.rule, next);
    case Expression::Kind::sequence:
      for (size_t i = e.parts.size(); i-- > 0;) next = build(e.parts[i], next);
      return next;
    case Expression::Kind::alternatives:
      return build_alternatives(e.parts, next);
    case Expression::Kind::repeat:
      return build_repeat(e, next);
    case Expression::Kind::text_start:
      return add(Rules::Kind::text_start, 0, next);
    default:
      return add(Rules::Kind::text_end, 0, next);
  }
}

uint32_t RuleBuilder::build_text(const std::string& text, uint32_t next) {
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    next = bytes(byte_range(byte, byte), next);
  }
  return next;
}

uint32_t RuleBuilder::build_characters(const std::vector<CodeRange>& ranges, uint32_t next) {
  std::vector<ByteRanges> sequences;
  for (const CodeRange& range : ranges) add_utf8_without_surrogates(range, sequences);
  ByteSet ascii;
  std::vector<uint32_t> ways;
  std::map<std::pair<std::pair<uint8_t, uint8_t>, uint32_t>, uint32_t> tails;  // ends in common
  for (const ByteRanges& sequence : sequences) {
    if (sequence.size() == 1) {
      ascii |= byte_range(sequence[0].first, sequence[0].second);
      continue;
    }
    uint32_t node = next;
    for (size_t i = sequence.size(); i-- > 0;) {
      const auto [place, is_new] = tails.try_emplace({sequence[i], node}, 0);
      if (is_new) place->second = bytes(byte_range(sequence[i].first, sequence[i].second), node);
      node = place->second;
    }
    ways.push_back(node);
  }
  if (ascii.any()) ways.push_back(bytes(ascii, next));
  return either(ways);
}

uint32_t RuleBuilder::build_alternatives(const std::vector<Expression>& parts, uint32_t next) {
  std::vector<uint32_t> ways;
  for (const Expression& part : parts) ways.push_back(build(part, next));
  return either(ways);
}

uint32_t RuleBuilder::build_repeat(const Expression& repeat, uint32_t next) {
  const Expression& part = repeat.parts.front();
  uint32_t first = next;
  if (repeat.most == Expression::unbounded) {
    first = add(Rules::Kind::split, next, next);
    const uint32_t again = build(part, first);
    rules_.nodes[first].next = again;
  } else {
    for (uint32_t i = repeat.least; i < repeat.most; ++i) {
      first = add(Rules::Kind::split, next, build(part, first));
    }
  }
  for (uint32_t i = 0; i < repeat.least; ++i) first = build(part, first);
  return first;
}

}  // namespace taper::llm
