#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/language_model.h"
#include "taper/runtime/extension/llm/row_session.h"
#include "taper/runtime/extension/llm/user_text.h"

namespace taper::llm {

/// The name of the method that takes new tokens.
inline constexpr char method_name[] = "forward";
/// The name of the method that takes one token of each of several texts.
inline constexpr char decode_name[] = "decode";
/// The name of the method that gives the logits of each token.
inline constexpr char all_logits_name[] = "forward_all";
/// The name of the method that gives the last state of each token.
inline constexpr char states_name[] = "states";

struct LanguageModel::Parts {
  Parts(Module loaded, TextParts read, const Threads* given)
      : module(std::move(loaded)),
        text(std::move(read)),
        user_text(text.tokenizer),
        threads(given) {}

  /// Makes the first session, and looks at the methods. Throws Failure.
  void open();
  /// A row of a session that has one left, or of a new session. Throws Failure.
  TakenRow take_row() const;
  /// A method of a session. Throws Failure.
  RowMethod& method(RowSession& session, const char* name) const {
    const std::lock_guard lock(making);
    return session.method(name);
  }

  /// `identity_of` the model, and of its adapters: computed when they are asked for.
  uint64_t identity() const;
  uint64_t identity_of_adapter(index_t adapter) const;

  mutable Module module;      ///< one thread at a time: see `making`
  mutable std::mutex making;  ///< held while a sequence asks for a row, memory or methods
  /// The first one is the module's, so that a single conversation takes the memory of one.
  std::shared_ptr<RowSession> first;
  mutable std::vector<std::weak_ptr<RowSession>> others;
  mutable std::optional<uint64_t> own_identity;
  mutable std::map<index_t, uint64_t> adapter_identities;
  const TextParts text;
  const UserText user_text;
  const Threads* threads;
  int64_t chunk = 0, rows = 1, vocabulary = 0;
};

}  // namespace taper::llm
