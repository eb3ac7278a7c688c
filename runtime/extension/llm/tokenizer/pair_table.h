#pragma once
#include <cstdint>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/vocabulary.h"

namespace taper::llm {

/// Which pairs of tokens become one, and in which order: a hash table with open addresses.
class PairTable {
 public:
  struct Merge {
    int32_t rank = -1;  ///< the lowest comes first; -1: none
    TokenId made = no_token;
  };

  explicit PairTable(size_t expected) {
    size_t slots = 16;
    while (slots < expected * 2) slots *= 2;
    slots_.resize(slots);
  }

  /// Of equal pairs the last one counts.
  void insert(TokenId left, TokenId right, Merge merge) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slot_of(key_of(left, right));
    count_ += slot.key == empty;
    slot = {key_of(left, right), merge};
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != empty) visit(slot.merge);
    }
  }

  Merge find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (size_t i = place_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].merge;
      if (slots_[i].key == empty) return {};
    }
  }

 private:
  static constexpr uint64_t empty = ~uint64_t{0};
  struct Slot {
    uint64_t key = empty;
    Merge merge;
  };

  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // Fibonacci hashing (Knuth, volume 3, 6.4)
  size_t place_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & (slots_.size() - 1);
  }
  Slot& slot_of(uint64_t key) {
    size_t i = place_of(key);
    while (slots_[i].key != key && slots_[i].key != empty) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != empty) slot_of(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace taper::llm
