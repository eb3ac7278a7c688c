#include "taper/exporter/quantize/static/equalize.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/roles.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

/// The elements of a constant that one product reads.
struct Scalable {
  Value* constant;
  const ir::Constant* stored;
  std::vector<float> values;
  bool changed = false;
};

/// A product whose weight may be scaled.
struct Layer {
  Node* node;
  Scalable* weight;
  Scalable* bias;  ///< nullptr: none
  int64_t outputs, inputs_of_group, groups, inner;
  bool inputs_first;  ///< the weight is (inputs, outputs), not (outputs, inputs of a group, filter)

  int64_t inputs() const { return inputs_of_group * groups; }

  /// Calls `visit(element, output, input)` for all elements of the weight.
  template <class Visit>
  void for_each(Visit&& visit) const {
    size_t element = 0;
    const int64_t rows = inputs_first ? inputs() : outputs,
                  columns = inputs_first ? outputs : inputs_of_group;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t k = 0; k < inner; ++k, ++element) {
          const int64_t output = inputs_first ? c : r, column = inputs_first ? r : c;
          const int64_t first = inputs_first ? 0 : r / (outputs / groups) * inputs_of_group;
          visit(weight->values[element], static_cast<size_t>(output),
                static_cast<size_t>(first + column));
        }
  }
};

/// Whether f(s x) = s f(x) for s > 0.
bool keeps_factors(const Node& node, bool of_images) {
  return node.op == &ops::relu || node.op == &ops::leaky_relu ||
         (of_images && (node.op == &ops::max_pool2d || node.op == &ops::max_pool1d));
}

class Equalizer {
 public:
  explicit Equalizer(ir::Graph& graph) : graph_(graph) {
    for (const ir::Constant& c : graph.constants()) constants_[c.value.get()] = &c;
    for (Node& node : graph.nodes()) add_layer(node);
    for (Node& node : graph.nodes()) add_pair(node);
  }

  int run() {
    // A layer between two others depends on both, so the factors need a few rounds.
    constexpr int most_rounds = 20;
    constexpr double settled = 1e-3;
    for (int round = 0; round < most_rounds; ++round) {
      double most = 0;
      for (const auto& [first, second] : pairs_) most = std::max(most, scale(*first, *second));
      if (most < settled) break;
    }
    store();
    return static_cast<int>(pairs_.size());
  }

 private:
  void add_layer(Node& node) {
    const auto product = product_of(node);
    if (!product || product->one_scale) return;
    Scalable* weight = elements_of(product->weight);
    Scalable* bias = product->bias == nullptr ? nullptr : elements_of(product->bias);
    if (weight == nullptr || (product->bias != nullptr && bias == nullptr)) return;
    const std::vector<int64_t>& sizes = weight->stored->payload->sizes;
    Layer layer{&node, weight, bias, sizes[0], sizes[1], 1, 1, product->axis == 1};
    if (layer.inputs_first) std::swap(layer.outputs, layer.inputs_of_group);
    for (size_t d = 2; d < sizes.size(); ++d) layer.inner *= sizes[d];
    if (node.op == &ops::convolution) {
      const Dim groups = ir::Call<ops::convolution>(node).get<"groups">();
      if (!groups.is_constant()) return;
      layer.groups = groups.value();
    }
    if (bias != nullptr && static_cast<int64_t>(bias->values.size()) != layer.outputs) return;
    layers_.emplace(&node, layer);
  }

  void add_pair(Node& node) {
    const auto first = layers_.find(&node);
    if (first == layers_.end()) return;
    // images have their channels first, and what a matrix product gives has them last
    const bool of_images = node.op == &ops::convolution;
    const Value* value = node.result();
    while (passes::has_one_reader(graph_, value) && keeps_factors(*value->users[0], of_images))
      value = value->users[0]->result();
    if (!passes::has_one_reader(graph_, value)) return;
    if ((value->users[0]->op == &ops::convolution) != of_images) return;
    const auto second = layers_.find(value->users[0]);
    if (second == layers_.end() || product_of(*value->users[0])->input != value) return;
    if (first->second.outputs == second->second.inputs())
      pairs_.emplace_back(&first->second, &second->second);
  }

  /// nullptr: it is no f32 constant, or others read it, too.
  Scalable* elements_of(Value* constant) {
    const auto found = constants_.find(constant);
    if (found == constants_.end() || !passes::has_one_reader(graph_, constant)) return nullptr;
    elements_.push_back(
        {constant, found->second, ir::tensor_of(found->second->payload).to_vector<float>()});
    return &elements_.back();
  }

  /// Returns the largest magnitude of the logarithms of the factors.
  static double scale(const Layer& first, const Layer& second) {
    std::vector<float> ranges(static_cast<size_t>(first.outputs)), next(ranges.size());
    const auto widen = [](float& range, float w) { range = std::max(range, std::abs(w)); };
    first.for_each([&](float w, size_t output, size_t) { widen(ranges[output], w); });
    second.for_each([&](float w, size_t, size_t input) { widen(next[input], w); });
    std::vector<float> factors(ranges.size(), 1.0f);
    double most = 0;
    for (size_t c = 0; c < factors.size(); ++c) {
      const float factor = std::sqrt(ranges[c] / next[c]);
      if (ranges[c] == 0 || next[c] == 0 || !std::isnormal(factor)) continue;
      factors[c] = factor;
      most = std::max(most, std::abs(std::log(static_cast<double>(factor))));
    }
    first.for_each([&](float& w, size_t output, size_t) { w /= factors[output]; });
    second.for_each([&](float& w, size_t, size_t input) { w *= factors[input]; });
    if (first.bias != nullptr)
      for (size_t c = 0; c < factors.size(); ++c) first.bias->values[c] /= factors[c];
    for (Scalable* changed : {first.weight, first.bias, second.weight})
      if (changed != nullptr) changed->changed = true;
    return most;
  }

  void store() {
    for (const Scalable& e : elements_) {
      if (!e.changed) continue;
      Value* scaled = graph_.add_constant(e.stored->path,
                                          ir::Payload::from(e.values, e.stored->payload->sizes));
      graph_.replace_uses(e.constant, scaled);
    }
    graph_.erase_unused_constants();
  }

  ir::Graph& graph_;
  std::map<const Value*, const ir::Constant*> constants_;
  std::deque<Scalable> elements_;
  std::map<const Node*, Layer> layers_;
  std::vector<std::pair<const Layer*, const Layer*>> pairs_;
};

}  // namespace

int equalize(ir::Graph& graph) { return Equalizer(graph).run(); }

}  // namespace taper::quantize
