#include "taper/exporter/roofline/multiply_adds.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>

namespace taper::roofline {
namespace {

using Names = std::initializer_list<std::string_view>;

double elements(const Sizes& s) {
  return std::accumulate(s.begin(), s.end(), 1.0, std::multiplies<>());
}
double last(const Sizes& s) { return s.empty() ? 1 : s.back(); }

/// The left matrix of a product is argument `left`.
double of_product(const Call& c, size_t left) {
  return elements(c.results[0]) * last(c.arguments[left]);
}

/// Each of `positions` elements meets one filter of the weight, which is (out or in channels, …).
double of_convolution(double positions, const Sizes& weight) {
  return weight.empty() || weight[0] == 0 ? 0 : positions * elements(weight) / weight[0];
}

/// (input, weight, …). A transposed one multiplies each input with its weights.
double of_convolution(const Call& c) {
  return of_convolution(elements(c.transposed ? c.arguments[0] : c.results[0]), c.arguments[1]);
}

/// (gradient, input, weight). The gradients of input and weight are as much work as the forward
/// pass each. That of the bias, which has one dimension, is little work.
double of_convolution_backward(const Call& c) {
  const auto products =
      std::ranges::count_if(c.results, [](const Sizes& r) { return r.size() > 1; });
  return static_cast<double>(products) *
         of_convolution(elements(c.arguments[c.transposed ? 1 : 0]), c.arguments[2]);
}

/// (query, key, value, …): each row of the query meets each row of the key, and each result each
/// row of the value.
double of_attention(const Call& c) {
  const Sizes& key = c.arguments[1];
  return key.size() < 2 ? 0
                        : key[key.size() - 2] * (elements(c.arguments[0]) + elements(c.results[0]));
}

/// A vector of weights in panels has four neighbours along the depth.
double of_bytes(const Call& c) {
  return c.arguments[1].size() < 2 ? 0 : elements(c.results[0]) * 4 * c.arguments[1][1];
}

}  // namespace

double multiply_adds(const Call& c) {
  const auto is = [&](Names names, size_t arguments) {
    return !c.results.empty() && c.arguments.size() >= arguments &&
           std::ranges::find(names, c.op) != names.end();
  };
  if (is({"mm", "bmm", "linear", "matmul", "mv", "dot", "_int_mm", "_grouped_mm",
          "taper::block_linear", "taper::block_linear_q8", "taper::grouped_block_linear",
          "taper::grouped_block_linear_q8", "taper::bmm_q8"},
         1))
    return of_product(c, 0);
  if (is({"addmm", "baddbmm", "addmv"}, 2)) return of_product(c, 1);
  if (is({"scaled_dot_product_attention", "taper::attention",
          "_scaled_dot_product_flash_attention_for_cpu"},
         3))
    return of_attention(c);
  if (is({"convolution", "taper::convolution", "taper::winograd_convolution"}, 2))
    return of_convolution(c);
  if (is({"taper::conv2d_q8", "taper::linear_q8"}, 2)) return of_bytes(c);
  if (is({"convolution_backward"}, 3)) return of_convolution_backward(c);
  return 0;
}

bool looks_up(std::string_view op) {
  constexpr std::string_view names[] = {"embedding",    "_embedding_bag", "index.Tensor",
                                        "index_select", "gather",         "taper::block_embedding"};
  return std::ranges::find(names, op) != std::end(names);
}

}  // namespace taper::roofline
