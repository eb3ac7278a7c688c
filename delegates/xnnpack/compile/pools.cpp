// Rows of pools and of reductions.
#include <algorithm>
#include <limits>
#include <optional>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace pooling {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;
constexpr float infinity = std::numeric_limits<float>::infinity();

// ---- pools ----

template <const Operator& op>
std::vector<int64_t> window_of(const Call<op>& c) {
  const std::vector<int64_t> size = pair_of(c.template get<"kernel_size">(), {});
  return joined({size, pair_of(c.template get<"stride">(), size),
                 pair_of(c.template get<"padding">(), {0, 0})});
}
/// Windows are sizes[2] strides[2] paddings[2].
std::string refuses_window(const std::vector<int64_t>& w) {
  if (std::string reason = refuses_steps(w); !reason.empty()) return reason;
  if (w[0] * w[1] > most_step) return "its window has more than 32768 elements";
  for (size_t d = 0; d < 2; ++d)
    if (w[2 + d] > w[d] || w[4 + d] >= w[d])
      return "its stride or padding is larger than its window";
  return "";
}
/// How far the last windows reach beyond the border; nothing: a size is symbolic. `covered` is what
/// a window covers with its dilation.
std::optional<std::vector<int64_t>> beyond_border(const Value& x, const Node& pool,
                                                  const std::vector<int64_t>& window,
                                                  const std::vector<int64_t>& covered) {
  std::vector<int64_t> beyond;
  for (int d = 0; d < 2; ++d) {
    const Dim size = x.type.sizes[d + 2], count = pool.result()->type.sizes[d + 2];
    const auto at = static_cast<size_t>(d);
    if (!size.is_constant() || !count.is_constant()) return {};
    const int64_t end = (count.value() - 1) * window[2 + at] + covered[at];
    beyond.push_back(std::max<int64_t>(0, end - size.value() - 2 * window[4 + at]));
  }
  return beyond;
}

/// Images with a border of a number.
Ref padded(Lowering& out, Ref images, const std::vector<int64_t>& before,
           const std::vector<int64_t>& behind, float number) {
  return out.add(Kind::pad, Function::none, {images},
                 {0, before[0], before[1], 0, 0, behind[0], behind[1], 0}, {number});
}

bool is_a_pixel(const std::vector<int64_t>& window) { return window[0] * window[1] == 1; }

// ---- max pools ----

struct MaxPool {
  explicit MaxPool(const Node& node) {
    const Call<ops::max_pool2d> c(node);
    x = c.get<"self">();
    window = window_of(c), dilation = pair_of(c.get<"dilation">(), {1, 1});
    std::vector<int64_t> covered;
    for (size_t d = 0; d < 2; ++d) covered.push_back(dilation[d] * (window[d] - 1) + 1);
    beyond = std::vector<int64_t>{0, 0};
    if (c.get<"ceil_mode">()) beyond = beyond_border(*x, node, window, covered);
  }
  const Value* x;
  std::vector<int64_t> window, dilation;
  std::optional<std::vector<int64_t>> beyond;
};

std::string refuses_max_pool(const Node& node) {
  const MaxPool p(node);
  if (p.x->type.rank != 4) return "only batches of images are taken";
  if (!p.beyond) return "its windows are rounded up, and a size is symbolic";
  const std::vector<int64_t> border = {p.window[4] + (*p.beyond)[0], p.window[5] + (*p.beyond)[1]};
  const std::string reason = refuses_steps(joined({p.window, p.dilation, border}));
  if (!reason.empty()) return reason;
  if (is_a_pixel(p.window)) return p.x->type.sizes[1].is_constant() ? "" : "a size is symbolic";
  return refuses_window(p.window);
}
void lower_max_pool(Lowering& out, const Node& node) {
  MaxPool p(node);
  Ref x = out.ref(p.x, Order::channels_last);
  if (is_a_pixel(p.window)) {  // some pixels, each times 1
    const int64_t channels = p.x->type.sizes[1].value();
    const Ref ones =
        out.constant(std::vector<float>(static_cast<size_t>(channels), 1.0f), {1, 1, 1, channels});
    x = out.add(Kind::depthwise, Function::none, {x, ones, Ref()},
                {p.window[2], p.window[3], 0, 0, 1, 1});
    return out.define(node.result(), x, Order::channels_last);
  }
  if ((*p.beyond)[0] + (*p.beyond)[1] > 0) {
    int64_t *paddings = &p.window[4], *more = p.beyond->data();
    x = padded(out, x, {paddings[0], paddings[1]}, {paddings[0] + more[0], paddings[1] + more[1]},
               -infinity);
    paddings[0] = paddings[1] = 0;
  }
  out.define(node.result(),
             out.add(Kind::max_pool, Function::none, {x}, joined({p.window, p.dilation})),
             Order::channels_last);
}

// ---- average pools ----

std::string refuses_avg_pool(const Node& node) {
  const Call<ops::avg_pool2d> c(node);
  const Value& x = *c.get<"self">();
  if (x.type.rank != 4) return "only batches of images are taken";
  if (c.get<"divisor_override">() != nullptr) return "divisor_override is not taken";
  const std::vector<int64_t> w = window_of(c);
  if (c.get<"ceil_mode">() &&
      beyond_border(x, node, w, w).value_or(w) != std::vector<int64_t>{0, 0})
    return "its last window reaches beyond the image";
  return is_a_pixel(w) ? "its window is one element" : refuses_window(w);
}
void lower_avg_pool(Lowering& out, const Node& node) {
  const Call<ops::avg_pool2d> c(node);
  std::vector<int64_t> w = window_of(c);
  Ref x = out.ref(c.get<"self">(), Order::channels_last);
  if (c.get<"count_include_pad">() && w[4] + w[5] > 0) {
    x = padded(out, x, {w[4], w[5]}, {w[4], w[5]}, 0);
    w[4] = w[5] = 0;
  }
  out.define(node.result(), out.add(Kind::average_pool, Function::none, {x}, w),
             Order::channels_last);
}

/// The window of an adaptive pool of lines or images: it divides the size; none: it does not.
template <const Operator& op>
std::vector<int64_t> divided_window(const Node& node) {
  const Value &x = *Call<op>(node).template get<"self">(), &y = *node.result();
  std::vector<int64_t> window;
  for (int d = 2; d < x.type.rank; ++d) {
    const Dim from = x.type.sizes[d], to = y.type.sizes[d];
    if (!from.is_constant() || !to.is_constant() || from.value() % to.value() != 0) return {};
    window.push_back(from.value() / to.value());
  }
  if (window.size() == 1) window.insert(window.begin(), 1);  // a line has one row
  return window;
}
template <const Operator& op, int rank>
std::string refuses_adaptive(const Node& node) {
  if (Call<op>(node).template get<"self">()->type.rank != rank)
    return rank == 3 ? "only batches of lines are taken" : "only batches of images are taken";
  const std::vector<int64_t> window = divided_window<op>(node);
  if (window.empty()) return "its windows are not of one size";
  return refuses_window(joined({window, window, {0, 0}}));
}
template <const Operator& op>
void lower_adaptive(Lowering& out, const Node& node) {
  const Value* x = Call<op>(node).template get<"self">();
  const std::vector<int64_t> window = divided_window<op>(node);
  const Ref in = out.ref(x, Order::channels_last);
  if (!is_a_pixel(window))
    return out.define(
        node.result(),
        out.add(Kind::average_pool, Function::none, {in}, joined({window, window, {0, 0}})),
        Order::channels_last);
  const Ref same = out.is_output(node.result())
                       ? out.add(Kind::transpose, Function::none, {in}, {0, 1, 2, 3})
                       : in;
  out.define(node.result(), same, Order::channels_last);
}

// ---- reductions ----

template <const Operator& op>
std::string refuses_reduction(const Node& node) {
  const Call<op> c(node);
  const std::vector<Dim>* dims = c.template get<"dim">();
  return dims == nullptr || dims->empty() ? "it has no list of dimensions" : "";
}
template <const Operator& op, Kind kind>
void lower_reduction(Lowering& out, const Node& node) {
  const Call<op> c(node);
  const Value* x = c.template get<"self">();
  std::vector<int64_t> axes;
  for (const Dim d : *c.template get<"dim">()) axes.push_back(axis_of(d, x->type.rank));
  const int rank = x->type.rank;
  const bool keeps = c.template get<"keepdim">();
  // what is left of (batch, channels) lies the same way in both orders
  const bool leaves_no_pixel =
      std::ranges::count_if(axes, [](int64_t a) { return a > 1; }) == std::max(rank - 2, 0);
  const Order order = keeps || leaves_no_pixel ? out.natural_order(x) : Order::plain;
  if (order == Order::channels_last) {
    const bool is_line = rank == 3 && !keeps;  // its only row goes, too
    for (int64_t& a : axes) a = place_with_channels_last(a, rank);
    if (is_line) axes.push_back(1);
  }
  std::ranges::sort(axes);
  axes.insert(axes.begin(), keeps ? 1 : 0);
  out.define(node.result(), out.add(kind, Function::none, {out.ref(x, order)}, axes),
             keeps ? order : Order::plain);
}

const Row rows[] = {
    {&ops::max_pool2d, refuses_max_pool, lower_max_pool},
    {&ops::avg_pool2d, refuses_avg_pool, lower_avg_pool},
    {&ops::adaptive_avg_pool1d, refuses_adaptive<ops::adaptive_avg_pool1d, 3>,
     lower_adaptive<ops::adaptive_avg_pool1d>},
    {&ops::_adaptive_avg_pool2d, refuses_adaptive<ops::_adaptive_avg_pool2d, 4>,
     lower_adaptive<ops::_adaptive_avg_pool2d>},
    {&ops::mean_dim, refuses_reduction<ops::mean_dim>, lower_reduction<ops::mean_dim, Kind::mean>},
    {&ops::sum_dim_IntList, refuses_reduction<ops::sum_dim_IntList>,
     lower_reduction<ops::sum_dim_IntList, Kind::sum>},
};

}  // namespace
}  // namespace pooling

std::span<const Row> pool_rows() { return pooling::rows; }

}  // namespace taper::delegates::xnnpack
