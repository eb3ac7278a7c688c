#include "taper/exporter/quantize/choose.h"

#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::quantize {
namespace {

constexpr int64_t padded_block = 32;

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
    if (const BlockFormat* f = find_format(layout); f->elements == padded_block) return f;
  return nullptr;
}

}  // namespace

const Rule* rule_for(const Recipe& recipe, const Weight& weight) {
  const auto found = std::ranges::find_if(
      recipe.rules, [&](const Rule& rule) { return applies(rule.match, weight); });
  return found == recipe.rules.end() ? nullptr : &*found;
}

ChosenFormat choose_format(const Scheme& scheme, const Weight& weight) {
  ChosenFormat chosen{fitting(scheme, weight.depth()), weight.depth(), ""};
  if (chosen.format == nullptr && !weight.is_looked_up()) {
    chosen.format = fitting_with_zeros(scheme);
    chosen.depth = (weight.depth() + padded_block - 1) / padded_block * padded_block;
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
      (weight.is_transposed ? t.t().contiguous() : t).to_vector<float>();
  const int64_t depth = weight.depth();
  Matrix m{weight.rows(), padded_depth, {}, padded_depth - depth};
  m.elements.resize(static_cast<size_t>(m.rows * padded_depth));
  for (int64_t r = 0; r < m.rows; ++r)
    std::copy_n(elements.begin() + r * depth, depth, m.elements.begin() + r * padded_depth);
  return m;
}

}  // namespace taper::quantize
