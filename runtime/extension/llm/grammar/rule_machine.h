#pragma once
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/grammar/machine.h"
#include "taper/runtime/extension/llm/grammar/rules.h"

namespace taper::llm {

/// Reads texts of a context-free grammar from left to right, with all their readings at once. The
/// rules that are open form a graph instead of many stacks, as in M. Tomita, "LR parsers for
/// natural languages" (1984): readings that wait for the same thing share it.
class RuleMachine : public Machine {
 public:
  explicit RuleMachine(std::shared_ptr<const Rules> rules);

  State start() override;
  bool may_end(State state) override;
  bool is_complete(State state) override;
  State forget_all_but(State state) override;
  bool is_full() const override;

 private:
  /// A node where a reading stands, and where it goes on when the node's rule ends: a set of items,
  /// too. `nothing`: the text ends.
  struct Item {
    uint32_t node;
    uint32_t parents;
    bool operator==(const Item& o) const { return node == o.node && parents == o.parents; }
    bool operator<(const Item& o) const {
      return node != o.node ? node < o.node : parents < o.parents;
    }
  };
  using Items = std::vector<Item>;
  static constexpr uint32_t nothing = 0;
  static constexpr int most_depth = 1000;  ///< of rules that are open

  State compute_next(State state, uint8_t byte) override;
  State closure(const Items& seeds);
  void follow(Items pending, bool in_new_rule, Items& found);
  void call(const Rules::Node& node, uint32_t parents);
  uint32_t intern(Items items);
  uint32_t merged(Items items);
  uint32_t united(uint32_t a, uint32_t b);

  std::shared_ptr<const Rules> rules_;
  struct Set {
    Items items;
    int depth = 0;
  };
  std::vector<Set> sets_;
  std::unordered_multimap<size_t, uint32_t> numbers_;  ///< of sets, by hash
  std::unordered_map<uint64_t, uint32_t> unions_;
  size_t items_ = 0;
  // of one closure
  std::vector<Items> callers_;
  std::unordered_map<uint64_t, bool> seen_;
};

}  // namespace taper::llm
