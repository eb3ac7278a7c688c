#include "taper/exporter/emit/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "taper/exporter/emit/packing.h"

namespace taper::emit {
namespace {

int64_t round_up(int64_t n) {
  return (n + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

/// The time at which the most bytes are needed, in every plan. The buffers that live at this time
/// lie on each other. All but the topmost one take their rounded size.
struct Load {
  int64_t bytes = 0;
  int time = 0;
};
Load greatest_load(const std::vector<Life>& lives, const Sizes& sizes) {
  struct Change {
    int time;
    bool is_birth;
    int64_t bytes, padding;
  };
  std::vector<Change> changes;
  for (size_t i = 0; i < lives.size(); ++i) {
    const int64_t bytes = round_up(sizes[i]), padding = bytes - sizes[i];
    changes.push_back({lives[i].first, true, bytes, padding});
    changes.push_back({lives[i].last + 1, false, bytes, padding});
  }
  // at the same time, deaths come before births
  std::ranges::sort(changes, {}, [](const Change& c) { return std::tuple(c.time, c.is_birth); });
  Load most;
  int64_t bytes = 0;
  std::multiset<int64_t> paddings;  // of the buffers that live
  for (const Change& c : changes) {
    if (!c.is_birth) {
      bytes -= c.bytes, paddings.erase(paddings.find(c.padding));
      continue;
    }
    bytes += c.bytes, paddings.insert(c.padding);
    if (const int64_t least = bytes - *paddings.rbegin(); least > most.bytes)
      most = {least, c.time};
  }
  return most;
}

/// The settings of the symbols to plan for. The first is the maximum of all; then come the minimum,
/// the middle, and the maximum of one symbol with the minimum of the others, for the first few
/// symbols.
std::vector<Dim::Bindings> settings_of(const std::vector<PlannedBuffer>& buffers) {
  std::set<std::pair<uint64_t, const Symbol*>> symbols;  // in the order in which they were made
  for (const PlannedBuffer& b : buffers)
    for (const Symbol* s : b.size_bytes.symbols()) symbols.emplace(s->id, s);
  std::vector<Dim::Bindings> settings(1);
  for (const auto& [id, s] : symbols) settings[0][s] = s->maximum;
  if (symbols.empty()) return settings;
  settings.resize(3, settings[0]);
  for (const auto& [id, s] : symbols) {
    settings[1][s] = std::max<int64_t>(s->minimum, 0);
    settings[2][s] = settings[1][s] + (s->maximum - settings[1][s]) / 2;
  }
  if (symbols.size() == 1) return settings;
  constexpr size_t most_settings = 9;
  for (const auto& [id, s] : symbols) {
    if (settings.size() == most_settings) break;
    settings.push_back(settings[1]), settings.back()[s] = s->maximum;
  }
  return settings;
}

std::vector<Life> lives_of(const std::vector<PlannedBuffer>& buffers) {
  std::vector<Life> lives;
  for (const PlannedBuffer& b : buffers) lives.push_back({b.first, b.last});
  return lives;
}

/// For each buffer, the buffers directly below it, if they are stacked in this order.
///
/// Seen from above, the line of time is covered by pieces of buffers. A new buffer covers a part of
/// the line. It lies directly above a buffer if one piece shows this buffer during the whole time
/// that both live. Every other buffer under it lies below one of these. The new buffer removes the
/// pieces that it covers and adds at most three. So all lists together have at most three entries
/// for each buffer. Adds the number of pieces that were looked at to `steps`.
std::vector<std::vector<int>> lists_of(const Sequence& order, const std::vector<Life>& lives,
                                       int64_t& steps) {
  constexpr int nobody = -1;
  std::vector<std::vector<int>> above(order.size());
  // time from which a piece is seen, and its buffer
  std::map<int, int> seen{{std::numeric_limits<int>::min(), nobody}};
  const auto cut_at = [&](int time) {
    const auto piece = std::prev(seen.upper_bound(time));
    return piece->first == time ? piece : seen.emplace(time, piece->second).first;
  };
  for (const int i : order) {
    const auto [first, last] = lives[i];
    const auto begin = cut_at(first), end = cut_at(last + 1);
    for (auto piece = begin; piece != end; ++piece, ++steps) {
      const int j = piece->second;
      const bool from_birth = j != nobody && piece->first <= std::max(lives[j].first, first),
                 until_death =
                     j != nobody && std::min(lives[j].last, last) < std::next(piece)->first;
      if (from_birth && until_death) above[i].push_back(j);
    }
    seen.erase(std::next(begin), end);
    begin->second = i;
  }
  return above;
}

class Planner {
 public:
  explicit Planner(const std::vector<PlannedBuffer>& buffers)
      : lives_(lives_of(buffers)), packer_(lives_) {
    for (const Dim::Bindings& setting : settings_of(buffers)) {
      Sizes &sizes = sizes_.emplace_back(), &rounded = rounded_.emplace_back();
      for (const PlannedBuffer& b : buffers) {
        sizes.push_back(std::max<int64_t>(b.size_bytes.evaluate(setting), 0));
        rounded.push_back(round_up(sizes.back()));
      }
    }
    first_ = std::ranges::min(lives_, {}, &Life::first).first;
    last_ = std::ranges::max(lives_, {}, &Life::last).last;
  }

  MemoryPlan run() {
    bound_ = greatest_load(lives_, sizes_[0]).bytes;
    for (size_t setting = 0; setting < sizes_.size(); ++setting) {
      try_sweeps(setting);
      try_searches(setting);
      if (reaches_bound()) break;
    }
    improve();
    best_.plan.lower_bound_bytes = bound_;
    best_.plan.steps = steps_ + packer_.steps();
    return std::move(best_.plan);
  }

 private:
  template <class Key>
  Sequence sorted_by(Key key) const {
    Sequence sequence(lives_.size());
    std::iota(sequence.begin(), sequence.end(), 0);
    std::ranges::stable_sort(sequence, {}, key);
    return sequence;
  }

  /// Sweeps from the time that needs the most bytes, where buffers are then packed without gaps,
  /// and from both ends.
  void try_sweeps(size_t setting) {
    const Sizes& sizes = rounded_[setting];
    const int fullest = greatest_load(lives_, sizes_[setting]).time;
    for (const Sequence& sequence : {
             sorted_by([&](int i) { return -lives_[i].length(); }),
             sorted_by([&](int i) { return lives_[i].first; }),
             sorted_by([&](int i) { return -lives_[i].last; }),
             sorted_by([&](int i) { return -sizes[i]; }),
         })
      for (const int start : {fullest, first_, last_})
        if (!is_settled()) consider(packer_.sweep(sizes, start, sequence), sequence, setting);
  }

  /// Searches with several sequences: large buffers first, long-lived buffers first, in order of
  /// time, …
  void try_searches(size_t setting) {
    const Sizes& sizes = rounded_[setting];
    const std::vector<Life>& lives = lives_;
    for (const Sequence& sequence : {
             sorted_by(
                 [&](int i) { return std::tuple(-sizes[i], -lives[i].length(), lives[i].first); }),
             sorted_by([&](int i) { return std::tuple(-sizes[i], lives[i].first); }),
             sorted_by([&](int i) { return std::tuple(-lives[i].length(), -sizes[i]); }),
             sorted_by([&](int i) {
               return -static_cast<double>(sizes[i]) * static_cast<double>(lives[i].length());
             }),
             sorted_by([&](int i) { return std::tuple(lives[i].first, -sizes[i]); }),
             sorted_by([&](int i) { return std::tuple(-lives[i].last, -sizes[i]); }),
         })
      search(sequence, setting);
  }

  void search(const Sequence& sequence, size_t setting) {
    for (const bool tightest : {false, true})
      if (!is_settled() && packer_.may_search())
        consider(packer_.search(rounded_[setting], sequence, tightest), sequence, setting);
  }

  /// A plan, the sequence of placing that led to it, and the sum of its peaks at the other
  /// settings.
  struct Candidate {
    MemoryPlan plan;
    Sequence sequence;
    double others = 0;

    auto cost() const { return std::tuple(round_up(plan.peak_bytes), others, plan.peak_bytes); }
  };

  /// Whether no other order can be better.
  bool is_settled() const {
    return sizes_.size() == 1 && !best_.plan.order.empty() && best_.plan.peak_bytes == bound_;
  }
  /// Whether the plan reaches the bound, apart from rounding to the alignment.
  bool reaches_bound() const { return round_up(best_.plan.peak_bytes) == round_up(bound_); }

  /// Derives an order from these places at a setting, and keeps it if it is the best so far.
  void consider(const Places& places, const Sequence& sequence, size_t setting) {
    Candidate c{{}, sequence};
    // an empty buffer lies below others that begin at the same place
    c.plan.order = sorted_by([&](int i) { return std::tuple(places[i], sizes_[setting][i] > 0); });
    c.plan.above = lists_of(c.plan.order, lives_, steps_);
    Places ignored;
    c.plan.peak_bytes = place_buffers(c.plan, sizes_[0], ignored);
    for (size_t s = 1; s < sizes_.size(); ++s)
      c.others += static_cast<double>(place_buffers(c.plan, sizes_[s], ignored));
    if (best_.plan.order.empty() || c.cost() < best_.cost()) best_ = std::move(c);
  }

  /// Moves buffers that reach the peak to the front of the sequence, and searches again, for a
  /// limited number of rounds.
  void improve() {
    constexpr int rounds = 200;
    const Sizes& sizes = rounded_[0];
    Sequence sequence = best_.sequence;
    for (int round = 0; round < rounds && !reaches_bound() && packer_.may_search(); ++round) {
      const Places places = packer_.search(sizes, sequence, round % 2 == 1);
      const auto highest =
          std::ranges::max_element(sequence, {}, [&](int i) { return places[i] + sizes[i]; });
      if (highest == sequence.begin()) break;
      std::rotate(sequence.begin(), highest, highest + 1);
      search(sequence, 0);
    }
  }

  const std::vector<Life> lives_;
  int first_, last_;
  Packer packer_;
  std::vector<Sizes> sizes_, rounded_;  // one for each setting
  int64_t bound_ = 0, steps_ = 0;
  Candidate best_;
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
