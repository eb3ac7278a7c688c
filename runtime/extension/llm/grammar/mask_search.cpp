#include "taper/runtime/extension/llm/grammar/mask_search.h"

#include <utility>

namespace taper::llm {
namespace {

constexpr size_t most_words = size_t{1} << 23;  // 64 MB of each kind

void set_bit(std::vector<uint64_t>& mask, int32_t id) {
  mask[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
}

}  // namespace

MaskSearch::MaskSearch(Machine& machine, std::shared_ptr<const TokenTrie> trie)
    : machine_(machine), trie_(std::move(trie)) {}

void MaskSearch::forget() {
  masks_.clear();
  regions_.clear();
  region_words_ = 0;
}

const MaskSearch::Mask& MaskSearch::allowed(Machine::State state) {
  if (const auto known = masks_.find(state); known != masks_.end()) return known->second;
  if ((masks_.size() + 1) * words() > most_words) masks_.clear();
  if (region_words_ > most_words) {
    regions_.clear();
    region_words_ = 0;
  }
  Mask mask(words());
  const auto all = static_cast<uint32_t>(trie_->nodes().size());
  const Machine::State region = machine_.region(state);
  if (region != Machine::dead) {
    cross(0, all, state, region, mask);
  } else {
    walk(0, all, state, mask);
  }
  return masks_[state] = std::move(mask);
}

void MaskSearch::mark(const TokenTrie::Node& node, Mask& mask) const {
  for (uint32_t t = node.first_token; t < node.last_token; ++t) set_bit(mask, trie_->tokens()[t]);
}

// The nodes from `first` on lie below a node whose bytes lead to `state`.
void MaskSearch::walk(uint32_t first, uint32_t behind, Machine::State state, Mask& mask) {
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
  if (first == behind) return;
  path_[nodes[first].depth - size_t{1}] = state;
  for (uint32_t i = first; i < behind;) {
    const TokenTrie::Node& node = nodes[i];
    const Machine::State next = machine_.next(path_[node.depth - size_t{1}], node.byte);
    if (next == Machine::dead) {
      i = node.behind;
      continue;
    }
    mark(node, mask);
    ++i;
    if (i == node.behind) continue;
    if (const Machine::State region = machine_.region(next); region != Machine::dead) {
      cross(i, node.behind, next, region, mask);
      i = node.behind;
    } else {
      path_[node.depth] = next;
    }
  }
}

void MaskSearch::cross(uint32_t first, uint32_t behind, Machine::State inside,
                       Machine::State region, Mask& mask) {
  const Region& found = explored(first, behind, region);
  for (const int32_t id : found.tokens) set_bit(mask, id);
  for (size_t i = 0; i < found.mask.size(); ++i) mask[i] |= found.mask[i];
  Machine::State left = Machine::dead, resumed = Machine::dead;
  for (const Region::Exit& exit : found.exits) {
    if (exit.left != left) {
      left = exit.left;
      resumed = machine_.resume(inside, left);
    }
    if (resumed == Machine::dead) continue;
    const TokenTrie::Node& node = trie_->nodes()[exit.node];
    mark(node, mask);
    walk(exit.node + 1, node.behind, resumed, mask);
  }
}

const MaskSearch::Region& MaskSearch::explored(uint32_t first, uint32_t behind,
                                               Machine::State region) {
  const uint64_t key = uint64_t{first} << 32 | region;
  const auto [place, is_new] = regions_.try_emplace(key);
  if (is_new) {
    place->second = explore(first, behind, region);
    region_words_ += place->second.mask.size() + place->second.tokens.size() / 2 +
                     place->second.exits.size() + 16;
  }
  return place->second;
}

MaskSearch::Region MaskSearch::explore(uint32_t first, uint32_t behind, Machine::State region) {
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
  Region found;
  path_[nodes[first].depth - size_t{1}] = region;
  for (uint32_t i = first; i < behind;) {
    const TokenTrie::Node& node = nodes[i];
    const Machine::State next = machine_.next(path_[node.depth - size_t{1}], node.byte);
    const bool goes_on = next != Machine::dead && !machine_.left_region(next);
    if (goes_on) {
      found.tokens.insert(found.tokens.end(), trie_->tokens().begin() + node.first_token,
                          trie_->tokens().begin() + node.last_token);
      path_[node.depth] = next;
    } else if (next != Machine::dead) {
      found.exits.push_back({i, next});
    }
    i = goes_on ? i + 1 : node.behind;
  }
  if (found.tokens.size() > words() / 4) {
    found.mask.resize(words());
    for (const int32_t id : found.tokens) set_bit(found.mask, id);
    found.tokens = {};
  }
  return found;
}

}  // namespace taper::llm
