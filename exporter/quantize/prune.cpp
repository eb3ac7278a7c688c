#include "taper/exporter/quantize/prune.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/static/pattern.h"
#include "taper/exporter/quantize/static/roles.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using ir::Node;
using ir::Value;

/// A product whose weight is pruned.
struct Layer {
  const Node* node;
  Product product;
  ir::Constant* weight;
  std::vector<Hessian> hessians;  ///< of the groups of a convolution; empty: nothing is learned

  int64_t groups() const {
    return node->op == &ops::convolution ? ir::Call<ops::convolution>(*node).get<"groups">().value()
                                         : 1;
  }
};

/// The inputs of each result as rows (results, depth of all groups).
Tensor rows_of(const Layer& layer, const Tensor& x) {
  if (layer.node->op != &ops::convolution) return x.contiguous().reshape({-1, x.size(-1)});
  const ir::Call<ops::convolution> call(*layer.node);
  const bool is_line = x.rank() == 3;
  const auto each = [&](const std::vector<Dim>& list, int64_t of_row) {
    eager::Ints ints;
    if (is_line) ints.push_back(of_row);
    for (const Dim& d : list) ints.push_back(d.value());
    if (ints.size() == 1) ints.push_back(ints[0]);
    return ints;
  };
  eager::Ints kernel;
  if (is_line) kernel.push_back(1);
  for (size_t d = 2; d < layer.weight->payload->sizes.size(); ++d)
    kernel.push_back(layer.weight->payload->sizes[d]);
  const Tensor columns = eager::call<ops::im2col>(
      layer.node->location, is_line ? x.unsqueeze(2) : x, kernel, each(call.get<"dilation">(), 1),
      each(call.get<"padding">(), 0), each(call.get<"stride">(), 1));
  return columns.permute({0, 2, 1}).contiguous().reshape({-1, columns.size(1)});
}

/// Which elements of a group go: those with the smallest scores, the first of equal ones.
std::vector<bool> losers(std::vector<float> scores, const Pruning& how) {
  const size_t n = scores.size(), all = static_cast<size_t>(how.of),
               stay = (n * static_cast<size_t>(how.keep) + all - 1) / all;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return scores[i]; });
  std::vector<bool> goes(n);
  for (size_t i = 0; i + stay < n; ++i) goes[order[i]] = true;
  return goes;
}

class Pruner {
 public:
  Pruner(const std::vector<ir::Graph*>& graphs, const Pruning& how, const Examples& samples)
      : graphs_(graphs), graph_(*graphs.at(0)), how_(how), samples_(samples) {}

  std::vector<PrunedWeight> run() {
    if (how_.of < 2 || how_.keep < 1 || how_.keep >= how_.of)
      throw ExportError("pruning " + std::to_string(how_.keep) + ":" + std::to_string(how_.of) +
                        " keeps nothing or everything; 2:4 keeps two of four");
    if (!(how_.damping >= 0 && std::isfinite(how_.damping)))
      throw ExportError("pruning needs a damping of zero or above, such as 0.01");
    if (learns() && samples_.count == 0)
      throw ExportError("pruning by the sizes of inputs needs calibration data");
    find_layers();
    if (layers_.empty()) throw ExportError("there is no constant weight to prune");
    if (learns()) learn();
    std::vector<PrunedWeight> pruned;
    for (Layer& layer : layers_) pruned.push_back(prune(layer));
    for (ir::Graph* graph : graphs_) graph->erase_unused_constants();
    return pruned;
  }

 private:
  bool learns() const { return how_.method != Pruning::Method::magnitude; }

  void find_layers() {
    std::map<const Value*, ir::Constant*> constants;
    for (ir::Constant& c : graph_.constants()) constants[c.value.get()] = &c;
    std::map<const Value*, size_t> known;  // the layer of a weight that several nodes read
    for (const Node& node : graph_.nodes()) {
      const auto product = product_of(node);
      if (!product || product->one_scale || !constants.contains(product->weight)) continue;
      ir::Constant* weight = constants.at(product->weight);
      const bool is_turned = node.op == &ops::convolution && product->axis != 0;
      const auto is_excluded = [&](const std::string& pattern) {
        return matches(pattern, weight->path) || matches(pattern, node.module) ||
               matches(pattern, name_of(*node.op));
      };
      if (is_turned || std::ranges::any_of(how_.exclude, is_excluded)) continue;
      if (weight->payload->layout != Layout::dense || !known.emplace(product->weight, 0).second)
        continue;
      layers_.push_back({&node, *product, weight, {}});
    }
  }

  void learn() {
    std::multimap<const Value*, Layer*> readers;
    for (Layer& layer : layers_) readers.emplace(layer.product.input, &layer);
    for (size_t i = 0; i < samples_.count; ++i)
      run_example(graph_, samples_, i, [&](const Value& v, const Tensor& x) {
        for (auto [at, end] = readers.equal_range(&v); at != end; ++at) add(*at->second, x);
      });
  }
  static void add(Layer& layer, const Tensor& x) {
    const Tensor rows = rows_of(layer, x);
    const int64_t groups = layer.groups(), depth = rows.size(1).value() / groups;
    if (layer.hessians.empty()) layer.hessians.assign(static_cast<size_t>(groups), Hessian(depth));
    for (int64_t g = 0; g < groups; ++g) {
      const Tensor own = rows.slice(1, g * depth, (g + 1) * depth).contiguous();
      const std::vector<float> sums = eager::mm(own.t(), own).to_vector<float>();
      if (!std::ranges::all_of(sums, [](float s) { return std::isfinite(s); }))
        throw ExportError("calibration: the input of " + ir::describe(*layer.node) +
                          " is not finite for some of the data");
      layer.hessians[static_cast<size_t>(g)].add(sums, rows.size(0).value());
    }
  }

  PrunedWeight prune(Layer& layer) {
    const ir::Constant& weight = *layer.weight;
    const bool is_matrix = layer.node->op != &ops::convolution && layer.product.axis == 1;
    Tensor w = ir::tensor_of(weight.payload).to(DType::f32);
    if (is_matrix) w = w.t();
    const int64_t rows = w.size(0).value(), groups = layer.groups();
    std::vector<float> elements = w.contiguous().to_vector<float>();
    if (!std::ranges::all_of(elements, [](float x) { return std::isfinite(x); }))
      throw ExportError("the weight " + weight.path + " holds infinity or NaN; repair the weight");
    const size_t part = elements.size() / static_cast<size_t>(groups);
    for (int64_t g = 0; g < groups; ++g)
      prune_part(std::span(elements).subspan(static_cast<size_t>(g) * part, part), rows / groups,
                 layer.hessians.empty() ? nullptr : &layer.hessians[static_cast<size_t>(g)]);
    PrunedWeight pruned{weight.path, static_cast<int64_t>(elements.size()),
                        std::ranges::count(elements, 0.0f)};
    std::vector<int64_t> sizes;
    for (const Dim& d : w.sizes()) sizes.push_back(d.value());
    Tensor made = Tensor::from(elements, sizes);
    if (is_matrix) made = made.t().contiguous();
    replace(weight, ir::payload_of(made));
    return pruned;
  }
  /// In all graphs that have the same elements.
  void replace(const ir::Constant& weight, const std::shared_ptr<const ir::Payload>& pruned) {
    const std::byte* old = weight.payload->bytes.get();
    for (ir::Graph* graph : graphs_)
      ir::for_each_graph(*graph, [&](ir::Graph& g) {
        std::vector<std::pair<Value*, std::string>> same;
        for (const ir::Constant& c : g.constants())
          if (c.payload->bytes.get() == old) same.emplace_back(c.value.get(), c.path);
        for (const auto& [value, path] : same) g.replace_uses(value, g.add_constant(path, pruned));
      });
  }

  void prune_part(std::span<float> w, int64_t rows, const Hessian* hessian) const {
    const size_t depth = rows == 0 ? 0 : w.size() / static_cast<size_t>(rows),
                 of = static_cast<size_t>(how_.of);
    if (how_.method == Pruning::Method::sparsegpt && hessian != nullptr)
      return prune_with_errors(w, rows, *hessian);
    std::vector<float> sizes(depth, 1);
    if (hessian != nullptr)
      for (size_t k = 0; k < depth; ++k) sizes[k] = std::sqrt(hessian->sum[k * depth + k]);
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
      for (size_t first = 0; first < depth; first += of) {
        const std::span<float> group = w.subspan(r * depth + first, std::min(of, depth - first));
        std::vector<float> scores;
        for (size_t i = 0; i < group.size(); ++i)
          scores.push_back(std::fabs(group[i]) * sizes[first + i]);
        const std::vector<bool> goes = losers(std::move(scores), how_);
        for (size_t i = 0; i < group.size(); ++i)
          if (goes[i]) group[i] = 0;
      }
  }

  /// GPTQ with zeros for numbers that go, chosen when a group is reached.
  void prune_with_errors(std::span<float> w, int64_t rows, const Hessian& hessian) const {
    const GptqOptions options{.damping = how_.damping};
    const std::vector<int> order = rounding_order(hessian, false);
    const std::vector<float> factor = error_factor(hessian, order, options.damping);
    const size_t depth = order.size();
    std::vector<bool> goes;
    size_t begin = 0;
    gptq(w, rows, hessian, options,
         {how_.of,
          [&](int64_t, int64_t first, std::span<const float> group) {
            begin = static_cast<size_t>(first);
            std::vector<float> scores;
            for (size_t i = 0; i < group.size(); ++i)
              scores.push_back(std::fabs(group[i] / factor[(begin + i) * depth + begin + i]));
            goes = losers(std::move(scores), how_);
          },
          [&](int64_t, int64_t column, float x) {
            return goes[static_cast<size_t>(column) - begin] ? 0.0f : x;
          }});
  }

  const std::vector<ir::Graph*>& graphs_;
  ir::Graph& graph_;
  const Pruning& how_;
  const Examples& samples_;
  std::vector<Layer> layers_;
};

}  // namespace

std::vector<PrunedWeight> prune(const std::vector<ir::Graph*>& graphs, const Pruning& how,
                                const Examples& samples) {
  return Pruner(graphs, how, samples).run();
}

ZeroMask::ZeroMask(const std::vector<Tensor>& parameters) {
  const eager::NoGrad guard;
  for (const Tensor& p : parameters) {
    const Tensor goes = eager::eq(p.detach(), 0);
    if (eager::any(goes).item<bool>()) masked_.emplace_back(p, goes);
  }
}

void ZeroMask::apply() {
  const eager::NoGrad guard;
  for (auto& [parameter, goes] : masked_) parameter.copy_(eager::where(goes, 0, parameter));
}

}  // namespace taper::quantize
