#include "taper/runtime/extension/llm/embedder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm {

void StatePool::add(Span<const float> rows) {
  const auto width = static_cast<index_t>(sum_.size());
  for (index_t row = 0; row + width <= rows.size(); row += width) {
    const bool counts = pooling_ != Pooling::first || is_empty_;
    for (index_t i = 0; counts && i < width; ++i) {
      double& element = sum_[static_cast<size_t>(i)];
      element = static_cast<double>(rows[row + i]) + (pooling_ == Pooling::mean ? element : 0);
    }
    is_empty_ = false;
  }
}

// A mean and a sum have the same direction, which is all that is left.
std::vector<float> StatePool::result() const {
  double squares = 0;
  for (const double x : sum_) squares += x * x;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> embedding;
  for (const double x : sum_) embedding.push_back(static_cast<float>(x * scale));
  return embedding;
}

std::vector<TokenId> Embedder::tokens(std::string_view text) const {
  std::vector<TokenId> ids = tokenizer().encode(text);
  const auto most = static_cast<size_t>(longest());
  if (ids.size() <= most) return ids;
  const TokenId last = ids.back();  // encoders want the token that ends every text
  ids.resize(most);
  ids.back() = last;
  return ids;
}

Result<std::vector<float>> LanguageModelEmbedder::embed(Span<const TokenId> ids,
                                                        std::string* message) {
  return guarded<std::vector<float>>(message, [&] {
    std::string why;
    if (!sequence_) {
      Result<Sequence> made = Sequence::create(model_, &why);
      if (!made.ok()) throw Failure{made.error(), why};
      sequence_.emplace(std::move(made.value()));
    }
    Sequence& sequence = *sequence_;
    sequence.rewind(0);
    const int64_t chunk = sequence.states_chunk();
    if (chunk == 0)
      throw Failure{Error::not_supported, "the program does not give states of tokens"};
    if (ids.size() == 0) throw Failure{Error::invalid_argument, "the text has no tokens"};
    std::optional<StatePool> pool;
    for (index_t first = 0; first < ids.size(); first += chunk) {
      const Span<const TokenId> part =
          ids.part(first, std::min<index_t>(ids.size() - first, chunk));
      const Result<Span<float>> rows = sequence.append_states(part);
      if (!rows.ok()) throw Failure{rows.error(), sequence.message()};
      if (!pool) pool.emplace(pooling_, rows.value().size() / part.size());
      pool->add(rows.value());
    }
    return pool->result();
  });
}

}  // namespace taper::llm
