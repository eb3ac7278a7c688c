// Encodes a text with a tokenizer that stands in this file, and asks for a model that is not there.
#include <cstdio>
#include <string>

#include "taper/runtime/extension/llm/chat.h"
#include "taper/runtime/extension/llm/tokenizer.h"

int main() {
  std::string why;
  const taper::Result<taper::llm::Tokenizer> tokenizer = taper::llm::Tokenizer::from_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})", &why);
  if (!tokenizer.ok()) return std::fprintf(stderr, "%s\n", why.c_str()), 1;
  for (const int id : tokenizer.value().encode("aab")) std::printf("%d ", id);
  return taper::llm::Chat::load("no such model.taper").ok() ? 1 : 0;
}
