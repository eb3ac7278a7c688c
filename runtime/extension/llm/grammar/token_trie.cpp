#include "taper/runtime/extension/llm/grammar/token_trie.h"

#include <algorithm>
#include <utility>

namespace taper::llm {

TokenTrie::TokenTrie(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (size_t id = 0; id < texts_.size(); ++id) {
    const size_t length = texts_[id].size();
    if (length > 0 && length <= longest) tokens_.push_back(static_cast<int32_t>(id));
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) {
    const int order = text(a).compare(text(b));
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<uint32_t> open;  // the nodes of the last token
  std::string last;
  for (uint32_t t = 0; t < tokens_.size(); ++t) {
    const std::string& bytes = text(tokens_[t]);
    const size_t common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).first - last.begin());
    for (; open.size() > common; open.pop_back()) {
      nodes_[open.back()].behind = static_cast<uint32_t>(nodes_.size());
    }
    while (open.size() < bytes.size()) {
      const auto byte = static_cast<uint8_t>(bytes[open.size()]);
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, t, t, static_cast<uint16_t>(open.size()), byte});
    }
    nodes_[open.back()].last_token = t + 1;
    last = bytes;
  }
  for (const uint32_t node : open) nodes_[node].behind = static_cast<uint32_t>(nodes_.size());
}

}  // namespace taper::llm
