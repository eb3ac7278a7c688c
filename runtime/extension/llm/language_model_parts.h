#pragma once
#include <atomic>
#include <mutex>

#include "taper/runtime/extension/llm/language_model.h"
#include "taper/runtime/extension/llm/user_text.h"

namespace taper::llm {

/// The name of the method that takes new tokens.
inline constexpr char method_name[] = "forward";
/// The name of the method that gives the logits of each of them.
inline constexpr char all_logits_name[] = "forward_all";
/// The name of the method that gives the last state of each of them.
inline constexpr char states_name[] = "states";

/// The most tokens of a call, if the method takes (ids i64 (1, n), start i64 (1)). It was just
/// created, so its inputs have their largest shapes. Throws Failure.
int64_t chunk_of(const Method& method, const char* name);

struct LanguageModel::Parts {
  Parts(Module loaded, TextParts read, const Threads* given)
      : module(std::move(loaded)),
        text(std::move(read)),
        user_text(text.tokenizer),
        threads(given) {}

  /// Its session and its method belong to one sequence at a time, so that a single conversation
  /// takes the memory of one. `in_use` says whether a sequence has them.
  mutable Module module;      ///< one thread at a time: see `making`
  mutable std::mutex making;  ///< held while a sequence asks the module for memory or methods
  mutable std::atomic<bool> in_use{false};
  const TextParts text;
  const UserText user_text;
  const Threads* threads;
  int64_t chunk = 0;
};

}  // namespace taper::llm
