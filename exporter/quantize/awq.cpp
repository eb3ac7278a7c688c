#include "taper/exporter/quantize/awq.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "taper/exporter/base/error.h"
#include "taper/exporter/quantize/choose.h"
#include "taper/exporter/quantize/static/input_scales.h"

namespace taper::quantize {
namespace {

constexpr int powers = 20;

/// The weights of products with one input that get blocks and have `awq`.
struct Group {
  SharedInput shared;
  std::vector<const Weight*> weights;
};

std::vector<Group> find_groups(ir::Graph& graph, const std::vector<Weight>& weights,
                               const Recipe& recipe) {
  const auto weight_read_by = [&](const ir::Node* node) -> const Weight* {
    for (const Weight& w : weights)
      if (std::ranges::find(w.readers, node, &Reader::node) != w.readers.end()) return &w;
    return nullptr;
  };
  const auto has_awq = [&](const Weight* w) {
    if (w == nullptr || !w->obstacle.empty() || w->matrices > 0) return false;
    const Rule* rule = rule_for(recipe, *w);
    return rule != nullptr && rule->scheme.awq && choose_format(rule->scheme, *w).format != nullptr;
  };
  std::vector<Group> groups;
  for (const SharedInput& shared : find_shared_inputs(graph)) {
    Group group{shared, {}};
    for (const ir::Node* node : shared.products) group.weights.push_back(weight_read_by(node));
    if (std::ranges::all_of(group.weights, has_awq)) groups.push_back(std::move(group));
  }
  return groups;
}

/// A factor for each channel.
std::vector<float> factors_of(const Hessian& hessian, int64_t channels, double power) {
  const std::vector<float> squares = hessian.diagonal();
  std::vector<double> scale;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = squares[static_cast<size_t>(c)] / static_cast<double>(hessian.inputs);
    scale.push_back(std::max(std::pow(std::sqrt(mean), power), 1e-4));
  }
  const auto [least, most] = std::ranges::minmax(scale);
  std::vector<float> factors;
  for (const double s : scale) factors.push_back(static_cast<float>(s / std::sqrt(least * most)));
  return factors;
}

/// The Hessian of inputs that were divided, with zeros for the channels behind the last.
Hessian divided(const Hessian& hessian, std::span<const float> factors, int64_t depth) {
  Hessian result(depth);
  result.inputs = hessian.inputs;
  const auto n = static_cast<size_t>(hessian.depth);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      result.sum[i * static_cast<size_t>(depth) + k] =
          hessian.sum[i * n + k] / (factors[i] * factors[k]);
  return result;
}

/// The error in the results of all products with a group's input.
double error_of(const Group& group, const Recipe& recipe, const Hessian& hessian,
                std::span<const float> factors) {
  double sum = 0;
  for (const Weight* w : group.weights) {
    const Scheme& scheme = rule_for(recipe, *w)->scheme;
    const ChosenFormat chosen = choose_format(scheme, *w);
    Matrix m = rows_of(*w, chosen.depth);
    for (int64_t r = 0; r < m.rows; ++r)
      for (size_t c = 0; c < factors.size(); ++c)
        m.elements[static_cast<size_t>(r * m.depth) + c] *= factors[c];
    const Hessian scaled = divided(hessian, factors, chosen.depth);
    // what the factors are worth shows without GPTQ, which takes much longer
    const Method method = scheme.method == Method::nearest ? Method::nearest : Method::mse;
    sum += quantize_matrix(m, chosen.format->layout, method, &scaled).measure.output_noise;
  }
  return sum;
}

std::vector<float> best_factors(const Group& group, const Recipe& recipe, const Hessian& hessian) {
  std::vector<float> best;
  if (hessian.inputs == 0) return best;  // no example reaches these products
  double least = std::numeric_limits<double>::infinity();
  for (int p = 0; p < powers; ++p) {
    std::vector<float> factors =
        factors_of(hessian, group.shared.channels, p / static_cast<double>(powers));
    const double error = error_of(group, recipe, hessian, factors);
    if (error < least) least = error, best = std::move(factors);
  }
  return best;
}

}  // namespace

int scale_for_activations(const std::vector<ir::Graph*>& graphs, const Recipe& recipe,
                          const Options& options) {
  if (std::ranges::none_of(recipe.rules, [](const Rule& r) { return r.scheme.awq; })) return 0;
  if (options.samples.count == 0) throw ExportError("awq needs calibration data");
  ir::Graph& first = *graphs.front();
  const std::vector<Weight> weights = find_weights(first);
  const std::vector<Group> groups = find_groups(first, weights, recipe);
  std::vector<ProductInput> inputs;
  for (const Group& g : groups) inputs.push_back({g.shared.input});
  const Hessians hessians = run_samples(first, options.samples, inputs, {});
  std::map<const std::byte*, std::vector<float>> factors;  // by the elements of a group's weight
  int64_t done = 0;
  for (const Group& g : groups) {
    if (options.progress)
      options.progress("scaling channels", done++, static_cast<int64_t>(groups.size()));
    factors[g.weights[0]->constant->payload->bytes.get()] =
        best_factors(g, recipe, *hessians.at({g.shared.input})[0]);
  }
  InputScaling scaling;
  for (ir::Graph* graph : graphs)
    for (const SharedInput& shared : find_shared_inputs(*graph)) {
      const auto found = factors.find(weight_of(*graph, *shared.products[0]).payload->bytes.get());
      if (found != factors.end() && !found->second.empty())
        scaling.scale(*graph, shared, found->second, /*may_add_node=*/true);
    }
  return static_cast<int>(groups.size());
}

}  // namespace taper::quantize
