#include "taper/exporter/quantize/prune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/quantize/calibration.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/prune_layers.h"
#include "taper/exporter/quantize/readers.h"
#include "taper/exporter/quantize/static/pattern.h"
#include "taper/exporter/quantize/static/run_examples.h"
#include "taper/exporter/quantize/table.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using ir::Node;
using ir::Value;

constexpr std::array<const char*, 3> method_names = {"magnitude", "wanda", "sparsegpt"};
/// Of a part that SparseGPT prunes: neighbours that compete.
constexpr int neighbours = 128;
/// Half of usual weights keep 10 dB.
constexpr double least_db = 3;

class Pruner {
 public:
  Pruner(const std::vector<ir::Graph*>& graphs, const Pruning& how, const Examples& samples,
         const Progress& progress)
      : graphs_(graphs), graph_(*graphs.at(0)), how_(how), samples_(samples), progress_(progress) {}

  PruneReport run() {
    require_possible_options();
    report_.how = name_of(how_.method) + " " + to_text(how_.sparsity);
    find_layers();
    if (layers_.empty()) throw ExportError("there is no constant weight to prune" + reasons());
    if (learns()) learn();
    for (PrunedLayer& layer : layers_) {
      report_.weights.push_back(prune(layer));
      advance();
    }
    for (ir::Graph* graph : graphs_)
      ir::for_each_graph(*graph, [](ir::Graph& g) { g.erase_unused_constants(); });
    note_unknown();
    if (std::ranges::none_of(report_.weights, &PrunedWeight::is_pruned))
      throw ExportError("pruning " + to_text(how_.sparsity) + " sets nothing to zero" + reasons());
    return std::move(report_);
  }

 private:
  bool learns() const { return how_.method != Pruning::Method::magnitude; }

  void require_possible_options() const {
    require_possible(how_.sparsity);
    if (!(how_.damping >= 0 && std::isfinite(how_.damping)))
      throw ExportError("pruning needs a damping of zero or above, such as 0.01");
    if (how_.method == Pruning::Method::sparsegpt && how_.sparsity.has_blocks())
      throw ExportError(
          "sparsegpt prunes single weights, such as 0.5 or 2:4; for blocks take "
          "magnitude or wanda");
    if (learns() && samples_.count == 0)
      throw ExportError("pruning by the sizes of inputs needs calibration data");
  }

  void advance() {
    const size_t samples = learns() ? samples_.count : 0;
    if (progress_) progress_(++done_, samples + layers_.size());
  }

  // ---- which weights

  /// Constants with the same elements, of all graphs and their bodies. They are one layer.
  using Tied = std::vector<Weight>;

  void find_layers() {
    std::vector<Tied> all;
    std::map<const std::byte*, size_t> known;
    for (ir::Graph* graph : graphs_)
      ir::for_each_graph(*graph, [&](ir::Graph& g) {
        for (Weight& w : find_weights(g)) {
          const auto [at, is_new] = known.try_emplace(w.constant->payload->bytes.get(), all.size());
          if (is_new) all.emplace_back();
          all[at->second].push_back(std::move(w));
        }
      });
    std::set<std::string> used;  // patterns of `exclude`
    for (const Tied& tied : all) add_layer(tied, used);
    for (const std::string& pattern : how_.exclude)
      if (!used.contains(pattern))
        throw ExportError("\"" + pattern + "\" excludes no weight of a product or convolution");
  }

  void add_layer(const Tied& tied, std::set<std::string>& used) {
    std::optional<PrunedLayer> layer;
    for (const Weight& w : tied) {
      PrunedLayer next = layer_of(w);
      if (next.uses.empty()) continue;
      if (!layer)
        layer = std::move(next);
      else if (layer->is_transposed == next.is_transposed &&
               layer->is_convolution() == next.is_convolution())
        layer->uses.insert(layer->uses.end(), next.uses.begin(), next.uses.end());
    }
    if (!layer) return leave(*tied.front().constant, reason_to_leave(tied.front()));
    if (is_excluded(*layer, used)) return leave(*layer->weight, "it is excluded");
    layers_.push_back(std::move(*layer));
  }

  bool is_excluded(const PrunedLayer& layer, std::set<std::string>& used) const {
    bool excluded = false;
    for (const std::string& pattern : how_.exclude)
      if (matches(pattern, layer.weight->path) ||
          std::ranges::any_of(layer.uses, [&](const PrunedLayer::Use& use) {
            return matches(pattern, use.node->module) || matches(pattern, name_of(*use.node->op));
          }))
        used.insert(pattern), excluded = true;
    return excluded;
  }

  void leave(const ir::Constant& weight, const std::string& why) {
    report_.weights.push_back(unchanged(weight, why));
  }
  std::string reasons() const {
    std::set<std::string> all;
    for (const PrunedWeight& w : report_.weights)
      if (!w.is_pruned()) all.insert(w.why);
    return all.empty() ? "" : ": " + io::joined({all.begin(), all.end()}, "; ");
  }

  // ---- what is learned

  void learn() {
    std::multimap<const Value*, std::pair<PrunedLayer*, const Node*>> readers;
    Seen of_stacks;
    for (PrunedLayer& layer : layers_) {
      for (const PrunedLayer::Use& use : layer.uses)
        if (layer.matrices > 0)
          of_stacks[use.input], of_stacks[ends_of_rows(*use.node)];
        else
          readers.emplace(use.input, std::pair(&layer, use.node));
      for (int64_t m = 0; m < layer.matrices; ++m)
        add_group(layer, static_cast<size_t>(m), *layer.uses.front().node,
                  eager::zeros({1, layer.depth()}));
    }
    for (size_t i = 0; i < samples_.count; ++i) {
      run_example(graph_, samples_, i, [&](const Value& v, const Tensor& x) {
        for (auto [at, end] = readers.equal_range(&v); at != end; ++at)
          add(*at->second.first, *at->second.second, x);
        if (const auto at = of_stacks.find(&v); at != of_stacks.end()) at->second = x;
      });
      for (PrunedLayer& layer : layers_)
        for (const PrunedLayer::Use& use : layer.uses)
          if (layer.matrices > 0) add_stack(layer, use, of_stacks);
      advance();
    }
  }
  /// What products with stacks read: the rows, and where those of each matrix end.
  using Seen = std::map<const Value*, std::optional<Tensor>>;
  void add_stack(PrunedLayer& layer, const PrunedLayer::Use& use, Seen& seen) const {
    const std::optional<Tensor>& x = seen[use.input];
    const Value* ends_value = ends_of_rows(*use.node);
    if (!x || (ends_value != nullptr && !seen[ends_value])) return;
    const eager::NoGrad guard;
    std::vector<int64_t> ends;
    if (ends_value != nullptr) ends = seen[ends_value]->to(DType::i64).to_vector<int64_t>();
    for (int64_t m = 0, begin = 0; m < layer.matrices; ++m) {
      const auto index = static_cast<size_t>(m);
      const int64_t end = ends.empty() ? 0 : std::max(begin, ends[index]);
      const Tensor rows = ends.empty() ? x->select(0, m) : x->slice(0, begin, end);
      if (rows.numel().value() > 0) add_group(layer, index, *use.node, rows.contiguous());
      begin = end;
    }
  }
  void add(PrunedLayer& layer, const Node& node, const Tensor& x) const {
    const eager::NoGrad guard;
    const Tensor rows = layer.is_convolution() ? patches_of(node, layer.weight->payload->sizes, x)
                                               : x.contiguous().reshape({-1, x.size(-1)});
    if (rows.numel().value() == 0) return;
    const int64_t groups = layer.groups(), depth = rows.size(1).value() / groups;
    for (int64_t g = 0; g < groups; ++g)
      add_group(layer, static_cast<size_t>(g), node,
                rows.slice(1, g * depth, (g + 1) * depth).contiguous());
  }
  void add_group(PrunedLayer& layer, size_t g, const Node& node, const Tensor& rows) const {
    const bool whole = how_.method == Pruning::Method::sparsegpt;
    const std::vector<float> sums =
        (whole ? eager::mm(rows.t(), rows) : eager::sum(rows * rows, {0})).to_vector<float>();
    if (!std::ranges::all_of(sums, [](float s) { return std::isfinite(s); }))
      throw ExportError("calibration: the input of " + ir::describe(node) +
                        " is not finite for some of the data");
    const int64_t depth = rows.size(1).value();
    if (whole) {
      while (layer.hessians.size() <= g) layer.hessians.emplace_back(depth);
      return layer.hessians[g].add(sums, rows.size(0).value());
    }
    while (layer.squares.size() <= g) layer.squares.emplace_back(static_cast<size_t>(depth));
    for (size_t k = 0; k < sums.size(); ++k) layer.squares[g][k] += sums[k];
  }

  /// Whether the data say nothing about any input of a group.
  static bool is_unknown(const PrunedLayer& layer, size_t group) {
    const std::vector<float> sizes =
        layer.hessians.empty() ? layer.squares[group] : layer.hessians[group].diagonal();
    return std::ranges::all_of(sizes, [](float x) { return x == 0; });
  }
  /// Notes the groups that are so. Returns whether all are.
  bool note_if_unknown(const PrunedLayer& layer) {
    const size_t groups = std::max(layer.squares.size(), layer.hessians.size());
    size_t count = 0;
    for (size_t g = 0; g < groups; ++g) count += is_unknown(layer, g);
    const std::string& path = layer.weight->path;
    if (count == groups)
      unknown_.push_back(path);
    else if (count > 0)
      report_.notes.push_back("warning: the data do not reach " + std::to_string(count) + " of " +
                              std::to_string(groups) + " parts of " + path +
                              "; their largest elements stayed");
    return count == groups;
  }

  void note_unknown() {
    if (unknown_.empty()) return;
    const std::string& first = unknown_.front();
    if (unknown_.size() == 1)
      return report_.notes.push_back(
          "warning: the input of " + first +
          " is zero in all of the data, or not reached; its largest elements stayed");
    report_.notes.push_back(
        "warning: the inputs of " + std::to_string(unknown_.size()) + " weights, such as " + first +
        ", are zero in all of the data, or not reached; their largest elements stayed");
  }

  // ---- the zeros

  PrunedWeight prune(PrunedLayer& layer) {
    const ir::Constant& weight = *layer.weight;
    if (learns() && note_if_unknown(layer)) layer.squares.clear(), layer.hessians.clear();
    Tensor w = ir::tensor_of(weight.payload).to(DType::f32);
    if (layer.is_transposed) w = w.transpose(-2, -1);
    const int64_t rows = w.size(0).value() * (layer.matrices > 0 ? w.size(1).value() : 1);
    Matrix before{rows, 0, w.contiguous().to_vector<float>()};
    if (before.elements.empty()) return unchanged(weight, "it has no elements");
    before.depth = static_cast<int64_t>(before.elements.size()) / before.rows;
    if (!std::ranges::all_of(before.elements, [](float x) { return std::isfinite(x); }))
      throw ExportError("the weight " + weight.path + " holds infinity or NaN; repair the weight");
    Matrix after = before;
    prune(layer, after);
    if (after.elements == before.elements)
      return unchanged(weight, "its small elements are zero already, or it has too few");

    replace(weight, payload_of(layer, after, w));
    PrunedWeight pruned = unchanged(weight, "");
    pruned.elements = static_cast<int64_t>(after.elements.size());
    pruned.zeros = std::ranges::count(after.elements, 0.0f);
    for (int64_t r = 0; r < after.rows; ++r)
      pruned.zero_rows += std::ranges::all_of(after.row(r), [](float x) { return x == 0; });
    pruned.measure = measure(before, after.elements, nullptr);
    add_output(layer, before, after, pruned.measure);
    if (pruned.measure.harm_db() < least_db)
      report_.notes.push_back("warning: little is left of " + weight.path +
                              "; prune less, or exclude it");
    return pruned;
  }
  static PrunedWeight unchanged(const ir::Constant& weight, const std::string& why) {
    PrunedWeight same;
    same.path = weight.path, same.sizes = weight.payload->sizes, same.why = why;
    same.bytes = static_cast<int64_t>(weight.payload->size_bytes);
    return same;
  }

  /// Of the results. What Wanda learns tells them if inputs are not correlated.
  static void add_output(const PrunedLayer& layer, const Matrix& before, const Matrix& after,
                         Measure& m) {
    const size_t groups = std::max(layer.squares.size(), layer.hessians.size());
    const size_t part = groups == 0 ? 0 : before.elements.size() / groups;
    for (size_t g = 0; g < groups; ++g) {
      const std::span own = std::span(before.elements).subspan(g * part, part);
      std::vector<float> errors(own.begin(), own.end());
      for (size_t i = 0; i < part; ++i) errors[i] -= after.elements[g * part + i];
      const auto energy = [&](std::span<const float> w) {
        if (!layer.hessians.empty()) return result_energy(w, layer.hessians[g]);
        double sum = 0;
        for (size_t i = 0; i < w.size(); ++i)
          sum += static_cast<double>(w[i]) * w[i] * layer.squares[g][i % layer.squares[g].size()];
        return sum;
      };
      m.output_signal += energy(own), m.output_noise += energy(errors);
    }
  }

  /// Each group of a convolution has inputs of its own, and so has each matrix of a stack.
  void prune(const PrunedLayer& layer, Matrix& w) const {
    const size_t groups = std::max({size_t{1}, static_cast<size_t>(layer.matrices),
                                    layer.squares.size(), layer.hessians.size()});
    const int64_t rows = w.rows / static_cast<int64_t>(groups);
    const size_t part = w.elements.size() / groups;
    for (size_t g = 0; g < groups; ++g) {
      const std::span<float> own = std::span(w.elements).subspan(g * part, part);
      const bool has_data = !layer.squares.empty() || !layer.hessians.empty(),
                 is_known = has_data && !is_unknown(layer, g);
      if (is_known && !layer.hessians.empty()) {
        prune_with_errors(own, rows, layer.hessians[g]);
        continue;
      }
      std::vector<float> importance(static_cast<size_t>(w.depth), 1);
      if (is_known)
        std::ranges::transform(layer.squares[g], importance.begin(),
                               [](float s) { return std::sqrt(s); });
      zero_smallest(own, rows, importance, how_.sparsity, has_data);
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
         {how_.sparsity.part > 0 ? neighbours : how_.sparsity.of,
          [&](int64_t, int64_t first, std::span<const float> group) {
            begin = static_cast<size_t>(first);
            std::vector<float> scores;
            for (size_t i = 0; i < group.size(); ++i)
              scores.push_back(std::fabs(group[i] / factor[(begin + i) * depth + begin + i]));
            goes = losers(scores, how_.sparsity.stay(scores.size()));
          },
          [&](int64_t, int64_t column, float x) {
            return goes[static_cast<size_t>(column) - begin] ? 0.0f : x;
          }});
  }

  /// `like` is the weight as f32, with outputs first.
  static std::shared_ptr<const ir::Payload> payload_of(const PrunedLayer& layer, const Matrix& w,
                                                       const Tensor& like) {
    std::vector<int64_t> sizes;
    for (const Dim& d : like.sizes()) sizes.push_back(d.value());
    Tensor made = Tensor::from(w.elements, sizes);
    if (layer.is_transposed) made = made.transpose(-2, -1).contiguous();
    return ir::payload_of(made.to(layer.weight->payload->dtype));
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

  const std::vector<ir::Graph*>& graphs_;
  ir::Graph& graph_;
  const Pruning& how_;
  const Examples& samples_;
  const Progress& progress_;
  std::list<PrunedLayer> layers_;
  size_t done_ = 0;
  std::vector<std::string> unknown_;  ///< weights of whose inputs the data say nothing
  PruneReport report_;
};

}  // namespace

PruneReport prune(const std::vector<ir::Graph*>& graphs, const Pruning& how,
                  const Examples& samples, const Progress& progress) {
  return Pruner(graphs, how, samples, progress).run();
}

std::string name_of(Pruning::Method method) { return method_names[static_cast<size_t>(method)]; }

Pruning::Method pruning_method(const std::string& name) {
  const auto found = std::ranges::find(method_names, name);
  if (found == method_names.end())
    throw ExportError("there is no method of pruning called " + name +
                      "; there are magnitude, wanda and sparsegpt");
  return static_cast<Pruning::Method>(found - method_names.begin());
}

std::vector<const PrunedWeight*> PruneReport::by_harm() const {
  std::vector<const PrunedWeight*> list;
  for (const PrunedWeight& w : weights) list.push_back(&w);
  const auto order = [](const PrunedWeight* w) {
    return std::pair(!w->is_pruned(), w->is_pruned() ? w->measure.harm_db() : 0);
  };
  std::ranges::stable_sort(list, {}, order);
  return list;
}

std::ostream& operator<<(std::ostream& out, const PruneReport& report) {
  std::vector<const PrunedWeight*> pruned = report.by_harm();
  std::erase_if(pruned, [](const PrunedWeight* w) { return !w->is_pruned(); });
  std::map<std::string, int64_t> left;  // by reason
  for (const PrunedWeight& w : report.weights)
    if (!w.is_pruned()) ++left[w.why];
  const bool has_output =
      std::ranges::any_of(pruned, [](const auto* w) { return w->measure.has_output(); });
  std::vector<std::vector<std::string>> lines = {{"zeros", "SQNR dB"}};
  if (has_output) lines[0].emplace_back("output dB");
  lines[0].insert(lines[0].end(), {"cosine", "weight, from the most harmed"});
  for (const PrunedWeight* w : pruned) {
    const Measure& m = w->measure;
    std::vector<std::string>& line = lines.emplace_back();
    line = {io::percent_text(static_cast<double>(w->zeros), static_cast<double>(w->elements)),
            number_text(m.sqnr_db(), 1)};
    if (has_output) line.push_back(m.has_output() ? number_text(m.output_sqnr_db(), 1) : "");
    std::string name = io::printable(w->path) + " " + sizes_text(w->sizes);
    if (w->zero_rows > 0)
      name += ", " + io::counted(w->zero_rows, "output") + " without any weight";
    line.insert(line.end(), {number_text(m.cosine(), 5), name});
  }
  write_table(out, lines);
  for (const auto& [why, count] : left)
    out << "  left " << io::counted(count, "weight") << ": " << io::printable(why) << '\n';
  for (const std::string& note : report.notes) out << "  " << io::printable(note) << '\n';
  print_sum(out, report);
  return out;
}

void print_sum(std::ostream& out, const PruneReport& report) {
  int64_t pruned = 0, zeros = 0, elements = 0;
  for (const PrunedWeight& w : report.weights)
    pruned += w.is_pruned(), zeros += w.zeros, elements += w.elements;
  out << "  " << report.how << ": " << io::counted(pruned, "weight") << " of "
      << report.weights.size() << ", " << zeros << " of " << elements << " elements are zero\n"
      << "  zeros take as many bytes and as much time as other numbers: no kernel skips them\n";
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
