#include "taper/exporter/quantize/training.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/choose.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/quantize.h"
#include "taper/exporter/quantize/static/run_examples.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantize {

using eager::Tensor;
using ir::Node;
using ir::Value;

/// A batch norm and the convolution before it.
struct QatModel::Norm {
  passes::FoldedNorm source;
  nn::Parameter weight, bias, gamma, beta;  ///< undefined: there is none
  Tensor mean, variance;                    ///< running
  Tensor seen_mean, seen_variance;          ///< in this run
  std::string before;                       ///< the value that the norm of a batch reads

  explicit Norm(const passes::FoldedNorm& from) : source(from) {
    const auto set = [](nn::Parameter& p, const passes::FoldedNorm::Part& part) {
      if (part.payload != nullptr) p = nn::Parameter(ir::tensor_of(part.payload).clone());
    };
    set(weight, from.weight), set(bias, from.bias), set(gamma, from.gamma), set(beta, from.beta);
    mean = ir::tensor_of(from.mean.payload).clone();
    variance = ir::tensor_of(from.variance.payload).clone();
  }
  std::string state(const char* what) const { return source.weight_path + "." + what; }
  /// What a channel of the weight is multiplied by.
  Tensor factor() const {
    const Tensor inverse = eager::rsqrt(variance + source.eps);
    return gamma.defined() ? gamma * inverse : inverse;
  }
  /// (channels, 1, …), like a weight or, one dimension less, behind a batch.
  static Tensor spread(const Tensor& channels, int64_t dims) {
    std::vector<Dim> sizes(static_cast<size_t>(dims), Dim(1));
    sizes[0] = channels.size(0);
    return channels.reshape(sizes);
  }
  Tensor folded_weight(bool of_batch) const {
    return weight * spread(of_batch ? factor_of_batch() : factor(), weight.rank());
  }
  Tensor folded_bias() const {
    const Tensor centre = bias.defined() ? bias - mean : mean * -1.0;
    return beta.defined() ? centre * factor() + beta : centre * factor();
  }
  /// Channels whose factor is 0, such as those of a batch norm that begins with gamma = 0.
  Tensor is_hidden() const {
    constexpr double least = 1e-12;
    return eager::lt(eager::abs(factor()), least);
  }
  /// The factor while the norm of a batch follows. A hidden channel must be seen: its statistics
  /// move, and its gamma learns.
  Tensor factor_of_batch() const {
    return eager::where(is_hidden(), eager::rsqrt(variance + source.eps), factor());
  }
  void see(const Tensor& t) {
    const eager::NoGrad guard;
    eager::Ints others;
    for (int64_t d = 0; d < t.rank(); ++d)
      if (d != 1) others.push_back(d);
    seen_mean = eager::mean(t.detach(), others), seen_variance = eager::var(t.detach(), others);
  }
  /// Moves the running statistics towards those of the batch.
  void move() {
    if (!seen_mean.defined()) return;
    const eager::NoGrad guard;
    const Tensor centre = bias.defined() ? seen_mean + bias.detach() : seen_mean;
    mean.copy_(mean + (centre - mean) * source.momentum);
    variance.copy_(variance + (seen_variance - variance) * source.momentum);
    seen_mean = {}, seen_variance = {};
  }
  /// The norm as it is now.
  passes::FoldedNorm trained() const {
    passes::FoldedNorm now = source;
    const auto set = [](passes::FoldedNorm::Part& part, const Tensor& t) {
      if (t.defined()) part.payload = ir::payload_of(t.detach());
    };
    set(now.weight, weight), set(now.bias, bias), set(now.gamma, gamma), set(now.beta, beta);
    set(now.mean, mean), set(now.variance, variance);
    return now;
  }
};

/// A parameter, and how it rounds.
struct QatModel::Weight {
  enum class Rounding : uint8_t { none, channels, blocks };
  std::string path;
  nn::Parameter value;
  const Norm* norm = nullptr;  ///< the weight is what its convolution and the norm make together
  Rounding rounding = Rounding::none;
  int axis = -1;                  ///< of channels; -1: all have one scale
  Layout layout = Layout::dense;  ///< of blocks
  Method method = Method::nearest;
  bool is_transposed = false;
  int64_t padded_depth = 0;
  int64_t matrices = 0;  ///< of a stack, as that of experts
};

/// Values with one grid.
struct QatModel::Activation {
  std::string path;     ///< of its states: "grid.3"
  nn::Parameter scale;  ///< no parameter unless scales are learned
  Tensor zero_point;
  Tensor low, high;            ///< the range
  bool is_known = false;       ///< the grid follows from the operator
  Tensor seen_low, seen_high;  ///< in this run
};

namespace {

constexpr int64_t lowest = -128, highest = 127;

Tensor number(double value, DType dtype = DType::f32) { return eager::full({1}, value, dtype); }

/// Gradients go through to `t`, and the result has the elements of `values`.
Tensor straight_through(const Tensor& t, const Tensor& values) {
  return t + (values - t.detach()).detach();
}

Tensor in_channels(const Tensor& weight, int axis, const StaticOptions& options) {
  eager::Ints others;
  for (int64_t d = 0; d < weight.rank(); ++d)
    if (d != axis) others.push_back(d);
  const Tensor most = eager::amax(eager::abs(weight.detach()), others);
  const int highest = options.highest_weight();
  const Tensor scale =
      eager::clamp_min(most / static_cast<double>(highest), double{options.least_weight_scale});
  if (axis < 0)
    return eager::fake_quantize_per_tensor_affine(weight, scale.reshape({1}),
                                                  eager::zeros({1}, DType::i32), -highest, highest);
  const Tensor zeros = eager::zeros({scale.size(0)}, DType::i32);
  return eager::fake_quantize_per_channel_affine(weight, scale, zeros, axis, -highest, highest);
}

/// The numbers that blocks give to a weight: a matrix, or a stack of `matrices` of them.
Tensor in_blocks(const Tensor& weight, Layout layout, Method method, bool is_transposed,
                 int64_t padded_depth, int64_t matrices) {
  const eager::NoGrad guard;
  if (eager::recorder() != nullptr)
    throw ExportError("a step that rounds weights to blocks does not export; train it on the host");
  const Tensor turned = is_transposed ? weight.transpose(-2, -1).contiguous() : weight;
  const int64_t count = (matrices > 0 ? matrices * turned.size(1) : turned.size(0)).value();
  const Tensor rows = turned.reshape({count, -1});
  const int64_t depth = rows.size(1).value();
  Matrix m{rows.size(0).value(), padded_depth, {}};
  m.elements.resize(static_cast<size_t>(m.rows * padded_depth));
  const std::vector<float> elements = rows.to_vector<float>();
  for (int64_t r = 0; r < m.rows; ++r)
    std::copy_n(elements.begin() + r * depth, depth, m.elements.begin() + r * padded_depth);
  const Quantized q = quantize_matrix(m, layout, method, nullptr);
  quantized::dequantize(layout, q.payload->bytes.get(), static_cast<index_t>(m.elements.size()),
                        m.elements.data());
  const Tensor padded = Tensor::from(m.elements, {m.rows, padded_depth});
  const Tensor values = padded.slice(1, 0, depth).contiguous();
  const Tensor result = values.reshape(turned.sizes());
  return is_transposed ? result.transpose(-2, -1).contiguous() : result;
}

/// The constant of this path, if there is only one.
ir::Constant* only_constant(ir::Graph& graph, const std::string& path) {
  ir::Constant* found = nullptr;
  for (ir::Constant& c : graph.constants()) {
    if (path.empty() || c.path != path) continue;
    if (found != nullptr) return nullptr;
    found = &c;
  }
  return found;
}

const Operator* const dequantizes[] = {&ops::quantized_decomposed_dequantize_per_tensor,
                                       &ops::quantized_decomposed_dequantize_per_channel};

}  // namespace

/// Gives a graph parameters.
class QatModel::Builder {
 public:
  explicit Builder(QatModel& model) : model_(model), graph_(*model.graph_) {}

  /// Puts a parameter in the place of `value`. Its elements are those of the source's constant.
  Weight* train(Value* value, const std::string& path) {
    const ir::Constant* source = only_constant(*model_.source_, path);
    if (source == nullptr || source->payload->dtype != DType::f32) return nullptr;
    if (ir::State* known = graph_.find_state(path)) {  // several nodes read it
      graph_.replace_uses(value, known->value.get());
      return nullptr;
    }
    auto weight = std::make_unique<Weight>();
    weight->path = path;
    const Tensor elements = ir::tensor_of(source->payload).clone();
    for (const auto& n : model_.norms_)
      if (n->source.weight_path == path || n->source.bias_path == path) weight->norm = n.get();
    if (weight->norm == nullptr) weight->value = nn::Parameter(elements);
    replace(value, path, elements);
    model_.weights_.push_back(std::move(weight));
    return model_.weights_.back().get();
  }

  void train_biases() {
    std::vector<std::pair<Value*, std::string>> biases;
    for (const Node& node : graph_.nodes()) {
      Value* bias = ir::tensor_of_any<"bias", ops::linear, ops::convolution>(node);
      if (node.op == &ops::addmm) bias = ir::Call<ops::addmm>(node).get<"self">();
      for (const ir::Constant& c : graph_.constants())
        if (bias != nullptr && c.value.get() == bias) biases.emplace_back(bias, c.path);
    }
    std::set<Value*> done;
    for (const auto& [bias, path] : biases)
      if (done.insert(bias).second) train(bias, path);
  }

  /// The weights that `quantize_static` has rounded.
  void train_channels() {
    for (Node* node : nodes_with(&ops::quantized_decomposed_dequantize_per_channel))
      train_integers(*node, static_cast<int>(std::get<Dim>(node->arguments[3]).value()));
    // other constants have the integers of activations, from -128 on
    for (Node* node : nodes_with(&ops::quantized_decomposed_dequantize_per_tensor))
      if (same(std::get<Dim>(node->arguments[3]), -127)) train_integers(*node, -1);
  }

  /// Fake quantization in the place of each pair that quantizes and dequantizes.
  void round_activations() {
    const Operator& op = model_.options_.learns_scales
                             ? ops::_fake_quantize_learnable_per_tensor_affine
                             : ops::fake_quantize_per_tensor_affine_tensor_qparams;
    for (Node* node : nodes_with(&ops::quantized_decomposed_dequantize_per_tensor)) {
      Node* quantizes = std::get<Value*>(node->arguments[0])->node;
      if (quantizes == nullptr || quantizes->op != &ops::quantized_decomposed_quantize_per_tensor)
        continue;
      Value* value = std::get<Value*>(quantizes->arguments[0]);
      const auto found = model_.grids_.find(value->name);
      if (found == model_.grids_.end()) continue;
      const Activation& a = *found->second;
      std::vector<ir::Argument> arguments = {value, state(a.path + ".scale", a.scale),
                                             state(a.path + ".zero_point", a.zero_point),
                                             Dim(lowest), Dim(highest)};
      if (model_.options_.learns_scales) arguments.emplace_back(1.0);
      // composite operators have no shape rules
      Node* rounds =
          graph_.insert_before(node, op, std::move(arguments), std::span(&node->result()->type, 1),
                               node->location, node->module);
      graph_.replace_uses(node->result(), rounds->result());
    }
  }

  void finish() {
    // what was quantized has no readers any more; those come last
    for (auto at = graph_.nodes().end(); at != graph_.nodes().begin();) {
      Node& node = *--at;
      const bool is_rest = node.op == &ops::quantized_decomposed_quantize_per_tensor ||
                           std::ranges::find(dequantizes, node.op) != std::end(dequantizes);
      if (!is_rest || graph_.is_used(node.result())) continue;
      at = std::next(at);
      graph_.erase(&node);
    }
    graph_.erase_unused_constants();
  }

 private:
  void train_integers(const Node& dequantizes, int axis) {
    const auto* integers = std::get<Value*>(dequantizes.arguments[0]);
    const auto found = std::ranges::find_if(
        graph_.constants(), [&](const ir::Constant& c) { return c.value.get() == integers; });
    if (found == graph_.constants().end()) return;  // they are those of an activation
    if (Weight* w = train(dequantizes.result(), std::string(found->path)))
      w->rounding = Weight::Rounding::channels, w->axis = axis;
  }
  std::vector<Node*> nodes_with(const Operator* op) {
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes())
      if (node.op == op) nodes.push_back(&node);
    return nodes;
  }

  void replace(Value* value, const std::string& path, const Tensor& tensor) {
    graph_.replace_uses(value, add_state(path, tensor));
  }
  Value* state(const std::string& path, const Tensor& tensor) {
    ir::State* known = graph_.find_state(path);
    return known == nullptr ? add_state(path, tensor) : known->value.get();
  }
  Value* add_state(const std::string& path, const Tensor& tensor) {
    std::vector<int64_t> sizes;
    for (const Dim d : tensor.sizes()) sizes.push_back(d.value());
    return graph_
        .add_state(path, ir::StateKind::parameter, true, tensor.dtype(), sizes,
                   ir::payload_of(tensor.detach()))
        ->value.get();
  }

  QatModel& model_;
  ir::Graph& graph_;
};

QatModel::QatModel(const ir::Graph& graph, const Ranges& ranges, const StaticOptions& options,
                   const QatOptions& training)
    : source_(copy_of(graph)),
      graph_(copy_of(graph)),
      ranges_(ranges),
      options_(training),
      integers_(options),
      observes_(!training.learns_scales && training.averaging > 0) {
  ranges_.bias_shifts.clear();  // biases are trained
  for (const GridGroup& group : make_plan(*source_, options).groups) add_activation(group);
  quantize_static(*graph_, ranges_, options);
  add_norms();
  Builder builder(*this);
  builder.train_channels();
  // the weights of others stay float, or were merged with those of another node
  std::erase_if(
      norms_, [&](const auto& n) { return graph_->find_state(n->source.weight_path) == nullptr; });
  builder.train_biases();
  builder.round_activations();
  builder.finish();
  if (!norms_.empty()) build_batch_graph();
  require_weights();
}

void QatModel::add_norms() {
  for (const passes::FoldedNorm& norm : options_.norms) {
    const ir::Constant *weight = only_constant(*source_, norm.weight_path),
                       *bias = only_constant(*source_, norm.bias_path);
    if (weight == nullptr || bias == nullptr) continue;  // two calls of one module
    const passes::FoldedProduct product = passes::folded(norm);
    if (ir::tensor_of(weight->payload).to_vector<float>() != product.weight ||
        ir::tensor_of(bias->payload).to_vector<float>() != product.bias)
      throw ExportError(norm.weight_path +
                        " was changed after its batch norm was folded, so the norm cannot train; "
                        "call QatModel without norms, or leave out what changed it");
    norms_.push_back(std::make_unique<Norm>(norm));
  }
}

/// conv(x, weight) * (1 / factor) is what the convolution gives without the norm. The norm of a
/// batch follows, and takes the name of the convolution's result: ranges are those of this value.
void QatModel::build_batch_graph() {
  batch_graph_ = copy_of(*graph_);
  ir::Graph& graph = *batch_graph_;
  const auto state = [&](const std::string& path, const Tensor& t) -> ir::Argument {
    if (!t.defined()) return {};
    std::vector<int64_t> sizes;
    for (const Dim d : t.sizes()) sizes.push_back(d.value());
    return graph
        .add_state(path, ir::StateKind::parameter, true, t.dtype(), sizes,
                   ir::payload_of(t.detach()))
        ->value.get();
  };
  for (const auto& norm : norms_) {
    Value* weight = graph.find_state(norm->source.weight_path)->value.get();
    Node* conv = weight->users[0];
    const auto next = std::next(conv->position);
    const auto insert = [&](const Operator& op, std::vector<ir::Argument> arguments) {
      const std::span types(&conv->result()->type, 1);
      return next == graph.nodes().end()
                 ? graph.append(op, std::move(arguments), types, conv->location, conv->module)
                 : graph.insert_before(&*next, op, std::move(arguments), types, conv->location,
                                       conv->module);
    };
    Value* result = conv->result();
    Node* plain = insert(
        ops::mul_Tensor,
        {result, state(norm->state("factor"),
                       Norm::spread(1.0 / norm->factor_of_batch(), norm->weight.rank() - 1))});
    Node* normed = insert(ops::batch_norm,
                          {plain->result(), state(norm->state("gamma"), norm->gamma),
                           state(norm->state("beta"), norm->beta), std::monostate(),
                           std::monostate(), true, norm->source.momentum, norm->source.eps, false});
    graph.replace_uses(result, normed->result());
    graph.set_argument(plain, 0, result);
    std::swap(result->name, normed->result()->name);
    norm->before = plain->result()->name;
  }
}

void QatModel::add_activation(const GridGroup& group) {
  const auto found = ranges_.values.find(group.values[0]->name);
  if (found == ranges_.values.end())
    throw ExportError("there is no range for %" + group.values[0]->name +
                      "; calibrate this graph with these options first");
  const Range& range = found->second;
  auto made = std::make_unique<Activation>();
  made->path = "grid." + std::to_string(activations_.size());
  made->low = number(range.low), made->high = number(range.high);
  made->is_known = group.known.has_value();
  const Tensor scale = number(range.grid.scale);
  if (options_.learns_scales && !made->is_known)
    made->scale = nn::Parameter(scale);
  else
    static_cast<Tensor&>(made->scale) = scale;
  made->zero_point = number(static_cast<double>(range.grid.zero_point),
                            options_.learns_scales ? DType::f32 : DType::i32);
  for (const Value* v : group.values) grids_[v->name] = made.get();
  activations_.push_back(std::move(made));
}

QatModel::QatModel(const ir::Graph& graph, const Recipe& recipe)
    : source_(copy_of(graph)), graph_(copy_of(graph)), observes_(false) {
  Builder builder(*this);
  std::vector<quantize::Weight> weights = find_weights(*graph_);
  widen_others(recipe, weights);
  for (const quantize::Weight& found : weights) {
    const Rule* rule = rule_for(recipe, found);
    Weight* weight = builder.train(found.constant->value.get(), found.constant->path);
    if (weight == nullptr || !found.obstacle.empty() || rule == nullptr ||
        rule->scheme.weights != Scheme::Weights::blocks)
      continue;
    const ChosenFormat chosen = choose_format(rule->scheme, found);
    if (chosen.format == nullptr) continue;
    weight->rounding = Weight::Rounding::blocks;
    weight->layout = chosen.format->layout, weight->padded_depth = chosen.depth;
    weight->method = rule->scheme.method == Method::mse ? Method::mse : Method::nearest;
    weight->is_transposed = found.is_transposed, weight->matrices = found.matrices;
  }
  builder.train_biases();
  builder.finish();
  require_weights();
}
QatModel::~QatModel() = default;

void QatModel::require_weights() {
  if (std::ranges::all_of(weights_,
                          [](const auto& w) { return w->rounding == Weight::Rounding::none; }))
    throw ExportError("no weight of the model is quantized, so there is nothing to train for");
  set_names();
}

void QatModel::visit_members(nn::Members& members) {
  for (const auto& w : weights_)
    if (w->norm == nullptr) members.add(w->path, w->value);
  for (const auto& n : norms_) {
    const auto add = [&](const passes::FoldedNorm::Part& part, const char* name, auto& member) {
      if (member.defined()) members.add(part.path.empty() ? n->state(name) : part.path, member);
    };
    const passes::FoldedNorm& from = n->source;
    add(from.weight, "of_convolution", n->weight), add(from.bias, "bias", n->bias);
    add(from.gamma, "gamma", n->gamma), add(from.beta, "beta", n->beta);
    add(from.mean, "mean", n->mean), add(from.variance, "variance", n->variance);
  }
  for (const auto& a : activations_) {
    if (options_.learns_scales && !a->is_known)
      members.add(a->path + ".scale", a->scale);
    else
      members.add(a->path + ".scale", static_cast<Tensor&>(a->scale));
    members.add(a->path + ".zero_point", a->zero_point);
    members.add(a->path + ".low", a->low), members.add(a->path + ".high", a->high);
  }
}

/// `of_batch`: batch norms follow.
Tensor QatModel::elements_of(const Weight& w, bool of_batch) const {
  if (w.norm == nullptr) return w.value;
  const bool is_weight = w.path == w.norm->source.weight_path;
  if (!is_weight && of_batch) return eager::zeros_like(w.norm->mean);
  const Tensor folded = is_weight ? w.norm->folded_weight(of_batch) : w.norm->folded_bias();
  if (eager::recorder() != nullptr) return folded;
  // in double, as `convert` does
  const passes::FoldedProduct exact = passes::folded(w.norm->trained());
  std::vector<int64_t> sizes;
  for (const Dim& d : folded.sizes()) sizes.push_back(d.value());
  Tensor values = Tensor::from(is_weight ? exact.weight : exact.bias, sizes);
  if (of_batch)
    values = eager::where(Norm::spread(w.norm->is_hidden(), folded.rank()), folded, values);
  return straight_through(folded, values);
}

Tensor QatModel::rounded(const Weight& w, bool of_batch) const {
  switch (w.rounding) {
    case Weight::Rounding::channels:
      return in_channels(elements_of(w, of_batch), w.axis, integers_);
    case Weight::Rounding::blocks:
      return straight_through(w.value, in_blocks(w.value.detach(), w.layout, w.method,
                                                 w.is_transposed, w.padded_depth, w.matrices));
    default:
      return elements_of(w, of_batch);
  }
}

std::vector<Tensor> QatModel::forward(const std::vector<Tensor>& inputs) {
  const bool of_batch = training() && norms_train_ && !norms_.empty(),
             observes = training() && observes_;
  ir::Interpreter interpreter(of_batch ? *batch_graph_ : *graph_);
  for (const auto& w : weights_) interpreter.set_state(w->path, rounded(*w, of_batch));
  std::map<std::string, Norm*> norms;
  for (const auto& n : norms_) {
    if (!of_batch) break;
    norms[n->before] = n.get();
    interpreter.set_state(n->state("factor"),
                          Norm::spread(1.0 / n->factor_of_batch(), n->weight.rank() - 1));
    if (n->gamma.defined()) interpreter.set_state(n->state("gamma"), n->gamma);
    if (n->beta.defined()) interpreter.set_state(n->state("beta"), n->beta);
  }
  for (const auto& a : activations_) {
    if (graph_->find_state(a->path + ".scale") == nullptr) continue;  // no node reads these values
    // a scale that training made negative, or zero, would be no scale
    interpreter.set_state(a->path + ".scale", eager::clamp_min(a->scale, double{least_scale}));
    // `move` overwrites it before the backward pass
    interpreter.set_state(a->path + ".zero_point", a->zero_point.clone());
  }
  if (!of_batch && !observes) return interpreter.run(inputs).outputs;
  interpreter.observe([&](const Value& v, const Tensor& t) {
    if (const auto norm = norms.find(v.name); norm != norms.end()) norm->second->see(t);
    const auto found = grids_.find(v.name);
    if (!observes || found == grids_.end() || found->second->is_known) return;
    Activation& a = *found->second;
    const Tensor low = eager::amin(t.detach()), high = eager::amax(t.detach());
    a.seen_low = a.seen_low.defined() ? eager::minimum(a.seen_low, low) : low;
    a.seen_high = a.seen_high.defined() ? eager::maximum(a.seen_high, high) : high;
  });
  std::vector<Tensor> outputs = interpreter.run(inputs).outputs;
  for (const auto& a : activations_) move(*a);
  for (const auto& n : norms_) n->move();
  return outputs;
}

/// Moves a range towards what was seen, and its grid with it. The formulas are those of
/// `affine_grid`, so that `ranges` gives the same grid.
void QatModel::move(Activation& a) const {
  if (!a.seen_low.defined()) return;
  const eager::NoGrad guard;
  a.low.copy_(a.low + (a.seen_low - a.low) * options_.averaging);
  a.high.copy_(a.high + (a.seen_high - a.high) * options_.averaging);
  const Tensor low = eager::clamp_max(a.low, 0.0), high = eager::clamp_min(a.high, 0.0);
  const Tensor scale =
      eager::clamp_min((high - low) / static_cast<double>(highest - lowest), double{least_scale});
  const Tensor zero = (eager::round(low / scale) - static_cast<double>(lowest)) * -1.0;
  a.scale.copy_(scale);
  a.zero_point.copy_(eager::clamp(zero, static_cast<double>(lowest), static_cast<double>(highest)));
  a.seen_low = {}, a.seen_high = {};
}

std::shared_ptr<const ir::Payload> QatModel::trained(const Weight& w,
                                                     const ir::Payload& old) const {
  if (w.norm == nullptr) return ir::payload_of(w.value.detach());
  const passes::FoldedProduct product = passes::folded(w.norm->trained());
  return ir::Payload::from(w.path == w.norm->source.weight_path ? product.weight : product.bias,
                           old.sizes);
}

std::unique_ptr<ir::Graph> QatModel::convert() const {
  auto graph = copy_of(*source_);
  for (const auto& w : weights_) {
    const ir::Constant& old = *only_constant(*graph, w->path);
    graph->replace_uses(old.value.get(), graph->add_constant(w->path, trained(*w, *old.payload)));
  }
  graph->erase_unused_constants();
  return graph;
}

Ranges QatModel::ranges() const {
  Ranges ranges = ranges_;
  for (const auto& [name, a] : grids_) {
    if (a->is_known) continue;
    Range& range = ranges.values.at(name);
    range.low = a->low.item<float>(), range.high = a->high.item<float>();
    range.grid.scale = std::max(a->scale.detach().item<float>(), least_scale);
    range.grid.zero_point = static_cast<int64_t>(a->zero_point.to(DType::f32).item<float>());
  }
  return ranges;
}

}  // namespace taper::quantize
