#include "taper/exporter/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/quantize/awq.h"
#include "taper/exporter/quantize/block_format.h"
#include "taper/exporter/quantize/cache.h"
#include "taper/exporter/quantize/choose.h"
#include "taper/exporter/quantize/convolutions.h"
#include "taper/exporter/quantize/float8.h"
#include "taper/exporter/quantize/prune_layers.h"
#include "taper/exporter/quantize/readers.h"
#include "taper/exporter/quantize/rounded_weights.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

/// Two bits keep 6 dB of usual weights, and four bits 20 dB.
constexpr double least_db = 3;

/// Hessians of experts that take more memory are left out.
constexpr int64_t most_bytes_of_experts = int64_t{4} << 30;

ProductInput input_of(const Reader& product) {
  return {product.input(), ends_of_rows(*product.node)};
}
/// Stands for what a widened convolution multiplies with its weight.
ProductInput weight_of(const ir::Constant& filter) { return {filter.value.get()}; }
/// In a Cache.
std::string cache_key(const ProductInput& input) {
  return input.rows->name + (input.ends == nullptr ? "" : " " + input.ends->name);
}

// ---- the elements ----

void require_finite(const Matrix& m) {
  const auto at = std::ranges::find_if_not(m.elements, [](float x) { return std::isfinite(x); });
  if (at == m.elements.end()) return;
  const auto i = at - m.elements.begin();
  throw ExportError("element (" + std::to_string(i / m.depth) + ", " + std::to_string(i % m.depth) +
                    ") is " + std::to_string(*at) + "; a weight must be finite to be quantized");
}

int64_t zero_rows(const Matrix& m) {
  int64_t count = 0;
  for (int64_t r = 0; r < m.rows; ++r)
    count += std::ranges::all_of(m.row(r), [](float x) { return x == 0; });
  return count;
}

// ---- the graph ----

/// The node that multiplies with blocks, or looks up their rows.
const Operator& product_of(Activations activations) {
  switch (activations) {
    case Activations::floats:
      return ops::taper_block_linear;
    case Activations::int8_dynamic:
      return ops::taper_block_linear_q8;
    default:
      return ops::linear;  // the pass read_blocks decides
  }
}

Value* padded(ir::Graph& graph, Node* before, Value* input, int64_t zeros) {
  if (zeros == 0) return input;
  return ir::insert_before(graph, before, ops::constant_pad_nd,
                           {input, std::vector<Dim>{0, zeros}, Scalar(0)}, before->location,
                           before->module)
      ->result();
}

ir::Argument bias_of(const Node& node) {
  Value* bias = node.op == &ops::linear  ? ir::Call<ops::linear>(node).get<"bias">()
                : node.op == &ops::addmm ? ir::Call<ops::addmm>(node).get<"self">()
                                         : nullptr;
  return bias == nullptr ? ir::Argument() : ir::Argument(bias);
}

/// A product of groups of rows with a stack of matrices in blocks.
Node* read_stack(ir::Graph& graph, Node* node, Value* input, Value* blocks,
                 Activations activations) {
  const Operator& op = product_of(activations);
  Value* const ends = ir::Call<ops::_grouped_mm>(*node).get<"offs">();
  const auto insert = [&](const Operator& made, std::vector<ir::Argument> arguments) {
    return ir::insert_before(graph, node, made, std::move(arguments), node->location, node->module);
  };
  if (&op == &ops::taper_block_linear)
    return insert(ops::taper_grouped_block_linear, {input, blocks, ends});
  if (&op == &ops::taper_block_linear_q8)
    return insert(ops::taper_grouped_block_linear_q8, {input, blocks, ends});
  Value* matrices = insert(ops::transpose_int, {blocks, Dim(1), Dim(2)})->result();
  return insert(ops::_grouped_mm, {input, matrices, ends, ir::Argument(), ir::Argument()});
}

void read_blocks(ir::Graph& graph, const Reader& reader, Value* blocks, int64_t zeros,
                 Activations activations) {
  Node* node = reader.node;
  if (reader.is_look_up)
    return graph.set_argument(node, ir::Call<ops::embedding>::position<"weight">, blocks);
  Value* input = padded(graph, node, reader.input(), zeros);
  Node* product =
      node->op == &ops::_grouped_mm
          ? read_stack(graph, node, input, blocks, activations)
          : ir::insert_before(graph, node, product_of(activations), {input, blocks, bias_of(*node)},
                              node->location, node->module);
  graph.replace_uses(node->result(), product->result());
  graph.swap_names(node->result(), product->result());
  graph.erase(node);
}

/// Its readers get f32, which a node makes of the blocks in each call.
void widen_blocks(const Weight& w, const std::shared_ptr<const ir::Payload>& blocks,
                  int64_t padded_depth) {
  ir::Graph& graph = *w.graph;
  Value* old = w.constant->value.get();
  Node* first = nullptr;  // the reader that comes first
  for (Node& node : graph.nodes())
    if (first == nullptr && std::ranges::find(old->users, &node) != old->users.end()) first = &node;
  const auto insert = [&](const Operator& op, std::vector<ir::Argument> arguments) {
    return ir::insert_before(graph, first, op, std::move(arguments), first->location, first->module)
        ->result();
  };
  const int64_t rows = w.rows(), depth = w.depth();
  const eager::Tensor all = eager::arange(rows, DType::i64);
  Value* wide = insert(ops::taper_block_embedding, {graph.add_constant(w.constant->path, blocks),
                                                    graph.add_constant("", ir::payload_of(all))});
  if (padded_depth > depth) {
    wide = insert(ops::slice_Tensor, {wide, Dim(1), Dim(0), Dim(depth), Dim(1)});
    wide = insert(ops::clone, {wide});  // readers may view a dense weight
  }
  const std::vector<int64_t>& sizes = w.constant->payload->sizes;
  graph.replace_uses(old, insert(ops::view, {wide, std::vector<Dim>(sizes.begin(), sizes.end())}));
}

// ---- all together ----

/// What became of a weight. Other graphs that share it get the same.
struct Decision {
  const Rule* rule = nullptr;
  const BlockFormat* format = nullptr;
  int64_t depth = 0;  ///< with the zeros
  std::shared_ptr<const ir::Payload> payload;
  std::shared_ptr<const Float8Weight> float8;
};

class Quantizer {
 public:
  Quantizer(const std::vector<ir::Graph*>& graphs, const Recipe& recipe, const Options& options)
      : recipe_(recipe), options_(options) {
    for (ir::Graph* graph : graphs)
      ir::for_each_graph(*graph, [&](ir::Graph& g) {
        std::vector<Weight> found = find_weights(g);
        widen_others(recipe, found);
        for (Weight& w : found) weights_.push_back(std::move(w));
      });
    first_ = graphs.empty() ? nullptr : graphs.front();
    report_.recipe = recipe.name;
  }

  Report run() {
    if (weights_.empty())
      throw ExportError("the model has no weights of products or look-ups to quantize");
    calibrate();
    begin_sequence();
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Weight& w = weights_[i];
      show("quantizing " + w.constant->path, static_cast<int64_t>(i));
      if (is_sequential(w)) learn_again(w);
      look_at(w);
      if (has_sequence_) round_in_place(w);
    }
    rounded_.restore();
    require_results();
    for (const Weight& w : weights_) edit(w, decisions_.at(key_of(w)));
    passes::PassContext context;
    for (ir::Graph* graph : graphs()) passes::remove_dead_code(*graph, context);
    return std::move(report_);
  }

 private:
  std::set<ir::Graph*> graphs() const {
    std::set<ir::Graph*> all;
    for (const Weight& w : weights_) all.insert(w.graph);
    return all;
  }

  void show(const std::string& what, int64_t done) const {
    const auto samples = static_cast<int64_t>(options_.samples.count);
    if (options_.progress)
      options_.progress(what, calibrated_ + done, samples + static_cast<int64_t>(weights_.size()));
  }

  void calibrate() {
    if (options_.samples.count == 0) return;
    std::vector<ProductInput> inputs;
    std::vector<const ir::Constant*> filters;
    for (const Weight& w : weights_)
      if (w.graph == first_ && w.obstacle.empty() && !w.is_widened)
        for (const ProductInput& i : inputs_of(w)) inputs.push_back(i);
    leave_large_stacks(inputs);
    for (const Weight& w : weights_)
      if (w.graph == first_ && w.is_widened) filters.push_back(w.constant);
    show("calibrating", 0);
    if (options_.cache == nullptr || options_.cache->hessians.empty()) {
      learn(inputs, filters);
    } else {
      for (const ir::Constant* c : filters) inputs.push_back(weight_of(*c));
      for (const ProductInput& i : inputs)
        if (const auto found = options_.cache->hessians.find(cache_key(i));
            found != options_.cache->hessians.end())
          hessians_[i] = found->second;
    }
    report_.samples = static_cast<int64_t>(options_.samples.count);
  }

  /// Each expert has a Hessian of its own. Those of large models would fill the memory.
  void leave_large_stacks(std::vector<ProductInput>& inputs) {
    int64_t bytes = 0;
    std::set<ProductInput> known;
    for (const ProductInput& i : inputs)
      if (i.ends != nullptr && known.insert(i).second)
        bytes += i.matrices() * i.depth() * i.depth() * static_cast<int64_t>(sizeof(float));
    if (bytes <= most_bytes_of_experts) return;
    std::erase_if(inputs, [](const ProductInput& i) { return i.ends != nullptr; });
    report_.notes.push_back("experts learn nothing from the data: that would take " +
                            std::to_string(bytes >> 30) + " GB of memory");
  }

  void learn(const std::vector<ProductInput>& inputs,
             const std::vector<const ir::Constant*>& filters) {
    hessians_ = run_samples(*first_, options_.samples, inputs, [&] {
      ++calibrated_;
      show("calibrating", 0);
    });
    hessians_.merge(hessians_of_convolutions(*first_, options_.samples, filters));
    if (options_.cache != nullptr)
      for (const auto& [i, parts] : hessians_) options_.cache->hessians[cache_key(i)] = parts;
  }

  /// Whether a weight learns from inputs that other weights gave when they were rounded.
  bool is_sequential(const Weight& w) const {
    if (w.graph != first_ || !w.obstacle.empty()) return false;
    const Rule* rule = rule_for(recipe_, w);
    return rule != nullptr && rule->scheme.sequential;
  }
  void begin_sequence() {
    has_sequence_ =
        std::ranges::any_of(weights_, [&](const Weight& w) { return is_sequential(w); });
    if (!has_sequence_) return;
    if (options_.samples.count == 0)
      throw ExportError("recipe " + recipe_.name + ": \"sequential\" needs calibration data");
    sort_by_uses(*first_, weights_);
  }
  /// Runs the data through the graph as it is rounded so far. Weights with the same input lie
  /// behind the same others, and so each input is learned of once.
  void learn_again(const Weight& w) {
    if (rounded_.empty()) return;
    std::vector<ProductInput> inputs;
    for (const ProductInput& i : inputs_of(w))
      if (hessians_.contains(i) && learned_again_.insert(i).second) inputs.push_back(i);
    if (inputs.empty()) return;
    Hessians again = w.is_widened
                         ? hessians_of_convolutions(*first_, options_.samples, {w.constant})
                         : run_samples(*first_, options_.samples, inputs, {});
    for (auto& [input, parts] : again) hessians_[input] = std::move(parts);
  }
  /// Until all weights are decided about.
  void round_in_place(const Weight& w) {
    const auto blocks = decisions_.at(key_of(w)).payload;
    if (w.graph == first_ && w.obstacle.empty() && blocks != nullptr) rounded_.put(w, *blocks);
  }

  /// What is learned of for a weight.
  static std::vector<ProductInput> inputs_of(const Weight& w) {
    if (w.is_widened) return {weight_of(*w.constant)};
    std::vector<ProductInput> inputs;
    for (const Reader& r : w.readers)
      if (!r.is_look_up) inputs.push_back(input_of(r));
    return inputs;
  }

  using SharedHessians = std::vector<std::shared_ptr<const Hessian>>;
  /// For each matrix of a weight, the Hessian of all products with it; nullptr if no data reach
  /// them. Empty if no data reach any.
  SharedHessians hessians_of(const Weight& w, int64_t depth) const {
    std::vector<std::shared_ptr<Hessian>> sums(
        static_cast<size_t>(std::max<int64_t>(w.matrices, 1)));
    for (const ProductInput& i : inputs_of(w)) {
      const auto found = hessians_.find(i);
      if (found == hessians_.end()) continue;
      for (size_t m = 0; m < sums.size(); ++m) add(*found->second[m], depth, sums[m]);
    }
    if (std::ranges::all_of(sums, [](const auto& sum) { return sum == nullptr; })) return {};
    return {sums.begin(), sums.end()};
  }
  /// How many inputs one matrix learns from.
  int64_t inputs_for(const Weight& w) const {
    int64_t count = 0;
    for (const ProductInput& i : inputs_of(w))
      if (const auto found = hessians_.find(i); found != hessians_.end())
        count += found->second[0]->inputs;
    return count;
  }
  static void add(const Hessian& h, int64_t depth, std::shared_ptr<Hessian>& sum) {
    if (h.inputs == 0) return;
    if (sum == nullptr) sum = std::make_shared<Hessian>(depth);
    const auto n = static_cast<size_t>(h.depth);
    for (size_t i = 0; i < n; ++i)
      for (size_t k = 0; k < n; ++k)
        sum->sum[i * static_cast<size_t>(depth) + k] += h.sum[i * n + k];
    sum->inputs += h.inputs;
  }

  /// The same in all graphs that share a weight.
  using Key = std::pair<const std::byte*, bool>;
  static Key key_of(const Weight& w) { return {w.constant->payload->bytes.get(), w.is_transposed}; }

  void look_at(const Weight& w) {
    if (decisions_.contains(key_of(w))) return;  // reported with the graph that came first
    WeightReport report{w.constant->path, {}, w.constant->payload->sizes, "", "", 0, 0, {}, 0, 0};
    for (const Reader& r : w.readers) report.readers.push_back(ir::describe(*r.node));
    report.bytes_before = report.bytes_after =
        static_cast<int64_t>(w.constant->payload->size_bytes);
    Decision decision = decide(w, report);
    if (decision.format != nullptr) encode(w, decision, report);
    if (is_float8(decision) && report.why.empty()) encode_float8(w, decision, report);
    decisions_[key_of(w)] = std::move(decision);
    report_.weights.push_back(std::move(report));
  }

  Decision decide(const Weight& w, WeightReport& report) {
    Decision decision;
    decision.rule = rule_for(recipe_, w);
    if (decision.rule == nullptr) return report.why = "no rule matches", decision;
    used_.insert(decision.rule);
    const Scheme& scheme = decision.rule->scheme;
    if (scheme.weights == Scheme::Weights::float8)
      return report.why = obstacle_to_float8(w), decision;
    if (!w.obstacle.empty()) return report.why = w.obstacle, decision;
    if (scheme.weights == Scheme::Weights::floats)
      return report.why = "the recipe leaves it as float", decision;
    if (scheme.weights != Scheme::Weights::blocks)
      throw ExportError("recipe " + recipe_.name +
                        ": static activations are those of quantize_static, not of quantize");
    const ChosenFormat chosen = choose_format(scheme, w);
    decision.format = chosen.format, decision.depth = chosen.depth;
    report.why = chosen.why;
    if (chosen.format != nullptr && chosen.depth > w.depth()) report.padded_to = chosen.depth;
    return decision;
  }

  static bool is_float8(const Decision& d) {
    return d.rule != nullptr && d.rule->scheme.weights == Scheme::Weights::float8;
  }
  /// Any node can read a weight that is widened before.
  static std::string obstacle_to_float8(const Weight& w) {
    if (w.is_looked_up()) return "each look-up would widen all of it";
    if (w.graph->is_returned(w.constant->value.get()) || is_of_adapter(*w.constant))
      return w.obstacle;
    return w.constant->payload->layout == Layout::dense ? "" : w.obstacle;
  }
  static void encode_float8(const Weight& w, Decision& decision, WeightReport& report) {
    const ir::Payload& payload = *w.constant->payload;
    auto rounded = std::make_shared<const Float8Weight>(
        round_to_float8(payload, w.is_transposed && w.matrices == 0 ? 1 : 0));
    const eager::Tensor elements = ir::tensor_of(w.constant->payload).to(DType::f32);
    const Matrix row{1, elements.numel().value(), elements.to_vector<float>()};
    try {
      require_finite(row);
    } catch (const ExportError& e) {
      throw ExportError("weight " + w.constant->path + ": " + e.what());
    }
    report.measure = measure(row, rounded->values, nullptr);
    report.scheme = "f8_e4m3fn", report.bytes_after = rounded->size_bytes();
    decision.float8 = std::move(rounded);
  }

  void encode(const Weight& w, Decision& decision, WeightReport& report) {
    try {
      const Quantized q = quantized(w, decision);
      decision.payload = q.payload;
      report.measure = q.measure, report.zero_rows = q.zero_rows;
      if (learns(q.method) && w.matrices == 0) little_data_.add(inputs_for(w), w.depth());
      if (q.unreached > 0)
        report_.notes.push_back("the data reach no row of " + std::to_string(q.unreached) + " of " +
                                io::counted(w.matrices, "expert") + " of " + w.constant->path);
      report.scheme =
          name_of(*decision.format) + " " + name_of(q.method) + (w.is_widened ? ", widened" : "");
    } catch (const ExportError& e) {
      throw ExportError("weight " + w.constant->path + ": " + e.what());
    }
    report.bytes_after = static_cast<int64_t>(decision.payload->size_bytes);
  }

  Quantized quantized(const Weight& w, const Decision& decision) const {
    const Layout layout = decision.format->layout;
    Method method = decision.rule->scheme.method;
    // rows that are looked up have no products to learn from, convolutions with groups are not
    // learned from, and no row may choose an expert
    const SharedHessians hessians = hessians_of(w, decision.depth);
    if (learns(method) && hessians.empty() && options_.samples.count > 0 &&
        (w.is_looked_up() || w.is_widened || w.matrices > 0))
      method = Method::mse;
    const auto compute = [&] {
      const Matrix m = rows_of(w, decision.depth);
      require_finite(m);
      Quantized q =
          w.matrices > 0
              ? quantize_stack(m, w.matrices, layout, method, hessians)
              : quantize_matrix(m, layout, method, hessians.empty() ? nullptr : hessians[0].get());
      q.zero_rows = zero_rows(m);
      if (w.matrices > 0) q.payload = as_stack(*q.payload, w.matrices);
      return q;
    };
    // what a sequential weight becomes depends on others
    if (options_.cache == nullptr || decision.rule->scheme.sequential) return compute();
    const auto [elements, is_transposed] = key_of(w);
    const Cache::Key key = {elements, is_transposed, layout, method, decision.depth};
    auto found = options_.cache->weights.find(key);
    if (found == options_.cache->weights.end())
      found = options_.cache->weights.emplace(key, compute()).first;
    return found->second;
  }

  static std::shared_ptr<const ir::Payload> as_stack(const ir::Payload& matrix, int64_t matrices) {
    auto stack = std::make_shared<ir::Payload>(matrix);
    stack->sizes = {matrices, matrix.sizes[0] / matrices, matrix.sizes[1]};
    return stack;
  }

  static void edit(const Weight& w, const Decision& decision) {
    if (decision.float8 != nullptr) return read_float8(*w.graph, *w.constant, *decision.float8);
    if (decision.payload == nullptr || !w.obstacle.empty()) return;
    if (w.is_widened) return widen_blocks(w, decision.payload, decision.depth);
    Value* blocks = w.graph->add_constant(w.constant->path, decision.payload);
    for (const Reader& r : w.readers)
      read_blocks(*w.graph, r, blocks, decision.depth - w.depth(),
                  decision.rule->scheme.activations);
  }

  /// Of a weight that was pruned before: a quarter of its elements was zero.
  static std::string note_on_zeros(const WeightReport& w) {
    const Measure& m = w.measure;
    int64_t elements = 1;
    for (const int64_t s : w.sizes) elements *= s;
    if (4 * m.zeros < elements || 100 * m.lost <= m.zeros) return "";
    return "warning: " + std::to_string(m.lost) + " of " + io::counted(m.zeros, "zero") + " of " +
           w.path + " are none in " + w.scheme +
           ": its blocks have offsets; q8_0, q5_0 and q4_0 keep zeros";
  }

  void require_results() {
    if (used_.empty())
      throw ExportError("recipe " + recipe_.name + " matches no weight of the model, such as " +
                        weights_.front().constant->path);
    if (std::ranges::none_of(report_.weights, &WeightReport::is_quantized)) {
      std::set<std::string> reasons;
      for (const WeightReport& w : report_.weights) reasons.insert(w.why);
      throw ExportError("recipe " + recipe_.name + " quantizes nothing: " +
                        io::joined({reasons.begin(), reasons.end()}, "; "));
    }
    for (const WeightReport& w : report_.weights)
      if (w.is_quantized() && w.measure.sqnr_db() < least_db)
        report_.notes.push_back("warning: little is left of " + w.path + " in " + w.scheme +
                                "; give it another scheme");
    note_harm();
    note_little_data();
    for (const WeightReport& w : report_.weights)
      if (const std::string note = note_on_zeros(w); w.is_quantized() && !note.empty())
        report_.notes.push_back(note);
    if (recipe_.is_shipped) return;
    for (const Rule& rule : recipe_.rules)
      if (!used_.contains(&rule))
        report_.notes.push_back("the rule for \"" + rule.match + "\" decided about no weight");
  }

  /// Two bits leave about 10 dB, and three bits 15.
  void note_harm() {
    constexpr double little = 12;
    const auto quantized = std::ranges::count_if(report_.weights, &WeightReport::is_quantized);
    const auto harmed = std::ranges::count_if(report_.weights, [&](const WeightReport& w) {
      return w.is_quantized() && w.measure.harm_db() < little;
    });
    if (harmed > 0)
      report_.notes.push_back("warning: " + std::to_string(harmed) + " of " +
                              io::counted(quantized, "weight") +
                              " kept less than 12 dB, which harms most models; measure this one "
                              "with --target-accuracy, " +
                              (calibrated_ > 0 ? "train it" : "give data") + ", or take more bits");
  }

  /// Elements that outnumber the rows of the data fit these rows alone, which the table shows as
  /// few errors.
  void note_little_data() {
    if (little_data_.count > 0)
      report_.notes.push_back("warning: " + io::counted(little_data_.count, "weight") +
                              " learned from fewer rows than a row has elements, such as " +
                              io::counted(little_data_.rows, "row") + " for " +
                              std::to_string(little_data_.depth) + "; give more data");
  }

  const Recipe& recipe_;
  const Options& options_;
  ir::Graph* first_ = nullptr;
  std::vector<Weight> weights_;
  Hessians hessians_;
  int64_t calibrated_ = 0;
  /// Weights that learned from few rows, and the one with the fewest.
  struct LittleData {
    int64_t count = 0, rows = 0, depth = 0;
    void add(int64_t inputs, int64_t elements) {
      if (inputs == 0 || inputs >= elements) return;
      if (count++ == 0 || inputs < rows) rows = inputs, depth = elements;
    }
  } little_data_;
  bool has_sequence_ = false;  ///< some weights are sequential
  RoundedWeights rounded_;
  std::set<ProductInput> learned_again_;
  std::map<Key, Decision> decisions_;
  std::set<const Rule*> used_;
  Report report_;
};

}  // namespace

Report quantize(const std::vector<ir::Graph*>& graphs, const Recipe& recipe,
                const Options& options) {
  fold_batch_norms(graphs, recipe);
  scale_for_activations(graphs, recipe, options);
  return Quantizer(graphs, recipe, options).run();
}

}  // namespace taper::quantize
