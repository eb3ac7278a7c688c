// Any bytes are a grammar, a JSON schema, or an error. What was read allows exactly the tokens that
// it accepts; some conditions of schemas are judged by `accept` only. A '{' begins a schema, and
// what follows a line `---` are texts to read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/grammar.h"

namespace {

using namespace taper::llm;

const std::vector<std::string>& tokens() {
  static const std::vector<std::string> texts = {
      "",   "{",      "}",    "[",      "]",      ",",     ":",    "\"",    "a",   "b",
      "1",  "0",      ".",    "-",      "true",   "false", "null", "\":",   "\",", " ",
      "\n", "\\u00e", "\xC3", "\xA9",   "x",      "e",     "{\"",  "\"a\"", "ab",  "\"}]",
      "12", "é",      "\\n",  "\"b\":", "[[1,2]", "(",     ")",    "+",     "yes", "no"};
  return texts;
}

// Reads a text as far as it goes, and then lets the tokens grow it further.
void follow(GrammarMatcher& matcher, std::string_view text) {
  matcher.reset();
  for (const char c : text.substr(0, 200)) {
    if (!matcher.accept(std::string_view(&c, 1))) break;
  }
  uint32_t choice = static_cast<uint32_t>(text.size());
  for (int step = 0; step < 12; ++step) {
    const uint64_t allowed = matcher.allowed()[0];
    static_cast<void>(matcher.may_end());
    if (allowed == 0) return;
    TokenId id = 0;
    do {
      choice = choice * 1664525u + 1013904223u;
      id = static_cast<TokenId>((choice >> 8) % tokens().size());
      const bool is_allowed = (allowed >> id & 1) != 0;
      if (!is_allowed && matcher.accept(id)) std::abort();
      if (is_allowed) break;
    } while (true);
    static_cast<void>(matcher.accept(id));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t most = 4096;  // longer ones only take longer
  const std::string_view all(reinterpret_cast<const char*>(data), size < most ? size : most);
  const size_t cut = all.find("\n---\n");
  const std::string_view text = all.substr(0, cut);
  const taper::Result<Grammar> grammar =
      !text.empty() && text[0] == '{' ? Grammar::from_json_schema(text) : Grammar::from_gbnf(text);
  if (!grammar.ok()) return 0;
  static const TokenTexts texts(tokens());
  GrammarMatcher matcher(grammar.value(), texts);
  follow(matcher, "");
  if (cut != std::string_view::npos) follow(matcher, all.substr(cut + 5));
  return 0;
}
