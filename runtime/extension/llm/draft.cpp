#include "taper/runtime/extension/llm/draft.h"

#include <algorithm>
#include <cstddef>

namespace taper::llm {

std::vector<TokenId> look_up(const std::vector<TokenId>& text, int64_t most) {
  for (const std::ptrdiff_t length : {3, 2}) {
    if (most <= 0 || static_cast<std::ptrdiff_t>(text.size()) <= length) continue;
    const auto last = text.end() - length;
    // the latest place before
    const auto found = std::find_end(text.begin(), text.end() - 1, last, text.end());
    if (found == text.end() - 1) continue;
    const auto behind = found + length;
    const auto count = std::min<std::ptrdiff_t>(text.end() - behind, most);
    return {behind, behind + count};
  }
  return {};
}

}  // namespace taper::llm
