// Sums, means and maxima of rows that indices select.
#include <algorithm>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// Calls `_embedding_bag` for a row that has the same arguments except the padding.
template <const Operator& op>
Results bags(const Arguments<op>& a, int64_t padding_idx) {
  const std::optional<Tensor> weights =
      a.template has<"per_sample_weights">()
          ? std::optional(a.template tensor<"per_sample_weights">())
          : std::nullopt;
  auto [result, bag, sizes, maxima] = call<ops::_embedding_bag>(
      a.template tensor<"weight">(), a.template tensor<"indices">(), a.template tensor<"offsets">(),
      a.template boolean<"scale_grad_by_freq">(), a.template integer<"mode">(),
      a.template boolean<"sparse">(), weights, a.template boolean<"include_last_offset">(),
      padding_idx);
  return {result, bag, sizes, maxima};
}

}  // namespace

// For gradients, and for dtypes that the kernel does not take. Rows are looked up, and then added
// to their bags (or compared in them). The last three results are those that PyTorch keeps for its
// backward pass; bag sizes take the place of the positions of maxima.
TAPER_DECOMPOSITION(_embedding_bag) {
  const Tensor weight = a.tensor<"weight">(), indices = cast(a.tensor<"indices">(), DType::i64);
  Tensor offsets = cast(a.tensor<"offsets">(), DType::i64);
  const int64_t mode = a.integer<"mode">(), padding = a.integer<"padding_idx">();
  if (is_floating(a.tensor<"indices">().dtype()) || is_floating(a.tensor<"offsets">().dtype()))
    throw EagerError("_embedding_bag: indices and offsets must be i64 or i32");
  if (weight.rank() != 2 || indices.rank() != 1 || offsets.rank() != 1)
    throw EagerError(
        "_embedding_bag: needs a weight (words, features) and vectors of indices "
        "and offsets, not " +
        to_string(weight.sizes()) + ", " + to_string(indices.sizes()) + " and " +
        to_string(offsets.sizes()));
  if (mode < 0 || mode > 2)
    throw EagerError("_embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), not " +
                     std::to_string(mode));
  if (a.has<"per_sample_weights">() && mode != 0)
    throw EagerError("_embedding_bag: per_sample_weights need mode 0 (sum)");
  if (a.has<"per_sample_weights">() &&
      !same_sizes(a.tensor<"per_sample_weights">().sizes(), indices.sizes()))
    throw EagerError("_embedding_bag: per_sample_weights " +
                     to_string(a.tensor<"per_sample_weights">().sizes()) +
                     " must have the size of indices " + to_string(indices.sizes()));
  if (!offsets.is_traced() && indices.size(0).is_constant()) {
    const std::vector<int64_t> starts = offsets.to_vector<int64_t>();
    const int64_t count = indices.size(0).value();
    const bool closed = a.boolean<"include_last_offset">();
    if (!std::is_sorted(starts.begin(), starts.end()) || (!starts.empty() && starts[0] != 0) ||
        (!starts.empty() && starts.back() > count) || (starts.empty() && (closed || count > 0)) ||
        (closed && starts.back() != count))
      throw EagerError("_embedding_bag: offsets must begin with 0, ascend, and end at " +
                       std::string(closed ? "" : "or before ") + std::to_string(count) +
                       ", the number of indices");
  }
  if (a.boolean<"include_last_offset">()) offsets = slice(offsets, 0, Dim(0), offsets.size(0) - 1);
  const Dim bags = offsets.size(0), features = weight.size(1);
  const Tensor bag = sub(searchsorted(offsets, positions(indices.size(0)), true), 1);
  Tensor rows = embedding(weight, indices, -1, a.boolean<"scale_grad_by_freq">());
  if (a.has<"per_sample_weights">())
    rows = mul(rows, unsqueeze(a.tensor<"per_sample_weights">(), -1));
  Tensor counted = ones_like(indices, DType::i64);
  if (padding >= 0) {
    const Tensor skipped = eq(indices, Scalar(padding));
    counted = to(logical_not(skipped), DType::i64);
    rows = masked_fill(rows, unsqueeze(skipped, -1),
                       mode == 2 ? Scalar(-std::numeric_limits<double>::infinity()) : Scalar(0));
  }
  const Tensor sizes = index_add(zeros({bags}, DType::i64), 0, bag, counted);
  const Tensor none = unsqueeze(eq(sizes, 0), -1);
  const Tensor nothing = zeros({bags, features}, weight.dtype());
  Tensor result = mode == 2 ? index_reduce(nothing, 0, bag, rows, "amax", false)
                            : index_add(nothing, 0, bag, rows);
  if (mode == 1) result = div(result, to(unsqueeze(clamp_min(sizes, 1), -1), weight.dtype()));
  if (mode == 2) result = masked_fill(result, none, 0);
  return {result, bag, sizes, sizes};
}
TAPER_DECOMPOSITION(embedding_bag) { return bags(a, -1); }
TAPER_DECOMPOSITION(embedding_bag_padding_idx) {
  if (!a.has<"padding_idx">()) return bags(a, -1);
  const int64_t words = a.tensor<"weight">().size(0).value(), padding = a.integer<"padding_idx">();
  if (padding < -words || padding >= words)
    throw EagerError("embedding_bag: padding_idx " + std::to_string(padding) + " is outside [" +
                     std::to_string(-words) + ", " + std::to_string(words) + ")");
  return bags(a, padding < 0 ? padding + words : padding);
}

}  // namespace taper::eager::decompositions
