#include "taper/exporter/emit/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace taper::emit {
namespace {

int64_t round_up(int64_t n) {
  return (n + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// Which buffers live at the same time: `neighbours[i]` in increasing order.
std::vector<std::vector<int>> live_together(const std::vector<PlannedBuffer>& buffers) {
  const int n = static_cast<int>(buffers.size());
  std::vector<std::vector<int>> neighbours(buffers.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j)
      if (buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last)
        neighbours[i].push_back(j), neighbours[j].push_back(i);
  return neighbours;
}

int64_t most_live_bytes(const std::vector<PlannedBuffer>& buffers,
                        const std::vector<int64_t>& sizes) {
  std::map<int, int64_t> change;
  for (size_t i = 0; i < buffers.size(); ++i)
    change[buffers[i].first] += sizes[i], change[buffers[i].last + 1] -= sizes[i];
  int64_t live = 0, most = 0;
  for (const auto& [time, bytes] : change) most = std::max(most, live += bytes);
  return most;
}

/// The settings of all symbols to plan for, the maximum first: then the minimum, the middle, and
/// each symbol alone at its maximum.
std::vector<Dim::Bindings> settings_of(const std::vector<PlannedBuffer>& buffers) {
  std::vector<const Symbol*> symbols;
  for (const PlannedBuffer& b : buffers)
    for (const Symbol* s : b.size_bytes.symbols())
      if (std::ranges::find(symbols, s) == symbols.end()) symbols.push_back(s);
  std::vector<Dim::Bindings> settings(1);
  for (const Symbol* s : symbols) settings[0][s] = s->maximum;
  if (symbols.empty()) return settings;
  settings.resize(3, settings[0]);
  for (const Symbol* s : symbols) {
    settings[1][s] = std::max<int64_t>(s->minimum, 0);
    settings[2][s] = settings[1][s] + (s->maximum - settings[1][s]) / 2;
  }
  if (symbols.size() == 1) return settings;
  for (size_t i = 0; i < std::min<size_t>(symbols.size(), 6); ++i)
    settings.push_back(settings[1]), settings.back()[symbols[i]] = symbols[i]->maximum;
  return settings;
}

class Planner {
 public:
  explicit Planner(const std::vector<PlannedBuffer>& buffers)
      : buffers_(buffers), neighbours_(live_together(buffers)) {
    for (const Dim::Bindings& setting : settings_of(buffers)) {
      auto& sizes = sizes_.emplace_back();
      for (const PlannedBuffer& b : buffers)
        sizes.push_back(round_up(std::max<int64_t>(b.size_bytes.evaluate(setting), 0)));
    }
  }

  MemoryPlan run() {
    std::vector<int64_t> exact;
    const Dim::Bindings maximum = settings_of(buffers_)[0];
    for (const PlannedBuffer& b : buffers_) exact.push_back(b.size_bytes.evaluate(maximum));
    const int64_t bound = most_live_bytes(buffers_, exact),
                  rounded_bound = most_live_bytes(buffers_, sizes_[0]);

    for (const auto& sizes : sizes_) {
      for (auto& sequence : sequences(sizes)) try_sequence(sequence, sizes);
      if (best_peak_ == rounded_bound) break;
    }
    improve(rounded_bound);

    MemoryPlan plan;
    plan.order = best_order_;
    plan.above = lists_of(best_order_);
    plan.lower_bound_bytes = bound;
    std::vector<int64_t> places;
    plan.peak_bytes = place_buffers(plan, sizes_[0], places);
    return plan;
  }

 private:
  using Sequence = std::vector<int>;

  /// Sequences in which to place buffers: large ones first, long-lived ones first, in order of
  /// time, …
  std::vector<Sequence> sequences(const std::vector<int64_t>& sizes) const {
    Sequence all(buffers_.size());
    std::iota(all.begin(), all.end(), 0);
    const auto life = [&](int i) -> int64_t { return buffers_[i].last - buffers_[i].first + 1; };
    const auto by = [&](auto key) {
      Sequence s = all;
      std::ranges::stable_sort(s, [&](int a, int b) { return key(a) < key(b); });
      return s;
    };
    return {
        by([&](int i) { return std::tuple(-sizes[i], -life(i), buffers_[i].first); }),
        by([&](int i) { return std::tuple(-sizes[i], int64_t{buffers_[i].first}, 0); }),
        by([&](int i) { return std::tuple(-life(i), -sizes[i], 0); }),
        by([&](int i) {
          return std::tuple(-static_cast<double>(sizes[i]) * static_cast<double>(life(i)), 0, 0);
        }),
        by([&](int i) { return std::tuple(buffers_[i].first, -sizes[i], 0); }),
        by([&](int i) { return std::tuple(-buffers_[i].last, -sizes[i], 0); }),
    };
  }

  /// Places each buffer at the lowest gap that takes it, or the tightest one, and remembers the
  /// resulting order if it is the best.
  void try_sequence(const Sequence& sequence, const std::vector<int64_t>& sizes) {
    for (const bool tightest : {false, true}) {
      place_greedily(sequence, sizes, tightest);
      Sequence order(buffers_.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(
          order, {}, [&](int i) { return std::tuple(places_[i], sizes[i] == 0 ? 0 : 1); });
      const auto [peak, others] = peaks(order);
      if (best_order_.empty() || std::tie(peak, others) < std::tie(best_peak_, best_others_))
        best_peak_ = peak, best_others_ = others, best_order_ = order, best_sequence_ = sequence;
    }
  }

  void place_greedily(const Sequence& sequence, const std::vector<int64_t>& sizes, bool tightest) {
    places_.assign(buffers_.size(), -1);
    std::vector<int> conflicts;
    for (int i : sequence) {
      conflicts.clear();
      for (int j : neighbours_[i])
        if (places_[j] >= 0) conflicts.push_back(j);
      std::ranges::sort(conflicts, {}, [&](int j) { return places_[j]; });
      int64_t at = 0, best_gap = std::numeric_limits<int64_t>::max(), best = -1;
      for (int j : conflicts) {
        const int64_t gap = places_[j] - at;
        if (gap >= sizes[i] && gap < best_gap) {
          best = at, best_gap = gap;
          if (!tightest) break;
        }
        at = std::max(at, places_[j] + sizes[j]);
      }
      places_[i] = best >= 0 ? best : at;
    }
  }

  /// The peak that an order gives at the maximum, and the sum over the other settings.
  std::pair<int64_t, double> peaks(const Sequence& order) {
    std::vector<int> rank(order.size());
    for (size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<int>(k);
    int64_t at_maximum = 0;
    double others = 0;
    std::vector<int64_t> ends(order.size());
    for (size_t s = 0; s < sizes_.size(); ++s) {
      int64_t peak = 0;
      for (int i : order) {
        int64_t place = 0;
        for (int j : neighbours_[i])
          if (rank[j] < rank[i]) place = std::max(place, ends[j]);
        ends[i] = place + sizes_[s][i];
        peak = std::max(peak, ends[i]);
      }
      if (s == 0)
        at_maximum = peak;
      else
        others += static_cast<double>(peak);
    }
    return {at_maximum, others};
  }

  /// Moves buffers that reach the peak to the front of the sequence, as long as that helps now and
  /// then.
  void improve(int64_t bound) {
    const int rounds = buffers_.size() > 2000 ? 20 : 200;
    Sequence sequence = best_sequence_;
    for (int round = 0; round < rounds && best_peak_ > bound; ++round) {
      place_greedily(sequence, sizes_[0], round % 2 == 1);
      int highest = 0;
      for (size_t i = 0; i < places_.size(); ++i)
        if (places_[i] + sizes_[0][i] > places_[highest] + sizes_[0][highest])
          highest = static_cast<int>(i);
      auto at = std::ranges::find(sequence, highest);
      if (at == sequence.begin()) break;
      std::rotate(sequence.begin(), at, at + 1);
      try_sequence(sequence, sizes_[0]);
    }
  }

  /// For each buffer those directly below it: of the buffers it must lie above, the ones that no
  /// other of them covers.
  std::vector<std::vector<int>> lists_of(const Sequence& order) const {
    const size_t n = order.size();
    std::vector<int> rank(n);
    for (size_t k = 0; k < n; ++k) rank[order[k]] = static_cast<int>(k);
    std::vector<std::vector<bool>> below(n, std::vector<bool>(n));
    std::vector<std::vector<int>> above(n);
    for (int i : order) {
      std::vector<int> candidates;
      for (int j : neighbours_[i])
        if (rank[j] < rank[i]) candidates.push_back(j);
      std::ranges::sort(candidates, std::greater(), [&](int j) { return rank[j]; });
      for (int j : candidates) {
        if (below[i][j]) continue;
        above[i].push_back(j);
        below[i][j] = true;
        for (size_t k = 0; k < n; ++k)
          if (below[j][k]) below[i][k] = true;
      }
    }
    return above;
  }

  const std::vector<PlannedBuffer>& buffers_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<std::vector<int64_t>> sizes_;  // rounded up, a vector for each setting
  std::vector<int64_t> places_;
  Sequence best_order_, best_sequence_;
  int64_t best_peak_ = 0;
  double best_others_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const std::vector<PlannedBuffer>& buffers) {
  return buffers.empty() ? MemoryPlan{} : Planner(buffers).run();
}

int64_t place_buffers(const MemoryPlan& plan, const std::vector<int64_t>& sizes,
                      std::vector<int64_t>& places) {
  places.assign(sizes.size(), 0);
  int64_t peak = 0;
  for (int i : plan.order) {
    for (int j : plan.above[i]) places[i] = std::max(places[i], round_up(places[j] + sizes[j]));
    peak = std::max(peak, places[i] + sizes[i]);
  }
  return peak;
}

}  // namespace taper::emit
