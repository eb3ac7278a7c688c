#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace taper::llm {

/// A tree of byte strings, breadth first: the children of a node lie side by side, in the order of
/// their bytes.
class ByteTrie {
 public:
  struct Node {
    uint32_t first_child = 0;
    int32_t value = -1;  ///< of the string that ends here; -1: none does
    uint16_t children = 0;
    uint8_t byte = 0;
  };
  static constexpr uint32_t root = 0, none = ~uint32_t{0};

  ByteTrie() : nodes_(1) {}
  /// Of equal strings the one with the lowest value counts. Empty strings are left out.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> strings);

  const Node& node(uint32_t index) const { return nodes_[index]; }
  size_t size() const { return nodes_.size(); }
  /// The child of a node, or `none`.
  uint32_t child(uint32_t index, uint8_t byte) const;

 private:
  std::vector<Node> nodes_;
};

}  // namespace taper::llm
