#include "taper/exporter/importers/pt2/high_rank.h"

#include <algorithm>
#include <numeric>

#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/importers/pt2/elementwise.h"

namespace taper::pt2 {
namespace {

using eager::Dims;

constexpr const Operator* layouts[] = {
    &ops::reshape,
    &ops::_unsafe_view,
    &ops::reshape_as,
    &ops::view_as,
    &ops::ravel,
    &ops::unsqueeze,
    &ops::flatten_using_ints,
    &ops::unflatten_int,
    &ops::squeeze,
    &ops::squeeze_dim,
    &ops::squeeze_dims,
    &ops::squeeze_copy,
    &ops::squeeze_copy_dim,
    &ops::squeeze_copy_dims,
    &ops::contiguous,
    &ops::clone,
    &ops::alias,
    &ops::detach,
    &ops::lift_fresh,
    &ops::lift_fresh_copy,
    &ops::view,
};
constexpr const Operator* permutations[] = {&ops::permute,     &ops::transpose_int,
                                            &ops::swapaxes,    &ops::mT,
                                            &ops::movedim_int, &ops::movedim_intlist};
constexpr const Operator* expansions[] = {&ops::expand, &ops::expand_as, &ops::broadcast_to};
constexpr const Operator* fills[] = {&ops::zeros,     &ops::ones,     &ops::full,
                                     &ops::new_zeros, &ops::new_ones, &ops::new_full};
struct AlongDims {
  const Operator* op;
  std::string_view parameter;
};
constexpr AlongDims along_dims[] = {
    {&ops::select_int, "dim"},
    {&ops::slice_Tensor, "dim"},
    {&ops::narrow, "dim"},
    {&ops::unbind_int, "dim"},
    {&ops::split_Tensor, "dim"},
    {&ops::split_sizes, "dim"},
    {&ops::split_with_sizes, "dim"},
    {&ops::chunk, "dim"},
    {&ops::unfold, "dimension"},
    {&ops::flip, "dims"},
    {&ops::roll, "dims"},
    {&ops::index_select, "dim"},
    {&ops::cat, "dim"},
    {&ops::stack, "dim"},
    {&ops::repeat_interleave_self_int, "dim"},
    {&ops::sum_dim_IntList, "dim"},
    {&ops::mean_dim, "dim"},
    {&ops::amax, "dim"},
    {&ops::amin, "dim"},
    {&ops::max_dim, "dim"},
    {&ops::min_dim, "dim"},
    {&ops::argmax, "dim"},
    {&ops::argmin, "dim"},
    {&ops::any_dim, "dim"},
    {&ops::all_dim, "dim"},
    {&ops::logsumexp, "dim"},
    {&ops::prod_dim_int, "dim"},
    {&ops::var_correction, "dim"},
    {&ops::var_dim, "dim"},
    {&ops::std_correction, "dim"},
    {&ops::std_dim, "dim"},
    {&ops::linalg_vector_norm, "dim"},
    {&ops::norm_ScalarOpt_dim, "dim"},
    {&ops::cumsum, "dim"},
    {&ops::cumprod, "dim"},
    {&ops::sort, "dim"},
    {&ops::topk, "dim"},
    {&ops::softmax_int, "dim"},
    {&ops::_softmax, "dim"},
    {&ops::log_softmax_int, "dim"},
    {&ops::_log_softmax, "dim"},
    {&ops::sum, ""},
    {&ops::mean, ""},
    {&ops::max, ""},
    {&ops::min, ""},
    {&ops::any, ""},
    {&ops::all, ""},
    {&ops::prod, ""},
};

template <size_t n>
bool holds(const Operator* const (&list)[n], const Operator& op) {
  return std::ranges::find(list, &op) != std::end(list);
}

bool is_one(Dim d) { return proves_equal(d, Dim(1)); }

/// `order` without dimensions of size 1, and with dimensions joined that stay side by side.
void simplify(Dims& sizes, std::vector<int64_t>& order) {
  std::vector<int64_t> kept;
  for (const int64_t d : order)
    if (!is_one(sizes[static_cast<size_t>(d)])) kept.push_back(d);
  std::vector<int64_t> firsts;  // of each group, in the order of the result
  Dims products(sizes.size(), Dim(1));
  const auto next_after = [&](int64_t d) {
    for (++d; d < static_cast<int64_t>(sizes.size()) && is_one(sizes[static_cast<size_t>(d)]);) ++d;
    return d;
  };
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool joins = i > 0 && next_after(kept[i - 1]) == kept[i];
    if (!joins) firsts.push_back(kept[i]);
    Dim& product = products[static_cast<size_t>(firsts.back())];
    product = product * sizes[static_cast<size_t>(kept[i])];
  }
  std::vector<int64_t> sorted = firsts;
  std::ranges::sort(sorted);
  Dims joined;
  for (const int64_t first : sorted) joined.push_back(products[static_cast<size_t>(first)]);
  order.clear();
  for (const int64_t first : firsts)
    order.push_back(std::ranges::lower_bound(sorted, first) - sorted.begin());
  sizes = std::move(joined);
}

/// The first `count` dimensions of `order`, then the others as they lie.
std::vector<int64_t> beginning_of(const std::vector<int64_t>& order, size_t count) {
  std::vector<int64_t> step(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  for (int64_t d = 0; d < static_cast<int64_t>(order.size()); ++d)
    if (std::ranges::find(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(count), d) ==
        step.begin() + static_cast<std::ptrdiff_t>(count))
      step.push_back(d);
  return step;
}

/// A permutation that brings as many dimensions as possible to their places, and has at most
/// max_rank dimensions when it is joined. Three dimensions always fit: they and what lies between
/// them are seven.
std::vector<int64_t> longest_step(const Dims& sizes, const std::vector<int64_t>& order) {
  for (size_t count = order.size();; --count) {
    std::vector<int64_t> step = beginning_of(order, count), joined = step;
    Dims joined_sizes = sizes;
    simplify(joined_sizes, joined);
    if (joined.size() <= static_cast<size_t>(max_rank)) return step;
  }
}

/// Permutes what has at most max_rank dimensions when it is joined.
eager::Tensor permuted_once(const eager::Tensor& elements, Dims sizes, std::vector<int64_t> order) {
  simplify(sizes, order);
  if (order.size() < 2) return elements;
  return flat(eager::permute(eager::reshape(elements, sizes), order));
}

}  // namespace

std::optional<Form> form_of(const Operator& op) {
  if (holds(layouts, op)) return Form::layout;
  if (holds(permutations, op)) return Form::permutation;
  if (holds(expansions, op)) return Form::expansion;
  if (holds(fills, op)) return Form::fill;
  if (is_elementwise(op)) return Form::broadcast;
  if (parameter_of_dims(op)) return Form::along_dims;
  return std::nullopt;
}
std::optional<std::string_view> parameter_of_dims(const Operator& op) {
  const auto* at = std::ranges::find(along_dims, &op, &AlongDims::op);
  return at == std::end(along_dims) ? std::nullopt : std::optional(at->parameter);
}

Joined join_around(const Dims& sizes, const std::vector<int64_t>& apart) {
  const auto is_apart = [&](int64_t d) { return std::ranges::find(apart, d) != apart.end(); };
  Joined joined;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (d == 0 || is_apart(d) || is_apart(d - 1)) joined.sizes.emplace_back(1);
    joined.sizes.back() = joined.sizes.back() * sizes[static_cast<size_t>(d)];
    joined.place.push_back(static_cast<int64_t>(joined.sizes.size()) - 1);
  }
  return joined;
}

std::vector<Dims> join_repeated(const std::vector<Dims>& operands, const Dims& result) {
  const size_t count = operands.size(), rank = result.size();
  std::vector<Dims> joined(count + 1);
  std::vector<bool> repeats_before;
  for (size_t d = 0; d < rank; ++d) {
    if (is_one(result[d])) continue;
    std::vector<bool> repeats;
    for (const Dims& sizes : operands) {
      const size_t missing = rank - sizes.size();
      repeats.push_back(d < missing || is_one(sizes[d - missing]));
    }
    if (joined.back().empty() || repeats != repeats_before)
      for (Dims& sizes : joined) sizes.emplace_back(1);
    for (size_t i = 0; i < count; ++i)
      if (!repeats[i]) joined[i].back() = joined[i].back() * result[d];
    joined.back().back() = joined.back().back() * result[d];
    repeats_before = std::move(repeats);
  }
  return joined;
}

Dim product(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Dim(1),
                         [](const Dim& a, const Dim& b) { return a * b; });
}

HighRank permuted(HighRank value, std::vector<int64_t> order) {
  Dims sizes;
  for (const int64_t d : order) sizes.push_back(value.sizes[static_cast<size_t>(d)]);
  simplify(value.sizes, order);
  while (!std::ranges::is_sorted(order)) {
    const std::vector<int64_t> step = longest_step(value.sizes, order);
    value.elements = permuted_once(value.elements, value.sizes, step);
    Dims moved;
    std::vector<int64_t> rest;
    for (const int64_t d : step) moved.push_back(value.sizes[static_cast<size_t>(d)]);
    for (const int64_t d : order) rest.push_back(std::ranges::find(step, d) - step.begin());
    value.sizes = std::move(moved), order = std::move(rest);
    simplify(value.sizes, order);
  }
  return {value.elements, sizes};
}

eager::Tensor flat(const eager::Tensor& tensor) {
  return eager::reshape(tensor, {product(tensor.sizes())});
}

}  // namespace taper::pt2
