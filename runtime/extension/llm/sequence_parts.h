#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/language_model.h"
#include "taper/runtime/extension/llm/language_model_parts.h"
#include "taper/runtime/extension/llm/row_caches.h"

namespace taper::llm {

struct Sequence::Parts {
  explicit Parts(const LanguageModel& of)
      : model(of),
        row(of.parts_->take_row()),
        caches(row.session().session(), row.row(), of.rows(), of.text().rewinds ? of.context() : 0),
        forward(of.parts_->method(row.session(), method_name)) {}

  Error fail(Error error, std::string why) { return message = std::move(why), error; }
  Error run(RowMethod& with, Span<const TokenId> ids, const std::atomic<bool>* cancel, bool keeps);
  Error keep_results(const Method& of, index_t row);
  void forget_unfinished();
  /// The number of an adapter of the model; 0: "", and -1: there is none.
  int64_t find_adapter(std::string_view name) const;
  std::string no_adapter(std::string_view name) const;
  Error require_room(index_t count);
  Error require_in_vocabulary(TokenId id);
  /// A method that gives rows of every token.
  struct Extra {
    const char *name, *rows;
    RowMethod* method;  ///< when it was asked for
  };
  RowMethod* find(Extra& extra);
  int64_t chunk_of(Extra& extra) { return find(extra) == nullptr ? 0 : extra.method->chunk; }
  Result<Span<float>> append(Extra& extra, Span<const TokenId> ids,
                             const std::atomic<bool>* cancel);
  Span<float> kept() { return {results.data(), static_cast<index_t>(results.size())}; }

  LanguageModel model;
  TakenRow row;
  RowCaches caches;
  RowMethod& forward;
  Extra all{all_logits_name, "logits", nullptr}, states{states_name, "states", nullptr};
  std::string adapter;
  int64_t adapter_index = 0;  ///< 0: none
  std::vector<TokenId> tokens;
  std::vector<float> results;  ///< the logits or states that the last call gave
  std::string message;
};

}  // namespace taper::llm
