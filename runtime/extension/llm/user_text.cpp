#include "taper/runtime/extension/llm/user_text.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;  // templates write objects in the order of their keys

// A mark is a number between two characters that no text may contain: U+FDD0 and U+FDD1.
constexpr std::string_view begin_mark = "\xEF\xB7\x90", end_mark = "\xEF\xB7\x91";
constexpr int most_depth = 64;  // deeper messages are refused where they are rendered

void append(std::vector<TokenId>& ids, const std::vector<TokenId>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

bool is_of_user(const Json& message) {
  const Json role = message.is_object() ? message.value("role", Json()) : Json();
  return role == "user" || role == "tool";
}

}  // namespace

UserText::UserText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_special(id) && !tokenizer.token(id).empty())
      special_.emplace_back(tokenizer.token(id));
  }
  std::stable_sort(special_.begin(), special_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string UserText::mark(std::string_view text) const {
  std::string marked;
  while (!text.empty()) {
    size_t which = 0;
    while (which < special_.size() && text.substr(0, special_[which].size()) != special_[which])
      ++which;
    const bool forges = text.substr(0, 3) == begin_mark || text.substr(0, 3) == end_mark;
    if (which < special_.size()) {
      marked.append(begin_mark).append(std::to_string(which)).append(end_mark);
      text.remove_prefix(special_[which].size());
    } else if (forges) {
      marked += "\xEF\xBF\xBD";  // U+FFFD
      text.remove_prefix(3);
    } else {
      marked += text[0];
      text.remove_prefix(1);
    }
  }
  return marked;
}

std::string UserText::mark_messages(const std::string& messages) const {
  bool is_deep = false;
  const auto look = [&](int depth, Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > most_depth;
    return !is_deep;
  };
  Json list = Json::parse(messages, look, /*allow_exceptions=*/false);
  if (is_deep || !list.is_array()) return messages;
  const auto mark_text = [&](Json& object, const char* key) {
    if (object.is_object() && object.contains(key) && object[key].is_string())
      object[key] = mark(object[key].get_ref<const std::string&>());
  };
  for (Json& message : list) {
    if (!is_of_user(message)) continue;
    mark_text(message, "content");
    if (message.contains("content") && message["content"].is_array())
      for (Json& part : message["content"]) mark_text(part, "text");
  }
  return list.dump();
}

std::vector<TokenId> UserText::encode(std::string_view prompt) const {
  EncodeOptions of_template, of_user;
  of_template.add_special_tokens = of_user.add_special_tokens = false;
  of_user.parse_special_tokens = false;
  std::vector<TokenId> ids;
  for (size_t at; (at = prompt.find(begin_mark)) != std::string_view::npos;) {
    append(ids, tokenizer_.encode(prompt.substr(0, at), of_template));
    prompt.remove_prefix(at + begin_mark.size());
    const size_t end = prompt.find(end_mark);
    if (end == std::string_view::npos) break;  // a template took a mark apart
    const size_t which = std::strtoul(std::string(prompt.substr(0, end)).c_str(), nullptr, 10);
    if (which < special_.size()) append(ids, tokenizer_.encode(special_[which], of_user));
    prompt.remove_prefix(end + end_mark.size());
  }
  append(ids, tokenizer_.encode(prompt, of_template));
  return ids;
}

}  // namespace taper::llm
