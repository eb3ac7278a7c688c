#include "taper/exporter/quantize/static/bias_correction.h"

#include <unordered_map>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/run_examples.h"
#include "taper/exporter/quantize/static/weights.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

/// Means of the channels of a product's result.
class ChannelMeans {
 public:
  /// `axis` counts from the end: -1 is the last dimension.
  explicit ChannelMeans(int axis) : axis_(axis) {}

  void add(const eager::Tensor& result) {
    const eager::Tensor dense = result.contiguous();
    const int axis = dense.rank() + axis_;
    const auto channels = static_cast<size_t>(dense.size(axis).value());
    int64_t inner = 1;
    for (int d = axis + 1; d < dense.rank(); ++d) inner *= dense.size(d).value();
    sums_.resize(channels);
    const float* elements = dense.data<float>();
    const int64_t count = dense.numel().value();
    for (int64_t i = 0; i < count; i += inner) {
      double sum = 0;
      for (int64_t k = i; k < i + inner; ++k) sum += elements[k];
      sums_[static_cast<size_t>(i / inner) % channels] += sum;
    }
    count_ += count / static_cast<int64_t>(channels);
  }
  /// Of this minus the other.
  std::vector<float> above(const ChannelMeans& other) const {
    std::vector<float> means;
    for (size_t c = 0; c < sums_.size(); ++c)
      means.push_back(
          static_cast<float>((sums_[c] - other.sums_[c]) / static_cast<double>(count_)));
    return means;
  }

 private:
  int axis_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

/// Whether a shift can go into the bias, or become one.
bool takes_bias(const Node& node) {
  const Value* bias = product_of(node)->bias;
  return bias != nullptr ? bias->origin == Value::Origin::constant
                         : node.op == &ops::convolution || node.op == &ops::linear;
}

struct Twin {
  std::string name;  ///< of the product's result
  ChannelMeans wanted, rounded;
};

/// A graph in which a product with rounded weights stands beside each product.
class Twins {
 public:
  Twins(const ir::Graph& graph, const StaticOptions& options) : graph_(copy_of(graph)) {
    for (const ir::Constant& c : graph_->constants()) constants_[c.value.get()] = &c;
    const Plan plan = make_plan(*graph_, options);
    twins_.reserve(plan.products.size());
    for (Node* node : plan.products)
      if (takes_bias(*node)) add(node, options);
  }

  void see(const Value& value, const eager::Tensor& tensor) {
    const auto found = means_.find(&value);
    if (found != means_.end()) found->second->add(tensor);
  }
  const ir::Graph& graph() const { return *graph_; }
  const std::vector<Twin>& list() const { return twins_; }

 private:
  void add(Node* node, const StaticOptions& options) {
    const Product product = *product_of(*node);
    const ir::Constant& weight = *constants_.at(product.weight);
    const int axis = options.per_channel && !product.one_scale ? product.axis : -1;
    Value* rounded = graph_->add_constant("", values_of(round_weight(weight, axis, options)));
    Value* operand = rounded;
    if (Value* view = view_of(*node, product.weight); view != nullptr) {
      std::vector<ir::Argument> arguments = view->node->arguments;
      arguments[0] = rounded;
      operand = ir::insert_before(*graph_, node, *view->node->op, std::move(arguments))->result();
    }
    std::vector<ir::Argument> arguments = node->arguments;
    for (ir::Argument& a : arguments)
      if (auto* v = std::get_if<Value*>(&a); v != nullptr && *v != nullptr)
        if (*v == product.weight || *v == view_of(*node, product.weight)) *v = operand;
    const Node* twin = ir::insert_before(*graph_, node, *node->op, std::move(arguments));
    // The dimensions behind the channels are those of the filter.
    const int channels = node->op == &ops::convolution ? 1 - product.weight->type.rank : -1;
    Twin& made = twins_.emplace_back(
        Twin{node->result()->name, ChannelMeans(channels), ChannelMeans(channels)});
    means_[node->result()] = &made.wanted;
    means_[twin->result()] = &made.rounded;
  }

  /// The view of `weight` that the node reads; nullptr: it reads the weight itself.
  static Value* view_of(const Node& node, const Value* weight) {
    Value* view = nullptr;
    ir::for_each_value(node, [&](Value* v) {
      if (v != weight && ir::base_of(v) == weight) view = v;
    });
    return view;
  }

  std::unique_ptr<ir::Graph> graph_;
  std::unordered_map<const Value*, const ir::Constant*> constants_;
  std::vector<Twin> twins_;
  std::unordered_map<const Value*, ChannelMeans*> means_;
};

}  // namespace

std::map<std::string, std::vector<float>> bias_shifts(ir::Graph& graph, const Examples& examples,
                                                      const StaticOptions& options,
                                                      const Progress& progress) {
  Twins twins(graph, options);
  for (size_t i = 0; i < examples.count; ++i) {
    run_example(twins.graph(), examples, i,
                [&](const Value& v, const eager::Tensor& t) { twins.see(v, t); });
    if (progress) progress(i + 1, examples.count);
  }
  std::map<std::string, std::vector<float>> shifts;
  for (const Twin& twin : twins.list()) shifts[twin.name] = twin.wanted.above(twin.rounded);
  return shifts;
}

}  // namespace taper::quantize
