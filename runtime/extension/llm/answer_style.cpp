#include "taper/runtime/extension/llm/answer_style.h"

#include <algorithm>

namespace taper::llm {

AnswerStyle answer_style_behind(const std::vector<TokenId>& prompt, const TextParts& text) {
  AnswerStyle style;
  style.form = text.tools.form;
  const std::string_view mark = beginning_of_thoughts(style.form);
  const size_t count = std::min(prompt.size(), size_t{8});
  const std::string last =
      text.tokenizer.decode({prompt.data() + (prompt.size() - count), static_cast<index_t>(count)});
  const size_t end = last.find_last_not_of(" \r\n\t") + 1;
  style.begins_with_thoughts = !mark.empty() && end >= mark.size() &&
                               last.compare(end - mark.size(), mark.size(), mark) == 0;
  return style;
}

}  // namespace taper::llm
