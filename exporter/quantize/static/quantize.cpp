#include "taper/exporter/quantize/static/quantize.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/weights.h"

namespace taper::quantize {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

class Inserter {
 public:
  Inserter(ir::Graph& graph, Plan plan, const Ranges& ranges, const StaticOptions& options)
      : graph_(graph), plan_(std::move(plan)), ranges_(ranges), options_(options) {
    for (const ir::Constant& c : graph.constants()) constants_[c.value.get()] = &c;
    for (const Node& node : graph.nodes()) nodes_.push_back(&node);
    for (size_t i = 0; i < nodes_.size(); ++i) position_[nodes_[i]] = i;
  }

  StaticResult run() {
    StaticResult result;
    for (Node* node : plan_.products) shift_bias(*node);
    for (Node* node : plan_.products) round_weight_of(*node, result.warnings);
    for (const PlannedValue& v : plan_.values) round_activation(v);
    infer_views();
    graph_.erase_unused_constants();
    result.decisions = std::move(plan_.decisions);
    return result;
  }

 private:
  const Grid& grid_of(const Value* value) const {
    const auto found = ranges_.values.find(value->name);
    if (found == ranges_.values.end())
      throw ExportError("there is no range for %" + value->name +
                        "; calibrate this graph with these options first");
    return found->second.grid;
  }

  // ---- activations

  void round_activation(const PlannedValue& planned) {
    Value* value = planned.value;
    const Grid grid = grid_of(value);
    const std::vector<Node*> readers = readers_of(planned);
    const bool is_returned = planned.for_all_readers && graph_.is_returned(value);
    if (readers.empty() && !is_returned) return;
    Node* behind = node_behind(value);
    Value* integers = integers_of(value, grid, behind);
    for (Node* reader : readers)
      graph_.replace_uses_in(reader, value, dequantize(integers, grid, reader));
    if (!is_returned) return;
    Value* real = dequantize(integers, grid, behind);
    for (ir::Output& o : graph_.outputs())
      if (o.value == value) o.value = real;
    for (ir::Write& w : graph_.writes())
      if (w.value == value) w.value = real;
  }

  /// The nodes that read integers, in the order of the graph.
  std::vector<Node*> readers_of(const PlannedValue& planned) const {
    std::vector<Node*> readers;
    for (Node* user : planned.value->users) {
      const auto reads = plan_.reads.find(user);
      const bool as_integers =
          reads != plan_.reads.end() && std::ranges::count(reads->second, planned.value) > 0;
      if ((planned.for_all_readers || as_integers) && std::ranges::count(readers, user) == 0)
        readers.push_back(user);
    }
    std::ranges::sort(readers, {}, [&](const Node* n) { return position_.at(n); });
    return readers;
  }

  /// The node before which one can read a value; nullptr: at the end.
  Node* node_behind(const Value* value) {
    const auto next =
        value->node == nullptr ? graph_.nodes().begin() : std::next(value->node->position);
    return next == graph_.nodes().end() ? nullptr : &*next;
  }

  Value* integers_of(Value* value, const Grid& grid, Node* behind) {
    std::vector<Argument> arguments = {value};
    append_grid(arguments, grid);
    if (value->origin != Value::Origin::constant)
      return call(ops::quantized_decomposed_quantize_per_tensor, std::move(arguments), behind,
                  value->node);
    const eager::Tensor elements = ir::tensor_of(constants_.at(value)->payload);
    std::vector<int8_t> integers;
    for (const float x : elements.to_vector<float>()) {
      const float inverse = static_cast<float>(1 / grid.scale);
      const double q = std::nearbyint(x * inverse) + static_cast<double>(grid.zero_point);
      integers.push_back(static_cast<int8_t>(
          std::clamp(q, static_cast<double>(grid.lowest), static_cast<double>(grid.highest))));
    }
    const ir::Constant& constant = *constants_.at(value);
    return graph_.add_constant(constant.path, ir::Payload::from(integers, constant.payload->sizes));
  }

  Value* dequantize(Value* integers, const Grid& grid, Node* before) {
    std::vector<Argument> arguments = {integers};
    append_grid(arguments, grid);
    arguments.emplace_back();  // the dtype of the result: f32
    return call(ops::quantized_decomposed_dequantize_per_tensor, std::move(arguments), before,
                before);
  }

  static void append_grid(std::vector<Argument>& arguments, const Grid& grid) {
    arguments.emplace_back(grid.scale);
    for (const int64_t n : {grid.zero_point, grid.lowest, grid.highest})
      arguments.emplace_back(Dim(n));
    arguments.emplace_back(DType::i8);
  }

  /// A call before `before`, or at the end. The source line is that of `of`.
  Value* call(const Operator& op, std::vector<Argument> arguments, Node* before, const Node* of) {
    const Location location = of == nullptr ? Location{} : of->location;
    std::string module = of == nullptr ? "" : of->module;
    Node* node = before == nullptr
                     ? ir::append(graph_, op, std::move(arguments), location, std::move(module))
                     : ir::insert_before(graph_, before, op, std::move(arguments), location,
                                         std::move(module));
    return node->result();
  }

  // ---- weights

  void round_weight_of(Node& node, std::vector<std::string>& warnings) {
    const Product product = *product_of(node);
    const ir::Constant& weight = *constants_.at(product.weight);
    const int axis = options_.per_channel && !product.one_scale ? product.axis : -1;
    const std::vector<float> bounds = least_scales(product, axis);
    const IntegerWeight rounded = round_weight(weight, axis, options_, bounds);
    if (const size_t grown = count_grown(weight, axis, rounded); grown > 0)
      warnings.push_back(ir::describe(node) + ": " +
                         io::counted(static_cast<int64_t>(grown), "scale") +
                         " of the weight grew, because 32 bits would not hold the bias");
    Node* reader = reader_of(node, product.weight);
    Value* real = axis < 0 ? per_tensor(weight.path, rounded, reader)
                           : per_channel(weight.path, rounded, reader);
    graph_.replace_uses_in(reader, product.weight, real);
  }

  Value* per_tensor(const std::string& path, const IntegerWeight& weight, Node* reader) {
    const Grid grid{weight.scales[0], 0, -127, 127};
    return dequantize(graph_.add_constant(path, weight.integers), grid, reader);
  }
  Value* per_channel(const std::string& path, const IntegerWeight& weight, Node* reader) {
    const std::vector<int64_t> sizes = {static_cast<int64_t>(weight.scales.size())};
    const std::vector<int64_t> zeros(weight.scales.size(), 0);
    std::vector<Argument> arguments = {
        graph_.add_constant(path, weight.integers),
        graph_.add_constant(path + ".scales", ir::Payload::from(weight.scales, sizes)),
        graph_.add_constant(path + ".zero_points", ir::Payload::from(zeros, sizes)),
        Dim(weight.axis),
        Dim(-127),
        Dim(127),
        DType::i8,
        std::monostate{}};
    return call(ops::quantized_decomposed_dequantize_per_channel, std::move(arguments), reader,
                reader);
  }

  /// The node that reads the weight itself: the product, or a view below it. A view that others
  /// read is copied, because they may stay float.
  Node* reader_of(Node& product, Value* weight) {
    Value* view = nullptr;
    ir::for_each_value(product, [&](Value* v) {
      if (v != weight && ir::base_of(v) == weight) view = v;
    });
    if (view == nullptr) return &product;
    if (passes::has_one_reader(graph_, view)) return view->node;
    Value* own = call(*view->node->op, view->node->arguments, &product, view->node);
    graph_.replace_uses_in(&product, view, own);
    return own->node;
  }

  /// The scales at which 31 bits hold the bias as integers of scale(input) * scale(weight). One bit
  /// is left for the sum.
  std::vector<float> least_scales(const Product& product, int axis) const {
    if (product.bias == nullptr || product.bias->origin != Value::Origin::constant) return {};
    constexpr double most = 1 << 30;
    const double input_scale = grid_of(product.input).scale;
    std::vector<float> bounds;
    for (const float b : elements_of(product.bias))
      bounds.push_back(static_cast<float>(std::abs(b) / (input_scale * most)));
    const auto channels =
        static_cast<size_t>(axis < 0 ? 1 : product.weight->type.sizes[axis].value());
    if (axis < 0 && !bounds.empty()) bounds = {*std::ranges::max_element(bounds)};
    return bounds.size() == channels ? bounds : std::vector<float>{};
  }

  /// How many scales the bias made larger. Slices of zeros do not count.
  size_t count_grown(const ir::Constant& weight, int axis, const IntegerWeight& rounded) const {
    const float least = options_.least_weight_scale;
    const std::vector<float> free = round_weight(weight, axis, options_).scales;
    size_t grown = 0;
    for (size_t c = 0; c < free.size(); ++c)
      grown += free[c] > least && rounded.scales[c] > free[c] ? 1 : 0;
    return grown;
  }

  // ---- biases

  void shift_bias(Node& node) {
    const auto found = ranges_.bias_shifts.find(node.result()->name);
    if (found == ranges_.bias_shifts.end()) return;
    std::vector<float> elements = found->second;
    Value* bias = product_of(node)->bias;
    std::string path = node.module.empty() ? "bias" : node.module + ".bias";
    if (bias != nullptr) {
      const std::vector<float> old = elements_of(bias);
      if (old.size() != elements.size()) return;
      for (size_t c = 0; c < elements.size(); ++c) elements[c] += old[c];
      path = constants_.at(bias)->path;
    }
    Value* shifted = graph_.add_constant(
        path, ir::Payload::from(elements, {static_cast<int64_t>(elements.size())}));
    constants_[shifted] = &graph_.constants().back();
    if (bias != nullptr)
      graph_.replace_uses_in(&node, bias, shifted);
    else
      graph_.set_argument(&node, bias_position(node), shifted);
  }

  static size_t bias_position(const Node& node) {
    return node.op == &ops::linear ? ir::Call<ops::linear>::position<"bias">
                                   : ir::Call<ops::convolution>::position<"bias">;
  }

  std::vector<float> elements_of(const Value* constant) const {
    return ir::tensor_of(constants_.at(constant)->payload).to_vector<float>();
  }

  /// A view of dequantized values looks at dense memory, whatever lay below it before.
  void infer_views() {
    for (const Node& node : graph_.nodes()) {
      if (node.op->category != Category::view) continue;
      std::vector<Check> checks;
      node.result()->type = ir::infer(*node.op, node.arguments, checks)[0];
      for (const Check& check : checks) graph_.add_check(check);
    }
  }

  ir::Graph& graph_;
  Plan plan_;
  const Ranges& ranges_;
  const StaticOptions& options_;
  std::unordered_map<const Value*, const ir::Constant*> constants_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, size_t> position_;
};

}  // namespace

StaticResult quantize_static(ir::Graph& graph, const Ranges& ranges, const StaticOptions& options) {
  return Inserter(graph, make_plan(graph, options), ranges, options).run();
}

void quantize_one(ir::Graph& graph, const Node& node, const Ranges& ranges,
                  const StaticOptions& options) {
  Inserter(graph, make_plan(graph, options, &node), ranges, options).run();
}

}  // namespace taper::quantize
