#include "taper/exporter/quantize/target.h"

#include <algorithm>
#include <set>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/quantize/cache.h"
#include "taper/exporter/quantize/choose.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/quantize.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

bool is_unchanged(const Levels& levels) {
  return std::ranges::all_of(levels, [](size_t level) { return level == 0; });
}

void require_change(const SearchPoint& point) {
  if (is_unchanged(point.levels))
    throw ExportError("every layer must stay float to meet the goal; allow a larger loss");
}

/// Copies that a candidate may change.
struct Copies {
  explicit Copies(const std::vector<ir::Graph*>& graphs) {
    for (const ir::Graph* graph : graphs) owned.push_back(copy_of(*graph));
    for (const auto& graph : owned) list.push_back(graph.get());
  }
  std::vector<std::unique_ptr<ir::Graph>> owned;
  std::vector<ir::Graph*> list;
};

// ---- weights in blocks

/// Formats that lie between float and what a recipe says, from the largest.
constexpr Layout more_bits[] = {Layout::q8_0, Layout::q6_k, Layout::q5_1, Layout::q5_k,
                                Layout::q4_1, Layout::q4_k, Layout::q3_z, Layout::q3_k};

class BlockLevels {
 public:
  BlockLevels(const std::vector<ir::Graph*>& graphs, const Recipe& least) : least_(least) {
    for (ir::Graph* graph : graphs)
      ir::for_each_graph(*graph, [&](ir::Graph& g) {
        std::vector<Weight> found = find_weights(g);
        widen_others(least, found);
        for (const Weight& w : found) add(w);
      });
    if (layers_.empty())
      throw ExportError("recipe " + least.name +
                        " puts no weight of the model into blocks, so there is nothing to search");
  }

  const std::vector<SearchLayer>& layers() const { return layers_; }

  /// Quantizes copies of the graphs with each level, and keeps what that does to the weights.
  void compare_weights(const std::vector<ir::Graph*>& graphs, const Options& options) {
    for (size_t level = 1; level < most_levels(); ++level) {
      Levels levels;
      for (const SearchLayer& l : layers_) levels.push_back(std::min(level, l.bytes.size() - 1));
      const Copies copies(graphs);
      const Report report = quantize(copies.list, recipe_of(levels), options);
      for (SearchLayer& l : layers_)
        if (level < l.bytes.size()) l.errors.push_back(error_of(report, l.name));
    }
  }

  Recipe recipe_of(const Levels& levels) const {
    Recipe recipe{least_.name, {}, true};
    for (size_t i = 0; i < levels.size(); ++i)
      recipe.rules.push_back({layers_[i].name, schemes_[i][levels[i]]});
    recipe.rules.insert(recipe.rules.end(), least_.rules.begin(), least_.rules.end());
    return recipe;
  }

 private:
  void add(const Weight& w) {
    const Rule* rule = rule_for(least_, w);
    const std::string& path = w.constant->path;
    if (!w.obstacle.empty() || path.empty() || rule == nullptr) return;
    if (rule->scheme.weights != Scheme::Weights::blocks || !known_.insert(path).second) return;
    const ChosenFormat last = choose_format(rule->scheme, w);
    if (last.format == nullptr) return;
    SearchLayer layer{path, {static_cast<int64_t>(w.constant->payload->size_bytes)}, {0.0}};
    std::vector<Scheme> schemes = {Scheme{}};
    for (const Layout layout : more_bits) {
      Scheme scheme = rule->scheme;
      scheme.layouts = {layout};
      // it is for formats with offsets
      if (scheme.method == Method::hqq && !find_format(layout)->has_offset)
        scheme.method = Method::best;
      const ChosenFormat chosen = choose_format(scheme, w);
      if (chosen.format == nullptr) continue;
      const int64_t bytes = chosen.bytes(w.rows());
      if (bytes >= layer.bytes.back() || bytes <= last.bytes(w.rows())) continue;
      layer.bytes.push_back(bytes), schemes.push_back(scheme);
    }
    layer.bytes.push_back(last.bytes(w.rows())), schemes.push_back(rule->scheme);
    layers_.push_back(std::move(layer)), schemes_.push_back(std::move(schemes));
  }

  size_t most_levels() const {
    size_t most = 0;
    for (const SearchLayer& l : layers_) most = std::max(most, l.bytes.size());
    return most;
  }
  /// Of the results if there is calibration data, else of the weight itself.
  static double error_of(const Report& report, const std::string& path) {
    const Measure& m = std::ranges::find(report.weights, path, &WeightReport::path)->measure;
    if (m.has_output()) return m.output_noise / m.output_signal;
    return m.signal > 0 ? m.noise / m.signal : 0;
  }

  const Recipe& least_;
  std::set<std::string> known_;  ///< graphs share weights
  std::vector<SearchLayer> layers_;
  std::vector<std::vector<Scheme>> schemes_;  ///< of each level of each layer
};

// ---- static integers

int64_t bytes_of_result(const ir::Value& value) {
  int64_t count = 1;
  for (int d = 0; d < value.type.rank; ++d)
    count *= std::max<int64_t>(value.type.sizes[d].lower(), 1);
  return count * static_cast<int64_t>(sizeof(float));
}

/// Levels 0 and 1: float, and 8 bits.
std::vector<SearchLayer> static_layers(ir::Graph& graph, const StaticOptions& options) {
  std::vector<SearchLayer> layers;
  for (const auto& [node, end] : make_plan(graph, options).ends) {
    int64_t bytes = bytes_of_result(*end);
    if (const auto product = product_of(*node)) bytes += bytes_of_result(*product->weight);
    layers.push_back({node->result()->name, {bytes, bytes / 4}, {}});
  }
  return layers;
}

StaticOptions with_levels(const StaticOptions& options, const std::vector<SearchLayer>& layers,
                          const Levels& levels) {
  StaticOptions changed = options;
  for (size_t i = 0; i < levels.size(); ++i)
    if (levels[i] == 0) changed.float_results.insert(layers[i].name);
  return changed;
}

}  // namespace

BlockTarget recipe_for(const std::vector<ir::Graph*>& graphs, const Recipe& least,
                       const Options& options, const Target& target) {
  fold_batch_norms(graphs, least);
  Cache cache;
  const Options quiet{options.samples, {}, &cache};
  BlockLevels levels(graphs, least);
  levels.compare_weights(graphs, quiet);
  const auto measure = [&](const Levels& chosen) {
    const Copies copies(graphs);
    if (!is_unchanged(chosen)) quantize(copies.list, levels.recipe_of(chosen), quiet);
    return target.measure(copies.list);
  };
  BlockTarget found{{}, search_levels(levels.layers(), target.goal, measure, target.progress)};
  require_change(found.search.best);
  found.recipe = levels.recipe_of(found.search.best.levels);
  return found;
}

StaticTarget static_options_for(ir::Graph& graph, const Ranges& ranges,
                                const StaticOptions& options, const Target& target) {
  const std::vector<SearchLayer> layers = static_layers(graph, options);
  const auto measure = [&](const Levels& chosen) {
    const Copies copies({&graph});
    if (!is_unchanged(chosen))
      quantize_static(*copies.list[0], ranges, with_levels(options, layers, chosen));
    return target.measure(copies.list);
  };
  StaticTarget found{{}, search_levels(layers, target.goal, measure, target.progress)};
  require_change(found.search.best);
  found.options = with_levels(options, layers, found.search.best.levels);
  return found;
}

}  // namespace taper::quantize
