#include "taper/runtime/extension/llm/grammar/rule_machine.h"

#include <algorithm>

namespace taper::llm {
namespace {

constexpr size_t many_items = size_t{1} << 21, most_items = size_t{1} << 23,
                 many_rows = size_t{1} << 15;

uint64_t pair_key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

}  // namespace

RuleMachine::RuleMachine(std::shared_ptr<const Rules> rules)
    : rules_(std::move(rules)), callers_(rules_->rules.size()) {
  sets_.emplace_back();  // `dead` and `nothing`
}

Machine::State RuleMachine::start() {
  const uint32_t outside = intern({{Rules::end, nothing}});
  call({Rules::Kind::call, rules_->root, Rules::end}, outside);
  Items seeds;
  if (rules_->rules[rules_->root].may_be_empty) seeds.push_back({Rules::end, nothing});
  return closure(seeds);
}

bool RuleMachine::may_end(State state) {
  const Items& items = sets_[state].items;
  return !items.empty() && items.front().node == Rules::end;
}

bool RuleMachine::is_complete(State state) {
  return may_end(state) && sets_[state].items.size() == 1;
}

bool RuleMachine::is_full() const { return items_ > many_items || rows() > many_rows; }

Machine::State RuleMachine::compute_next(State state, uint8_t byte) {
  Items seeds;
  if (items_ > most_items) return dead;
  for (const Item& item : sets_[state].items) {
    const Rules::Node& node = rules_->nodes[item.node];
    if (node.kind == Rules::Kind::bytes && rules_->sets[node.value][byte]) {
      seeds.push_back({node.next, item.parents});
    }
  }
  return seeds.empty() ? dead : closure(seeds);
}

// All nodes that read a byte and are reached from the seeds without one. Rules are entered in an
// order in which all that call a rule come before the rule, so that it is entered once.
Machine::State RuleMachine::closure(const Items& seeds) {
  Items found;
  seen_.clear();
  follow(seeds, false, found);
  for (const uint32_t rule : rules_->order) {
    if (callers_[rule].empty()) continue;
    const uint32_t parents = merged(std::move(callers_[rule]));
    callers_[rule].clear();
    follow({{rules_->rules[rule].start, parents}}, true, found);
  }
  return merged(std::move(found));
}

// A rule that was just entered and is empty ends without a byte. Its callers have gone on already.
void RuleMachine::follow(Items pending, bool in_new_rule, Items& found) {
  while (!pending.empty()) {
    const Item item = pending.back();
    pending.pop_back();
    if (!rules_->is_useful[item.node]) continue;
    if (!seen_.emplace(pair_key(item.node, item.parents), true).second) continue;
    const Rules::Node& node = rules_->nodes[item.node];
    switch (node.kind) {
      case Rules::Kind::split:
        pending.push_back({node.value, item.parents});
        pending.push_back({node.next, item.parents});
        break;
      case Rules::Kind::call:
        call(node, item.parents);
        if (rules_->rules[node.value].may_be_empty) pending.push_back({node.next, item.parents});
        break;
      case Rules::Kind::end:
        if (in_new_rule) break;
        if (item.parents == nothing) {
          found.push_back(item);
        } else {
          const Items& parents = sets_[item.parents].items;
          pending.insert(pending.end(), parents.begin(), parents.end());
        }
        break;
      default:
        found.push_back(item);
    }
  }
}

// A rule that is called last leaves nothing to come back to: it goes on where its caller would.
void RuleMachine::call(const Rules::Node& node, uint32_t parents) {
  Items& callers = callers_[node.value];
  if (sets_[parents].depth >= most_depth) return;
  if (node.next != Rules::end) {
    callers.push_back({node.next, parents});
  } else {
    const Items& items = sets_[parents].items;
    callers.insert(callers.end(), items.begin(), items.end());
  }
}

uint32_t RuleMachine::intern(Items items) {
  size_t hash = items.size();
  for (const Item& item : items) {
    hash = (hash ^ std::hash<uint64_t>()(pair_key(item.node, item.parents))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  const auto [first, last] = numbers_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (sets_[known->second].items == items) return known->second;
  }
  const auto number = static_cast<uint32_t>(sets_.size());
  int depth = 0;
  for (const Item& item : items) depth = std::max(depth, sets_[item.parents].depth + 1);
  items_ += items.size() + 1;
  sets_.push_back({std::move(items), depth});
  numbers_.emplace(hash, number);
  return number;
}

// Items of one node become one, which goes on in all of their places.
uint32_t RuleMachine::merged(Items items) {
  if (items.empty()) return dead;
  std::sort(items.begin(), items.end());
  Items kept;
  for (const Item& item : items) {
    if (kept.empty() || kept.back().node != item.node) {
      kept.push_back(item);
    } else if (kept.back().parents != item.parents) {
      kept.back().parents = united(kept.back().parents, item.parents);
    }
  }
  return intern(std::move(kept));
}

uint32_t RuleMachine::united(uint32_t a, uint32_t b) {
  if (a == b) return a;
  const uint64_t key = pair_key(std::min(a, b), std::max(a, b));
  if (const auto known = unions_.find(key); known != unions_.end()) return known->second;
  Items both = sets_[a].items;
  both.insert(both.end(), sets_[b].items.begin(), sets_[b].items.end());
  const uint32_t number = merged(std::move(both));
  unions_.emplace(key, number);
  return number;
}

// Sets refer to earlier ones only, so one pass from the last to the first finds what is needed, and
// one in the other direction moves it.
Machine::State RuleMachine::forget_all_but(State state) {
  std::vector<bool> is_needed(sets_.size());
  is_needed[state] = true;
  for (size_t i = sets_.size(); i-- > 1;) {
    if (!is_needed[i]) continue;
    for (const Item& item : sets_[i].items) is_needed[item.parents] = true;
  }
  const std::vector<Set> before = std::move(sets_);
  std::vector<uint32_t> renamed(before.size(), nothing);
  sets_.assign(1, {});
  numbers_.clear();
  unions_.clear();
  forget_transitions();
  items_ = 0;
  for (size_t i = 1; i < before.size(); ++i) {
    if (!is_needed[i]) continue;
    Items items = before[i].items;
    for (Item& item : items) item.parents = renamed[item.parents];
    renamed[i] = intern(std::move(items));
  }
  return renamed[state];
}

}  // namespace taper::llm
