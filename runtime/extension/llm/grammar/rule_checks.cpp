#include <algorithm>
#include <string>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/grammar/rules.h"

namespace taper::llm {
namespace {

using Kind = Rules::Kind;

// Goes from the end backwards. A call is passed as soon as its rule is known to reach its end.
class Backwards {
 public:
  Backwards(const Rules& rules, bool through_bytes)
      : rules_(rules),
        through_bytes_(through_bytes),
        before_(rules.nodes.size()),
        waiting_(rules.rules.size()),
        rules_at_(rules.nodes.size()),
        reaches_(rules.nodes.size()),
        ends_(rules.rules.size()) {
    for (uint32_t i = 1; i < rules.nodes.size(); ++i) {
      before_[rules.nodes[i].next].push_back(i);
      if (rules.nodes[i].kind == Kind::split) before_[rules.nodes[i].value].push_back(i);
    }
    for (uint32_t r = 0; r < rules.rules.size(); ++r) rules_at_[rules.rules[r].start].push_back(r);
  }

  std::vector<bool> run() {
    mark(Rules::end);
    while (!pending_.empty()) {
      const uint32_t node = pending_.back();
      pending_.pop_back();
      for (const uint32_t rule : rules_at_[node]) complete(rule);
      for (const uint32_t before : before_[node]) pass(before);
    }
    return reaches_;
  }

 private:
  void mark(uint32_t node) {
    if (reaches_[node]) return;
    reaches_[node] = true;
    pending_.push_back(node);
  }
  void pass(uint32_t index) {
    const Rules::Node& node = rules_.nodes[index];
    if (node.kind == Kind::call && !ends_[node.value]) {
      waiting_[node.value].push_back(index);
    } else if (node.kind != Kind::bytes || (through_bytes_ && rules_.sets[node.value].any())) {
      mark(index);
    }
  }
  void complete(uint32_t rule) {
    if (ends_[rule]) return;
    ends_[rule] = true;
    for (const uint32_t call : waiting_[rule]) mark(call);
  }

  const Rules& rules_;
  bool through_bytes_;
  std::vector<std::vector<uint32_t>> before_, waiting_, rules_at_;
  std::vector<bool> reaches_, ends_;
  std::vector<uint32_t> pending_;
};

// The rules that each rule may begin with.
std::vector<std::vector<uint32_t>> first_rules(const Rules& rules) {
  std::vector<std::vector<uint32_t>> firsts(rules.rules.size());
  std::vector<uint32_t> seen_by(rules.nodes.size(), ~uint32_t{0}), pending;
  for (uint32_t r = 0; r < rules.rules.size(); ++r) {
    const auto visit = [&](uint32_t node) {
      if (seen_by[node] != r) pending.push_back(node);
      seen_by[node] = r;
    };
    visit(rules.rules[r].start);
    while (!pending.empty()) {
      const Rules::Node node = rules.nodes[pending.back()];
      pending.pop_back();
      if (node.kind == Kind::split) visit(node.value);
      if (node.kind == Kind::call) firsts[r].push_back(node.value);
      if (node.kind == Kind::split ||
          (node.kind == Kind::call && rules.rules[node.value].may_be_empty)) {
        visit(node.next);
      }
    }
  }
  return firsts;
}

std::string at_rule(const Rules& rules, uint32_t rule) {
  return "line " + std::to_string(rules.rules[rule].line) + ": the rule '" +
         rules.rules[rule].name + "'";
}

// Sorts depth first. A rule that is met inside of itself begins with itself.
std::vector<uint32_t> sorted(const Rules& rules) {
  struct Visit {
    uint32_t rule;
    size_t next = 0;
  };
  const std::vector<std::vector<uint32_t>> firsts = first_rules(rules);
  enum : uint8_t { fresh, open, done };
  std::vector<uint8_t> state(rules.rules.size(), fresh);
  std::vector<uint32_t> order;
  std::vector<Visit> path;
  const auto enter = [&](uint32_t rule) {
    if (state[rule] == open) {
      refuse(at_rule(rules, rule) + " begins with itself; let it begin with something else");
    }
    if (state[rule] == fresh) path.push_back({rule});
    if (state[rule] == fresh) state[rule] = open;
  };
  for (uint32_t r = 0; r < rules.rules.size(); ++r) {
    enter(r);
    while (!path.empty()) {
      Visit& here = path.back();
      if (here.next < firsts[here.rule].size()) {
        enter(firsts[here.rule][here.next++]);
        continue;
      }
      state[here.rule] = done;
      order.push_back(here.rule);
      path.pop_back();
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

std::vector<bool> nodes_that_reach_end(const Rules& rules, bool through_bytes) {
  return Backwards(rules, through_bytes).run();
}

void check_rules(Rules& rules) {
  const std::vector<bool> empty = nodes_that_reach_end(rules, false);
  for (Rules::Rule& rule : rules.rules) rule.may_be_empty = empty[rule.start];
  rules.order = sorted(rules);
  rules.is_useful = nodes_that_reach_end(rules, true);
  for (uint32_t r = 0; r < rules.rules.size(); ++r) {
    if (!rules.is_useful[rules.rules[r].start]) {
      refuse(at_rule(rules, r) + " never comes to an end");
    }
  }
}

}  // namespace taper::llm
