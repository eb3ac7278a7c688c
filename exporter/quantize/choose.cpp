#include "taper/exporter/quantize/choose.h"

#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/passes.h"

namespace taper::quantize {
namespace {

constexpr int longest_padded_block = 64;

bool applies(const std::string& pattern, const Weight& w) {
  if ((pattern == "first" && w.is_first) || (pattern == "last" && w.is_last) ||
      matches(pattern, w.constant->path))
    return true;
  return std::ranges::any_of(w.readers, [&](const Reader& r) {
    return matches(pattern, r.node->module) || matches(pattern, name_of(*r.node->op));
  });
}

const BlockFormat* fitting(const Scheme& scheme, int64_t depth) {
  for (const Layout layout : scheme.layouts)
    if (const BlockFormat* f = find_format(layout); depth % f->elements == 0) return f;
  return nullptr;
}
/// The first one whose blocks are so short that rows may be padded.
const BlockFormat* fitting_with_zeros(const Scheme& scheme) {
  for (const Layout layout : scheme.layouts)
    if (const BlockFormat* f = find_format(layout); f->elements <= longest_padded_block) return f;
  return nullptr;
}

}  // namespace

const Rule* rule_for(const Recipe& recipe, const Weight& weight) {
  const auto found = std::ranges::find_if(
      recipe.rules, [&](const Rule& rule) { return applies(rule.match, weight); });
  return found == recipe.rules.end() ? nullptr : &*found;
}

void fold_batch_norms(const std::vector<ir::Graph*>& graphs, const Recipe& recipe) {
  if (std::ranges::none_of(recipe.rules, [](const Rule& rule) {
        return rule.scheme.weights == Scheme::Weights::float8 || rule.scheme.widen;
      }))
    return;
  passes::PassContext context({}, /*exact=*/false);
  for (ir::Graph* graph : graphs) {
    passes::fold_constants(*graph, context);
    passes::drop_unused_results(*graph, context);
    passes::fold_batch_norm(*graph, context);
    passes::remove_dead_code(*graph, context);
  }
}

void widen_others(const Recipe& recipe, std::vector<Weight>& weights) {
  for (Weight& w : weights) {
    const Rule* rule = rule_for(recipe, w);
    const ir::Payload& payload = *w.constant->payload;
    if (w.obstacle.empty() || rule == nullptr || !rule->scheme.widen) continue;
    // each look-up would widen all of it
    if (w.is_looked_up() || is_of_adapter(*w.constant) || payload.layout != Layout::dense ||
        payload.dtype != DType::f32 || w.graph->is_returned(w.constant->value.get()))
      continue;
    w.is_widened = true, w.is_transposed = false, w.matrices = 0;
    w.obstacle.clear();
  }
}

ChosenFormat choose_format(const Scheme& scheme, const Weight& weight) {
  ChosenFormat chosen{fitting(scheme, weight.depth()), weight.depth(), ""};
  if (chosen.format == nullptr && !weight.is_looked_up()) {
    chosen.format = fitting_with_zeros(scheme);
    const int64_t block = chosen.format == nullptr ? 1 : chosen.format->elements;
    chosen.depth = (weight.depth() + block - 1) / block * block;
  }
  const BlockFormat& named = *find_format(scheme.layouts.back());
  if (chosen.format == nullptr)
    chosen.why = "its rows are no multiple of " + std::to_string(named.elements) +
                 ", the block of " + name_of(named);
  else if (chosen.bytes(weight.rows()) >=
           static_cast<int64_t>(weight.constant->payload->size_bytes))
    chosen.format = nullptr, chosen.why = "its blocks would take no fewer bytes";
  return chosen;
}

Matrix rows_of(const Weight& weight, int64_t padded_depth) {
  const eager::NoGrad guard;
  eager::Tensor t = ir::tensor_of(weight.constant->payload);
  if (t.dtype() != DType::f32) t = t.to(DType::f32);
  const std::vector<float> elements =
      (weight.is_transposed ? t.transpose(-2, -1).contiguous() : t).to_vector<float>();
  const int64_t depth = weight.depth();
  Matrix m{weight.rows(), padded_depth, {}, padded_depth - depth};
  m.elements.resize(static_cast<size_t>(m.rows * padded_depth));
  for (int64_t r = 0; r < m.rows; ++r)
    std::copy_n(elements.begin() + r * depth, depth, m.elements.begin() + r * padded_depth);
  return m;
}

}  // namespace taper::quantize
