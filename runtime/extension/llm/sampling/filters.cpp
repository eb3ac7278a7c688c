#include "taper/runtime/extension/llm/sampling/filters.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace taper::llm {
namespace {

constexpr float removed = -std::numeric_limits<float>::infinity();

// The logarithm of the sum of exp(logits).
double log_sum(Span<float> logits) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    if (logit != removed) sum += std::exp(static_cast<double>(logit) - peak);
  }
  return peak + std::log(sum);
}

// -sum p log p
double entropy(Span<float> logits) {
  const double total = log_sum(logits);
  double sum = 0;
  for (const float logit : logits) {
    if (logit != removed) sum -= std::exp(logit - total) * (logit - total);
  }
  return sum;
}

// The value of the k-th largest. A heap holds the k largest so far; few logits are larger than its
// smallest.
float kth_largest(Span<float> logits, int k) {
  const index_t count = std::min<index_t>(k, logits.size());
  std::vector<float> largest(logits.begin(), logits.begin() + count);
  std::make_heap(largest.begin(), largest.end(), std::greater<float>());
  for (index_t i = count; i < logits.size(); ++i) {
    if (!(logits[i] > largest.front())) continue;
    std::pop_heap(largest.begin(), largest.end(), std::greater<float>());
    largest.back() = logits[i];
    std::push_heap(largest.begin(), largest.end(), std::greater<float>());
  }
  return largest.front();
}

// Removes those below `limit`, but not the `least` largest.
void remove_below(Span<float> logits, double limit, int least) {
  const double lowest =
      std::min(limit, static_cast<double>(kth_largest(logits, std::max(least, 1))));
  for (float& logit : logits) {
    if (logit < lowest) logit = removed;
  }
}

void remove_all_but(Span<float> logits, const std::vector<index_t>& kept) {
  std::vector<float> values;
  for (const index_t i : kept) values.push_back(logits[i]);
  std::fill(logits.begin(), logits.end(), removed);
  for (size_t i = 0; i < kept.size(); ++i) logits[kept[i]] = values[i];
}

// Calls `more(index)` for the logits that are left, from the largest down, until it returns false.
// A heap gives them, so a few cost much less than to sort all. Of equal logits the first comes
// first.
template <class More>
void for_each_descending(Span<float> logits, More more) {
  std::vector<index_t> heap;
  for (index_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != removed) heap.push_back(i);
  }
  const auto after = [&](index_t a, index_t b) {
    return logits[a] != logits[b] ? logits[a] < logits[b] : a > b;
  };
  std::make_heap(heap.begin(), heap.end(), after);
  while (!heap.empty() && more(heap.front())) {
    std::pop_heap(heap.begin(), heap.end(), after);
    heap.pop_back();
  }
}

}  // namespace

void apply_temperature(Span<float> logits, float temperature) {
  if (!(temperature > 0)) return;
  for (float& logit : logits) logit /= temperature;
}

void keep_top_k(Span<float> logits, int k, int least) {
  if (k < 1 || logits.empty()) return;
  remove_below(logits, kth_largest(logits, std::max(k, least)), 1);
}

void keep_top_p(Span<float> logits, float p, int least) {
  if (!(p >= 0 && p < 1) || logits.empty()) return;
  constexpr double rounding = 1e-9;  // of the sum
  const double total = log_sum(logits);
  double sum = 0;
  std::vector<index_t> kept;
  for_each_descending(logits, [&](index_t i) {
    const bool enough = sum >= p - rounding && static_cast<int>(kept.size()) >= std::max(least, 1);
    if (enough) return false;
    sum += std::exp(logits[i] - total);
    kept.push_back(i);
    return true;
  });
  remove_all_but(logits, kept);
}

void keep_min_p(Span<float> logits, float p, int least) {
  if (!(p > 0 && p <= 1) || logits.empty()) return;
  const double peak = *std::max_element(logits.begin(), logits.end());
  remove_below(logits, peak + std::log(static_cast<double>(p)), least);
}

void keep_typical(Span<float> logits, float mass, int least) {
  if (!(mass > 0 && mass < 1) || logits.empty()) return;
  const double total = log_sum(logits), expected = entropy(logits);
  std::vector<double> distance;
  for (const float logit : logits) distance.push_back(std::abs(total - logit - expected));
  std::vector<index_t> order(distance.size());
  std::iota(order.begin(), order.end(), index_t{0});
  const auto far = [&](index_t i) { return distance[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](index_t a, index_t b) { return far(a) < far(b); });
  size_t last = 0;
  double sum = 0;
  for (; last + 1 < order.size(); ++last) {
    sum += std::exp(logits[order[last]] - total);
    if (sum >= mass) break;
  }
  std::vector<index_t> kept;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool near_enough = far(order[i]) <= far(order[last]);
    if (near_enough || static_cast<int>(i) < least) kept.push_back(order[i]);
  }
  remove_all_but(logits, kept);
}

void keep_top_h(Span<float> logits, float share) {
  if (!(share > 0 && share <= 1) || logits.empty()) return;
  constexpr size_t considered = 100;
  std::vector<index_t> top;
  std::vector<float> values;
  for_each_descending(logits, [&](index_t i) {
    top.push_back(i);
    values.push_back(logits[i]);
    return top.size() < considered;
  });
  if (values.empty()) return;
  const double total = log_sum(values), limit = entropy(values) * share;
  double sum = 0;
  size_t count = 0;
  for (; count < top.size(); ++count) {
    sum -= std::exp(values[count] - total) * (values[count] - total);
    if (count > 0 && sum > limit) break;
  }
  top.resize(count);
  remove_all_but(logits, top);
}

void keep_epsilon(Span<float> logits, float epsilon, int least) {
  if (!(epsilon > 0 && epsilon < 1) || logits.empty()) return;
  remove_below(logits, log_sum(logits) + std::log(static_cast<double>(epsilon)), least);
}

void keep_eta(Span<float> logits, float epsilon, int least) {
  if (!(epsilon > 0 && epsilon < 1) || logits.empty()) return;
  const double falling = std::sqrt(static_cast<double>(epsilon)) * std::exp(-entropy(logits));
  const double eta = std::min(static_cast<double>(epsilon), falling);
  remove_below(logits, log_sum(logits) + std::log(eta), least);
}

void log_softmax(Span<float> logits) {
  if (logits.empty()) return;
  const double total = log_sum(logits);
  for (float& logit : logits) logit = static_cast<float>(logit - total);
}

}  // namespace taper::llm
