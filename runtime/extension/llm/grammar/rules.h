#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/grammar/expression.h"

namespace taper::llm {

using ByteSet = std::bitset<256>;

/// The rules of a grammar as one graph. A node reads a byte, calls a rule, or goes on in two ways.
struct Rules {
  enum class Kind : uint8_t { end, bytes, call, split, text_start, text_end };
  struct Node {
    Kind kind;
    uint32_t value;  ///< bytes: which set; call: which rule; split: the other node behind it
    uint32_t next;   ///< the node behind it
  };
  /// The end of every rule.
  static constexpr uint32_t end = 0;

  struct Rule {
    std::string name;
    size_t line = 0;
    uint32_t start = end;
    bool may_be_empty = false;
  };

  std::vector<Node> nodes{{Kind::end, 0, 0}};
  std::vector<ByteSet> sets;
  std::vector<Rule> rules;
  /// Every rule stands before those that it may begin with.
  std::vector<uint32_t> order;
  std::vector<bool> is_useful;  ///< for each node, whether the end can be reached from it
  uint32_t root = 0;
};

/// Appends the nodes of expressions. Refuses what needs too many.
class RuleBuilder {
 public:
  explicit RuleBuilder(Rules& rules) : rules_(rules) {}

  /// The node where the expression begins, if `next` follows behind it.
  uint32_t build(const Expression& expression, uint32_t next);
  uint32_t add(Rules::Kind kind, uint32_t value, uint32_t next);

 private:
  uint32_t build_text(const std::string& text, uint32_t next);
  uint32_t build_characters(const std::vector<CodeRange>& ranges, uint32_t next);
  uint32_t build_alternatives(const std::vector<Expression>& parts, uint32_t next);
  uint32_t build_repeat(const Expression& repeat, uint32_t next);
  uint32_t either(const std::vector<uint32_t>& nodes);
  uint32_t bytes(const ByteSet& set, uint32_t next);

  Rules& rules_;
  size_t steps_ = 0;
};

/// Fills `may_be_empty`, `order` and `is_useful`. Refuses a rule that begins with itself, and a
/// rule that no text can complete.
void check_rules(Rules& rules);

/// For each node, whether the end can be reached from it; through bytes, or without any.
std::vector<bool> nodes_that_reach_end(const Rules& rules, bool through_bytes);

}  // namespace taper::llm
