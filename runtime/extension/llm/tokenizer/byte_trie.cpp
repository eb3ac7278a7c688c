#include "taper/runtime/extension/llm/tokenizer/byte_trie.h"

#include <algorithm>

namespace taper::llm {
namespace {

// A node, and the sorted strings below it, which have `depth` bytes in common.
struct Pending {
  uint32_t node;
  size_t begin, end, depth;
};

}  // namespace

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> strings) : nodes_(1) {
  std::sort(strings.begin(), strings.end());
  strings.erase(std::unique(strings.begin(), strings.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                strings.end());
  std::vector<Pending> pending = {{root, 0, strings.size(), 0}};
  for (size_t next = 0; next < pending.size(); ++next) {
    Pending here = pending[next];
    if (here.begin < here.end && strings[here.begin].first.size() == here.depth) {
      if (here.depth > 0) nodes_[here.node].value = strings[here.begin].second;
      ++here.begin;
    }
    nodes_[here.node].first_child = static_cast<uint32_t>(nodes_.size());
    while (here.begin < here.end) {
      const char byte = strings[here.begin].first[here.depth];
      size_t end = here.begin;
      while (end < here.end && strings[end].first[here.depth] == byte) ++end;
      pending.push_back({static_cast<uint32_t>(nodes_.size()), here.begin, end, here.depth + 1});
      nodes_.emplace_back();
      nodes_.back().byte = static_cast<uint8_t>(byte);
      ++nodes_[here.node].children;
      here.begin = end;
    }
  }
}

uint32_t ByteTrie::child(uint32_t index, uint8_t byte) const {
  const Node& parent = nodes_[index];
  const auto begin = nodes_.begin() + parent.first_child;
  const auto end = begin + parent.children;
  const auto found = std::lower_bound(
      begin, end, byte, [](const Node& node, uint8_t wanted) { return node.byte < wanted; });
  if (found == end || found->byte != byte) return none;
  return static_cast<uint32_t>(found - nodes_.begin());
}

}  // namespace taper::llm
