#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "taper/runtime/extension/llm/grammar/machine.h"
#include "taper/runtime/extension/llm/grammar/token_trie.h"

namespace taper::llm {

/// Finds the tokens that may follow from a state of a machine, and remembers them.
class MaskSearch {
 public:
  using Mask = std::vector<uint64_t>;  ///< a bit for each token

  MaskSearch(Machine& machine, std::shared_ptr<const TokenTrie> trie);

  /// Valid until the next call.
  const Mask& allowed(Machine::State state);
  /// Must be called when the machine forgets its states.
  void forget();

 private:
  /// What is allowed below a node of the tree, from a state that stands for a region.
  struct Region {
    struct Exit {
      uint32_t node;
      Machine::State left;
    };
    std::vector<int32_t> tokens;  ///< a list, or
    Mask mask;                    ///< if they are many, bits
    std::vector<Exit> exits;      ///< where a token leaves the region
  };

  void walk(uint32_t first, uint32_t behind, Machine::State state, Mask& mask);
  void cross(uint32_t first, uint32_t behind, Machine::State inside, Machine::State region,
             Mask& mask);
  const Region& explored(uint32_t first, uint32_t behind, Machine::State region);
  Region explore(uint32_t first, uint32_t behind, Machine::State region);
  void mark(const TokenTrie::Node& node, Mask& mask) const;
  size_t words() const { return (trie_->vocabulary_size() + 63) / 64; }

  Machine& machine_;
  std::shared_ptr<const TokenTrie> trie_;
  std::array<Machine::State, TokenTrie::longest + 1> path_{};  ///< the states above a node
  std::unordered_map<Machine::State, Mask> masks_;
  std::unordered_map<uint64_t, Region> regions_;
  size_t region_words_ = 0;
};

}  // namespace taper::llm
