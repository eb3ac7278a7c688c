#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "taper/exporter/serve/engine.h"

namespace taper::serve {

Job::Job(TextRequest request, std::chrono::steady_clock::time_point deadline)
    : request_(std::move(request)), deadline_(deadline) {
  request_.options.cancel = &cancelled_;
  if (request_.likeliest < 0) return;
  request_.options.before_token = [this](Span<float> logits, Span<const llm::TokenId>) {
    logits_.assign(logits.begin(), logits.end());
  };
  request_.options.after_token = [this](llm::TokenId id) { note_token(id); };
}

// The logarithm of softmax: x - log(sum of exp(x)), with the peak subtracted first.
void Job::note_token(llm::TokenId id) {
  const float peak = *std::ranges::max_element(logits_);
  double sum = 0;
  for (const float x : logits_) sum += std::exp(static_cast<double>(x) - peak);
  const double log_sum = peak + std::log(sum);
  const auto chance = [&](llm::TokenId of) {
    return static_cast<double>(logits_[static_cast<size_t>(of)]) - log_sum;
  };
  TokenChance token{id, chance(id), {}};
  std::vector<llm::TokenId> order(logits_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min(order.size(), static_cast<size_t>(request_.likeliest));
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](llm::TokenId a, llm::TokenId b) {
                              const float x = logits_[static_cast<size_t>(a)],
                                          y = logits_[static_cast<size_t>(b)];
                              return x != y ? x > y : a < b;
                            });
  for (size_t i = 0; i < count; ++i) token.likeliest.emplace_back(order[i], chance(order[i]));
  step_.push_back(std::move(token));
}

// Called by the engine after each step.
void Job::add(const llm::Generation& generation) {
  const bool ended = generation.finish() != llm::Finish::none;
  if (generation.finish() == llm::Finish::end) step_.clear();  // of the token that ends the text
  if (generation.piece().empty() && step_.empty() && !ended) return;
  const std::lock_guard lock(mutex_);
  if (progress_.finish != llm::Finish::none) return;  // it failed
  progress_.text += generation.piece();
  std::ranges::move(step_, std::back_inserter(progress_.chances));
  step_.clear();
  if (ended) {
    const bool fits = request_.options.grammar == nullptr || request_.options.grammar->may_end();
    const bool is_stuck = generation.finish() == llm::Finish::end && !fits;
    progress_.finish = is_stuck ? llm::Finish::failed : generation.finish();
    progress_.message =
        is_stuck ? "no token fits the JSON schema behind the answer so far" : generation.message();
    progress_.statistics = generation.statistics();
  }
  came_.notify_all();
}

void Job::end(llm::Finish finish, const std::string& message) {
  const std::lock_guard lock(mutex_);
  progress_.finish = finish, progress_.message = message;
  came_.notify_all();
}

Progress Job::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, most, [&] {
    return !progress_.text.empty() || !progress_.chances.empty() ||
           progress_.finish != llm::Finish::none;
  });
  Progress came = std::move(progress_);
  progress_ = Progress{};
  progress_.finish = came.finish;  // stays, if somebody looks again
  return came;
}

}  // namespace taper::serve
