#include "taper/runtime/extension/llm/tokenizer/vocabulary.h"

#include <functional>
#include <utility>

namespace taper::llm {

namespace {

uint32_t hash_of(std::string_view token) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(token));
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  size_t slots = 16;
  while (slots < tokens_.size() * 2) slots *= 2;
  slots_.resize(slots);
  for (TokenId id = 0; id < size(); ++id) {
    if (token(id).empty()) continue;
    const uint32_t hash = hash_of(token(id));
    Slot& slot = slots_[slot_of(token(id), hash)];
    if (slot.id == no_token) slot = {hash, id};
  }
}

size_t Vocabulary::slot_of(std::string_view text, uint32_t hash) const {
  size_t i = hash & (slots_.size() - 1);
  while (slots_[i].id != no_token && (slots_[i].hash != hash || token(slots_[i].id) != text))
    i = (i + 1) & (slots_.size() - 1);
  return i;
}

TokenId Vocabulary::find(std::string_view token) const {
  return slots_[slot_of(token, hash_of(token))].id;
}

std::string byte_token(unsigned char byte) {
  const char* digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + '>';
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace taper::llm
