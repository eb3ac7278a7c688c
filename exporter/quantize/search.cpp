#include "taper/exporter/quantize/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <sstream>

#include "taper/exporter/base/error.h"

namespace taper::quantize {
namespace {

/// A change of one layer.
struct Step {
  size_t layer, level;
  double saved_bytes, added_noise;

  bool is_better_than(const Step& other) const {
    return saved_bytes * other.added_noise > other.saved_bytes * added_noise;
  }
};

class Search {
 public:
  Search(const std::vector<SearchLayer>& layers, const Goal& goal, const MeasureLevels& measure,
         const SearchProgress& progress)
      : layers_(layers), goal_(goal), measure_(measure), progress_(progress) {}

  SearchResult run() {
    expect(2);
    const Levels none(layers_.size(), 0);
    take(measured(none));
    require_goal();
    if (const SearchPoint all = measured(smallest()); is_good(all))
      take(all);
    else if (!layers_.empty())
      descend_and_repair(none);
    if (progress_) progress_(done_, done_);
    return std::move(result_);
  }

 private:
  // ---- measuring ----

  SearchPoint measured(const Levels& levels) {
    SearchPoint point{levels, bytes_of(levels), measure_(levels)};
    result_.measured.push_back(point);
    ++done_;
    if (progress_) progress_(done_, std::max(done_, expected_));
    return point;
  }
  void expect(size_t more) { expected_ = done_ + more; }
  bool is_good(const SearchPoint& point) const { return goal_.is_met_by(point.score.metric); }
  void take(const SearchPoint& point) { result_.best = point; }

  void require_goal() const {
    const double metric = result_.best.score.metric;
    if (goal_.is_met_by(metric)) return;
    std::ostringstream text;
    text << "the model reaches " << metric
         << (goal_.is_pruned
                 ? " after pruning, before it is quantized, so nothing meets the goal of "
                 : " before it is quantized, so nothing meets the goal of ")
         << (goal_.at_most ? "at most " : "at least ") << goal_.bound;
    throw ExportError(text.str());
  }

  int64_t bytes_of(const Levels& levels) const {
    int64_t sum = 0;
    for (size_t i = 0; i < layers_.size(); ++i) sum += layers_[i].bytes[levels[i]];
    return sum;
  }
  Levels smallest() const {
    Levels levels;
    for (const SearchLayer& layer : layers_) levels.push_back(layer.bytes.size() - 1);
    return levels;
  }

  // ---- the steps ----

  void descend_and_repair(const Levels& none) {
    size_t steps = 0, alone = 0;
    for (const SearchLayer& layer : layers_) {
      steps += layer.bytes.size() - 1;
      alone += layer.errors.empty() ? layer.bytes.size() - 1 : size_t{2};
    }
    // a bisection takes the logarithm of the way, and the repair a try for each layer
    expect(alone + std::bit_width(steps) + layers_.size());
    measure_noises(none);
    expect(std::bit_width(steps) + layers_.size());
    bisect(way_down(none));
    repair();
  }

  void measure_noises(const Levels& none) {
    noises_.assign(layers_.size(), {});
    for (size_t i = 0; i < layers_.size(); ++i) {
      const auto alone = [&](size_t level) {
        Levels levels = none;
        levels[i] = level;
        return usable(measured(levels).score.noise);
      };
      const size_t last = layers_[i].bytes.size() - 1;
      std::vector<double>& noise = noises_[i];
      noise.assign(last + 1, 0);
      if (layers_[i].errors.empty() || last < 3) {
        for (size_t level = 1; level <= last; ++level) noise[level] = alone(level);
      } else {
        noise[1] = alone(1), noise[last] = alone(last);
        interpolate(layers_[i].errors, noise);
      }
    }
  }
  /// A part of the noise grows with the error of a level, and a part is that of all levels: rounded
  /// activations make it. The noises of the first and the last level are known.
  static void interpolate(const std::vector<double>& errors, std::vector<double>& noise) {
    const size_t last = noise.size() - 1;
    const double range = errors[last] - errors[1];
    for (size_t level = 2; level < last; ++level) {
      const double part = range != 0 ? (errors[level] - errors[1]) / range : 0;
      noise[level] = usable(std::max(0.0, noise[1] + part * (noise[last] - noise[1])));
    }
  }
  /// Infinite noises would have no differences.
  static double usable(double noise) {
    constexpr double most = 1e30;
    return std::isfinite(noise) ? std::min(noise, most) : most;
  }

  Step step(const Levels& from, size_t layer, size_t level) const {
    // a step that adds no noise, or takes some away, comes first
    constexpr double least = 1e-30;
    const std::vector<double>& noise = noises_[layer];
    const std::vector<int64_t>& bytes = layers_[layer].bytes;
    return {layer, level, static_cast<double>(bytes[from[layer]] - bytes[level]),
            std::max(noise[level] - noise[from[layer]], least)};
  }

  /// All levels on the way from the model as it was to the smallest one.
  std::vector<Levels> way_down(Levels levels) const {
    std::vector<Levels> way = {levels};
    for (;;) {
      const Step* best = nullptr;
      std::vector<Step> steps;
      for (size_t i = 0; i < layers_.size(); ++i)
        for (size_t level = levels[i] + 1; level < layers_[i].bytes.size(); ++level)
          steps.push_back(step(levels, i, level));
      for (const Step& s : steps)
        if (best == nullptr || s.is_better_than(*best)) best = &s;
      if (best == nullptr) return way;
      levels[best->layer] = best->level;
      way.push_back(levels);
    }
  }

  /// Measures about log2 points. The first of the way is good, and the last is not.
  void bisect(const std::vector<Levels>& way) {
    size_t good = 0, bad = way.size() - 1;
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      const SearchPoint point = measured(way[middle]);
      if (is_good(point))
        take(point), good = middle;
      else
        bad = middle;
    }
  }

  /// Noises are estimates: what they forbid may be possible nevertheless. A layer goes on by one
  /// level. One that is still as it was takes most bytes, so it tries all of its levels.
  void repair() {
    expect(layers_.size());
    std::set<std::pair<size_t, size_t>> refused;
    for (;;) {
      const Levels from = result_.best.levels;
      std::vector<Step> steps;
      for (size_t i = 0; i < layers_.size(); ++i) {
        const size_t end = layers_[i].bytes.size();
        for (size_t l = from[i] + 1; l < (from[i] == 0 ? end : std::min(end, from[i] + 2)); ++l)
          if (!refused.contains({i, l})) steps.push_back(step(from, i, l));
      }
      if (steps.empty()) return;
      const Step& next = *std::ranges::max_element(
          steps, [](const Step& a, const Step& b) { return b.is_better_than(a); });
      Levels levels = from;
      levels[next.layer] = next.level;
      const SearchPoint point = measured(levels);
      if (is_good(point))
        take(point);
      else
        refused.insert({next.layer, next.level});
    }
  }

  const std::vector<SearchLayer>& layers_;
  const Goal& goal_;
  const MeasureLevels& measure_;
  const SearchProgress& progress_;
  std::vector<std::vector<double>> noises_;  ///< of each level of each layer, alone
  SearchResult result_;
  size_t done_ = 0, expected_ = 0;
};

}  // namespace

std::vector<SearchPoint> SearchResult::curve(const Goal& goal) const {
  std::vector<SearchPoint> points = measured;
  const auto is_better = [&](double a, double b) { return goal.at_most ? a < b : a > b; };
  std::ranges::stable_sort(points, [&](const SearchPoint& a, const SearchPoint& b) {
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    return is_better(a.score.metric, b.score.metric);
  });
  std::vector<SearchPoint> kept;
  for (const SearchPoint& p : points)
    if (kept.empty() ? !std::isnan(p.score.metric)
                     : is_better(p.score.metric, kept.back().score.metric))
      kept.push_back(p);
  std::ranges::reverse(kept);
  return kept;
}

SearchResult search_levels(const std::vector<SearchLayer>& layers, const Goal& goal,
                           const MeasureLevels& measure, const SearchProgress& progress) {
  return Search(layers, goal, measure, progress).run();
}

}  // namespace taper::quantize
