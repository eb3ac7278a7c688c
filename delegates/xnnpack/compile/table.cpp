#include "taper/delegates/xnnpack/compile/table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/scales.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

constexpr float infinity = std::numeric_limits<float>::infinity();

// ---- what rows ask ----

bool has_fixed_sizes(const Value& v) {
  return std::all_of(v.type.sizes, v.type.sizes + v.type.rank,
                     [](Dim d) { return d.is_constant(); });
}
std::vector<int64_t> sizes_of(const Value& v) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < v.type.rank; ++i) sizes.push_back(v.type.sizes[i].value());
  return sizes;
}
/// A pair from a list of two, one or no elements.
std::vector<int64_t> pair_of(const std::vector<Dim>& dims, const std::vector<int64_t>& otherwise) {
  const std::vector<int64_t> list = numbers(dims);
  if (list.empty()) return otherwise;
  return list.size() == 1 ? std::vector<int64_t>{list[0], list[0]} : list;
}
std::vector<int64_t> joined(std::initializer_list<std::vector<int64_t>> lists) {
  std::vector<int64_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}
bool is_one(const Scalar* s) { return s != nullptr && real(*s) == 1; }

// ---- convolutions ----

std::string refuses_weights(const Value* weight, const Value* bias) {
  const bool are = is_constant(weight) && (bias == nullptr || is_constant(bias));
  return are ? "" : "a weight or a bias is no constant";
}

/// Sizes of windows, and how they move: of an image, or of a line as an image of one row.
struct Windows {
  explicit Windows(const Call<ops::convolution>& c)
      : is_line(c.get<"input">()->type.rank == 3),
        strides(pair(c.get<"stride">(), 1)),
        paddings(pair(c.get<"padding">(), 0)),
        dilations(pair(c.get<"dilation">(), 1)),
        more(pair(c.get<"output_padding">(), 0)) {}
  std::vector<int64_t> pair(const std::vector<Dim>& dims, int64_t of_row) const {
    if (!is_line) return pair_of(dims, {of_row, of_row});
    return {of_row, dims.empty() ? of_row : dims[0].value()};
  }
  /// The order of a weight with the dimensions of windows in its middle.
  std::vector<int64_t> order(int64_t first, int64_t last) const {
    if (is_line) return {first, -1, 2, last};
    return {first, 2, 3, last};
  }

  bool is_line;
  std::vector<int64_t> strides, paddings, dilations, more;
};

std::string refuses_images(const Value& v) {
  if (v.type.rank == 4) return "";
  if (v.type.rank != 3) return "only images of one or two dimensions are taken";
  const bool has_one_symbol = v.type.sizes[0].is_constant() || v.type.sizes[2].is_constant();
  return has_one_symbol ? "" : "its batch and its length are symbolic";
}

std::string refuses_transposed(const Call<ops::convolution>& c) {
  if (!proves_equal(c.get<"groups">(), 1)) return "transposed convolutions of groups are not taken";
  const Windows w(c);
  const ir::Type& weight = c.get<"weight">()->type;
  for (size_t d = w.is_line ? 1 : 0; d < 2; ++d) {
    const int64_t window = weight.sizes[weight.rank - 2 + static_cast<int>(d)].value();
    if (w.more[d] >= w.strides[d]) return "its output_padding is not smaller than its stride";
    if (w.paddings[d] > w.dilations[d] * (window - 1))
      return "its padding is larger than its window";
  }
  return "";
}

std::string refuses_depthwise(const Call<ops::convolution>& c) {
  const ir::Type& weight = c.get<"weight">()->type;
  if (proves_equal(c.get<"groups">(), 1) || weight.sizes[1].value() != 1) return "";
  int64_t window = 1;
  for (int d = 2; d < weight.rank; ++d) window *= weight.sizes[d].value();
  return refuses_depthwise_window(window);
}

std::string refuses_convolution(const Node& node) {
  const Call<ops::convolution> c(node);
  for (const Value* v : {c.get<"input">(), node.result()})
    if (std::string reason = refuses_images(*v); !reason.empty()) return reason;
  std::string reason = c.get<"transposed">() ? refuses_transposed(c) : "";
  if (reason.empty()) reason = refuses_weights(c.get<"weight">(), c.get<"bias">());
  return reason.empty() ? refuses_depthwise(c) : reason;
}

void lower_transposed(Lowering& out, const Node& node) {
  const Call<ops::convolution> c(node);
  const Value* bias = c.get<"bias">();
  const Windows w(c);
  // weights are (inputs, outputs, height, width)
  const Ref filter = out.permuted(c.get<"weight">(), w.order(1, 0));
  const Ref result = out.add(Kind::deconvolution, Function::none,
                             {out.ref(c.get<"input">(), Order::channels_last), filter,
                              bias == nullptr ? Ref() : out.ref(bias)},
                             joined({w.strides, w.paddings, w.dilations, w.more}));
  out.define(node.result(), result, Order::channels_last);
}

void lower_convolution(Lowering& out, const Node& node) {
  const Call<ops::convolution> c(node);
  if (c.get<"transposed">()) return lower_transposed(out, node);
  const Value *x = c.get<"input">(), *weight = c.get<"weight">(), *bias = c.get<"bias">();
  const int64_t groups = c.get<"groups">().value(), inputs = weight->type.sizes[1].value();
  // weights are (outputs, inputs / groups, height, width)
  const bool is_depthwise = groups > 1 && inputs == 1;
  const Windows w(c);
  std::vector<int64_t> numbers = joined({w.strides, w.paddings, w.dilations});
  if (!is_depthwise) numbers.push_back(groups);
  const Ref filter = out.permuted(weight, is_depthwise ? w.order(1, 0) : w.order(0, 1));
  const Ref result =
      out.add(is_depthwise ? Kind::depthwise : Kind::convolution, Function::none,
              {out.ref(x, Order::channels_last), filter, bias == nullptr ? Ref() : out.ref(bias)},
              std::move(numbers));
  out.define(node.result(), result, Order::channels_last);
}

// ---- matrix products ----

std::string refuses_linear(const Node& node) {
  const Call<ops::linear> c(node);
  if (c.get<"weight">()->type.rank != 2) return "the weight is no matrix";
  return refuses_weights(c.get<"weight">(), c.get<"bias">());
}
void lower_linear(Lowering& out, const Node& node) {
  const Call<ops::linear> c(node);
  const Value* bias = c.get<"bias">();
  out.define(node.result(), out.add(Kind::fully_connected, Function::none,
                                    {out.ref(c.get<"input">()), out.ref(c.get<"weight">()),
                                     bias == nullptr ? Ref() : out.ref(bias)}));
}

std::string refuses_addmm(const Node& node) {
  const Call<ops::addmm> c(node);
  if (!is_one(c.get<"alpha">()) || !is_one(c.get<"beta">())) return "alpha or beta is not 1";
  if (c.get<"self">()->type.rank != 1) return "what is added is no vector";
  return refuses_weights(c.get<"mat2">(), c.get<"self">());
}
void lower_addmm(Lowering& out, const Node& node) {
  const Call<ops::addmm> c(node);
  out.define(node.result(),
             out.add(Kind::fully_connected, Function::none,
                     {out.ref(c.get<"mat1">()), out.permuted(c.get<"mat2">(), {1, 0}),
                      out.ref(c.get<"self">())}));
}

void lower_mm(Lowering& out, const Node& node) {
  const Call<ops::mm> c(node);
  const bool is_weight = is_constant(c.get<"mat2">());
  const Ref x = out.ref(c.get<"self">());
  out.define(node.result(), is_weight ? out.add(Kind::fully_connected, Function::none,
                                                {x, out.permuted(c.get<"mat2">(), {1, 0}), Ref()})
                                      : out.add(Kind::batch_matmul, Function::none,
                                                {x, out.ref(c.get<"mat2">())}));
}
void lower_bmm(Lowering& out, const Node& node) {
  const Call<ops::bmm> c(node);
  out.define(node.result(), out.add(Kind::batch_matmul, Function::none,
                                    {out.ref(c.get<"self">()), out.ref(c.get<"mat2">())}));
}

// ---- pools and reductions ----

std::string refuses_window(const std::vector<int64_t>& window, const std::vector<int64_t>& strides,
                           const std::vector<int64_t>& paddings) {
  if (window[0] * window[1] == 1) return "its window is one element";
  for (size_t d = 0; d < 2; ++d)
    if (strides[d] > window[d] || paddings[d] >= window[d])
      return "its stride or padding is larger than its window";
  return "";
}
template <const Operator& op>
std::vector<int64_t> window_of(const Call<op>& c) {
  const std::vector<int64_t> size = pair_of(c.template get<"kernel_size">(), {});
  return joined({size, pair_of(c.template get<"stride">(), size),
                 pair_of(c.template get<"padding">(), {0, 0})});
}
/// Whether the last window ends at the border, so that ceil_mode changes nothing.
bool ends_at_border(const Value& x, const Node& pool, const std::vector<int64_t>& window) {
  for (int d = 0; d < 2; ++d) {
    const Dim size = x.type.sizes[d + 2], count = pool.result()->type.sizes[d + 2];
    const auto at = static_cast<size_t>(d);
    if (!size.is_constant() || !count.is_constant() ||
        (count.value() - 1) * window[2 + at] + window[at] > size.value() + 2 * window[4 + at])
      return false;
  }
  return true;
}
template <const Operator& op>
std::string refuses_pool(const Node& node) {
  const Call<op> c(node);
  if (c.template get<"self">()->type.rank != 4) return "only batches of images are taken";
  const std::vector<int64_t> w = window_of(c);
  std::vector<int64_t> covered = w;
  if constexpr (&op == &ops::max_pool2d) {
    const std::vector<int64_t> dilation = pair_of(c.template get<"dilation">(), {1, 1});
    for (size_t d = 0; d < 2; ++d) covered[d] = dilation[d] * (w[d] - 1) + 1;
  }
  if (c.template get<"ceil_mode">() && !ends_at_border(*c.template get<"self">(), node, covered))
    return "its last window reaches beyond the image";
  return refuses_window({w[0], w[1]}, {w[2], w[3]}, {w[4], w[5]});
}
std::string refuses_avg_pool(const Node& node) {
  const Call<ops::avg_pool2d> c(node);
  const std::vector<int64_t> padding = pair_of(c.get<"padding">(), {0, 0});
  if (c.get<"divisor_override">() != nullptr) return "divisor_override is not taken";
  if (c.get<"count_include_pad">() && (padding[0] != 0 || padding[1] != 0))
    return "padding that counts is not taken";
  return refuses_pool<ops::avg_pool2d>(node);
}
void lower_max_pool(Lowering& out, const Node& node) {
  const Call<ops::max_pool2d> c(node);
  const Ref x = out.ref(c.get<"self">(), Order::channels_last);
  out.define(node.result(),
             out.add(Kind::max_pool, Function::none, {x},
                     joined({window_of(c), pair_of(c.get<"dilation">(), {1, 1})})),
             Order::channels_last);
}
void lower_avg_pool(Lowering& out, const Node& node) {
  const Call<ops::avg_pool2d> c(node);
  const Ref x = out.ref(c.get<"self">(), Order::channels_last);
  out.define(node.result(), out.add(Kind::average_pool, Function::none, {x}, window_of(c)),
             Order::channels_last);
}

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
  const bool keeps = c.template get<"keepdim">();
  const Order order = keeps ? out.natural_order(x) : Order::plain;
  if (order == Order::channels_last)
    for (int64_t& a : axes) a = place_with_channels_last(a, x->type.rank);
  std::ranges::sort(axes);
  axes.insert(axes.begin(), keeps ? 1 : 0);
  out.define(node.result(), out.add(kind, Function::none, {out.ref(x, order)}, axes), order);
}

// ---- resizing ----

/// The scale of a result that has exactly scale * size pixels is what the library computes.
bool is_ratio(const double* scale, Dim from, Dim to) {
  return scale == nullptr ||
         static_cast<double>(to.value()) == *scale * static_cast<double>(from.value());
}
std::string refuses_resize(const Node& node) {
  const Call<ops::upsample_bilinear2d> c(node);
  const Dim* from = c.get<"self">()->type.sizes + 2;
  const Dim* to = node.result()->type.sizes + 2;
  for (int d = 0; d < 2; ++d)
    if (!from[d].is_constant() || !to[d].is_constant()) return "a size of an image is symbolic";
  if (!c.get<"align_corners">() && (!is_ratio(c.get<"scales_h">(), from[0], to[0]) ||
                                    !is_ratio(c.get<"scales_w">(), from[1], to[1])))
    return "its scale is not that of its sizes";
  return "";
}
void lower_resize(Lowering& out, const Node& node) {
  const Call<ops::upsample_bilinear2d> c(node);
  const Dim* to = node.result()->type.sizes + 2;
  const Ref x = out.ref(c.get<"self">(), Order::channels_last);
  out.define(node.result(),
             out.add(Kind::resize_bilinear, Function::none, {x},
                     {to[0].value(), to[1].value(), c.get<"align_corners">() ? 1 : 0}),
             Order::channels_last);
}

// ---- pointwise ----

void lower_unary(Lowering& out, const Node& node, Function function,
                 std::vector<float> parameters = {}) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  out.define(node.result(),
             out.add(Kind::unary, function, {out.ref(x, order)}, {}, std::move(parameters)), order);
}
template <Function function>
void lower_function(Lowering& out, const Node& node) {
  lower_unary(out, node, function);
}
void lower_relu(Lowering& out, const Node& node) {
  lower_unary(out, node, Function::clamp, {0, infinity});
}

std::string refuses_bounds(const Scalar* low, const Scalar* high) {
  const double a = low == nullptr ? -infinity : real(*low),
               b = high == nullptr ? infinity : real(*high);
  if (!(static_cast<float>(a) < static_cast<float>(b))) return "its bounds leave nothing between";
  return a <= 0 && b >= 0 ? "" : "its bounds do not have 0 between them";  // see shapes.cpp
}
std::string refuses_hardtanh(const Node& node) {
  const Call<ops::hardtanh> c(node);
  return refuses_bounds(c.get<"min_val">(), c.get<"max_val">());
}
void lower_hardtanh(Lowering& out, const Node& node) {
  const Call<ops::hardtanh> c(node);
  lower_unary(out, node, Function::clamp,
              {static_cast<float>(real(*c.get<"min_val">())),
               static_cast<float>(real(*c.get<"max_val">()))});
}
std::string refuses_clamp(const Node& node) {
  const Call<ops::clamp> c(node);
  const auto is_symbolic = [](const ir::Argument& a) { return std::holds_alternative<Dim>(a); };
  if (std::ranges::any_of(node.arguments, is_symbolic)) return "a bound is symbolic";
  return refuses_bounds(c.get<"min">(), c.get<"max">());
}
void lower_clamp(Lowering& out, const Node& node) {
  const Call<ops::clamp> c(node);
  const Scalar *low = c.get<"min">(), *high = c.get<"max">();
  lower_unary(out, node, Function::clamp,
              {low == nullptr ? -infinity : static_cast<float>(real(*low)),
               high == nullptr ? infinity : static_cast<float>(real(*high))});
}
std::string refuses_gelu(const Node& node) {
  return Call<ops::gelu>(node).get<"approximate">() == "none" ? ""
                                                              : "its approximation is not taken";
}
std::string refuses_leaky_relu(const Node& node) {
  const Scalar* slope = Call<ops::leaky_relu>(node).get<"negative_slope">();
  return slope != nullptr && std::abs(real(*slope)) < 1e6 ? "" : "its slope is not taken";
}
void lower_leaky_relu(Lowering& out, const Node& node) {
  const Scalar* slope = Call<ops::leaky_relu>(node).get<"negative_slope">();
  lower_unary(out, node, Function::leaky_relu, {static_cast<float>(real(*slope))});
}
void lower_silu(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  const Ref in = out.ref(x, order), gate = out.add(Kind::unary, Function::sigmoid, {in});
  out.define(node.result(), out.add(Kind::binary, Function::multiply, {in, gate}), order);
}

/// clamp(x / 6 + 0.5, 0, 1)
void lower_hardsigmoid(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  const Ref scaled =
      out.add(Kind::binary, Function::multiply, {out.ref(x, order), out.number(1.0 / 6)});
  const Ref moved = out.add(Kind::binary, Function::add, {scaled, out.number(0.5)});
  out.define(node.result(), out.add(Kind::unary, Function::clamp, {moved}, {}, {0, 1}), order);
}

/// Whether the value can meet one of `rank` dimensions with channels last. A constant of fewer
/// dimensions can if at most one of them is not 1, for then their order does not matter.
bool fits_channels_last(const Value* v, int rank) {
  if (v->type.rank == rank) return true;
  if (!is_constant(v) || !has_fixed_sizes(*v)) return false;
  const std::vector<int64_t> s = sizes_of(*v);
  return std::ranges::count_if(s, [](int64_t n) { return n != 1; }) <= 1;
}
Ref operand_of(Lowering& out, const Value* v, Order order, int rank) {
  if (order == Order::plain || v->type.rank == rank) return out.ref(v, order);
  const std::vector<int64_t> own = sizes_of(*v);
  std::vector<int64_t> sizes(static_cast<size_t>(rank) - own.size(), 1);
  sizes.insert(sizes.end(), own.begin(), own.end());
  if (rank == 3) sizes.insert(sizes.begin() + 2, 1);  // a line has one row
  return out.reshaped(v, {sizes[0], sizes[2], sizes[3], sizes[1]});
}
void lower_binary(Lowering& out, const Node& node, Function function, const Value* a,
                  const Value* b) {
  const int rank = node.result()->type.rank;
  const bool wants_last =
      out.natural_order(a) == Order::channels_last || out.natural_order(b) == Order::channels_last;
  const bool may = fits_channels_last(a, rank) && fits_channels_last(b, rank);
  const Order order = wants_last && may ? Order::channels_last : Order::plain;
  out.define(node.result(),
             out.add(Kind::binary, function,
                     {operand_of(out, a, order, rank), operand_of(out, b, order, rank)}),
             order);
}
template <Function function>
void lower_tensors(Lowering& out, const Node& node) {
  lower_binary(out, node, function, std::get<Value*>(node.arguments[0]),
               std::get<Value*>(node.arguments[1]));
}
template <const Operator& op>
std::string refuses_alpha(const Node& node) {
  return is_one(Call<op>(node).template get<"alpha">()) ? "" : "alpha is not 1";
}
template <const Operator& op>
std::string refuses_scalar(const Node& node) {
  return Call<op>(node).template get<"other">() != nullptr ? "" : "its number is symbolic";
}
template <const Operator& op>
std::string refuses_scalar_and_alpha(const Node& node) {
  const std::string reason = refuses_scalar<op>(node);
  return reason.empty() ? refuses_alpha<op>(node) : reason;
}
template <const Operator& op, Function function>
void lower_scalar(Lowering& out, const Node& node) {
  const Call<op> c(node);
  const Value* x = c.template get<"self">();
  const Order order = out.natural_order(x);
  out.define(node.result(),
             out.add(Kind::binary, function,
                     {out.ref(x, order), out.number(real(*c.template get<"other">()))}),
             order);
}

// ---- softmax ----

std::string refuses_softmax(const Node& node) {
  const Call<ops::_softmax> c(node);
  const int rank = c.get<"self">()->type.rank;
  return axis_of(c.get<"dim">(), rank) == rank - 1
             ? ""
             : "it goes along another dimension than the last";
}
void lower_softmax(Lowering& out, const Node& node) {
  const Ref x = out.ref(Call<ops::_softmax>(node).get<"self">());
  out.define(node.result(), out.add(Kind::softmax, Function::none, {x}));
}

constexpr bool heavy = true;

const Row rows[] = {
    {&ops::convolution, refuses_convolution, lower_convolution, heavy},
    {&ops::linear, refuses_linear, lower_linear, heavy},
    {&ops::addmm, refuses_addmm, lower_addmm, heavy},
    {&ops::mm, nullptr, lower_mm, heavy},
    {&ops::bmm, nullptr, lower_bmm, heavy},
    {&ops::max_pool2d, refuses_pool<ops::max_pool2d>, lower_max_pool},
    {&ops::avg_pool2d, refuses_avg_pool, lower_avg_pool},
    {&ops::mean_dim, refuses_reduction<ops::mean_dim>, lower_reduction<ops::mean_dim, Kind::mean>},
    {&ops::sum_dim_IntList, refuses_reduction<ops::sum_dim_IntList>,
     lower_reduction<ops::sum_dim_IntList, Kind::sum>},
    {&ops::upsample_bilinear2d, refuses_resize, lower_resize},
    {&ops::relu, nullptr, lower_relu},
    {&ops::hardtanh, refuses_hardtanh, lower_hardtanh},
    {&ops::clamp, refuses_clamp, lower_clamp},
    {&ops::abs, nullptr, lower_function<Function::abs>},
    {&ops::ceil, nullptr, lower_function<Function::ceil>},
    {&ops::exp, nullptr, lower_function<Function::exp>},
    {&ops::floor, nullptr, lower_function<Function::floor>},
    {&ops::gelu, refuses_gelu, lower_function<Function::gelu>},
    {&ops::hardsigmoid, nullptr, lower_hardsigmoid},
    {&ops::hardswish, nullptr, lower_function<Function::hardswish>},
    {&ops::leaky_relu, refuses_leaky_relu, lower_leaky_relu},
    {&ops::log, nullptr, lower_function<Function::log>},
    {&ops::neg, nullptr, lower_function<Function::negate>},
    {&ops::sigmoid, nullptr, lower_function<Function::sigmoid>},
    {&ops::silu, nullptr, lower_silu},
    {&ops::sqrt, nullptr, lower_function<Function::square_root>},
    {&ops::rsqrt, nullptr, lower_function<Function::reciprocal_square_root>},
    {&ops::tanh, nullptr, lower_function<Function::tanh>},
    {&ops::add_Tensor, refuses_alpha<ops::add_Tensor>, lower_tensors<Function::add>},
    {&ops::sub_Tensor, refuses_alpha<ops::sub_Tensor>, lower_tensors<Function::subtract>},
    {&ops::mul_Tensor, nullptr, lower_tensors<Function::multiply>},
    {&ops::div_Tensor, nullptr, lower_tensors<Function::divide>},
    {&ops::maximum, nullptr, lower_tensors<Function::maximum>},
    {&ops::minimum, nullptr, lower_tensors<Function::minimum>},
    {&ops::_prelu_kernel, nullptr, lower_tensors<Function::prelu>},
    {&ops::add_Scalar, refuses_scalar_and_alpha<ops::add_Scalar>,
     lower_scalar<ops::add_Scalar, Function::add>},
    {&ops::sub_Scalar, refuses_scalar_and_alpha<ops::sub_Scalar>,
     lower_scalar<ops::sub_Scalar, Function::subtract>},
    {&ops::mul_Scalar, refuses_scalar<ops::mul_Scalar>,
     lower_scalar<ops::mul_Scalar, Function::multiply>},
    {&ops::div_Scalar, refuses_scalar<ops::div_Scalar>,
     lower_scalar<ops::div_Scalar, Function::divide>},
    {&ops::_softmax, refuses_softmax, lower_softmax},
};

}  // namespace

/// What holds for all rows: one to six dimensions, no empty tensors, sizes of images and windows
/// that are numbers.
std::string refuses_value(const Value& v) {
  if (v.type.rank > most_dimensions) return "a tensor has more than 6 dimensions";
  if (v.type.rank == 0 && !is_constant(&v)) return "a tensor has no dimensions";
  for (int i = 0; i < v.type.rank; ++i)
    if (v.type.sizes[i].lower() < 1) return "a tensor may be empty";
  return "";
}

const Row* find_row(const Operator& op) {
  for (const std::span<const Row> list : {std::span<const Row>(rows), moving_rows(), integer_rows(),
                                          rounded_rows(), attention_rows()})
    if (const auto at = std::ranges::find(list, &op, &Row::op); at != list.end()) return &*at;
  return nullptr;
}

bool is_constant(const ir::Value* value) {
  if (value->origin == Value::Origin::constant) return true;
  const Node* node = value->node;
  return node != nullptr && node->op->category == Category::view && refusal(*node).empty() &&
         is_constant(ir::viewed(*node));
}

std::string refusal(const ir::Node& node) {
  const Row* row = find_row(*node.op);
  if (row == nullptr) return "the backend has no such operator";
  std::string reason;
  const auto look_at = [&](const Value* v) {
    if (reason.empty()) reason = refuses_value(*v);
  };
  ir::for_each_value(node, look_at);
  for (const auto& r : node.results)
    if (r != nullptr) look_at(r.get());
  if (reason.empty()) reason = refuses_types(node);
  if (reason.empty() && row->refuses != nullptr) reason = row->refuses(node);
  return reason;
}

}  // namespace taper::delegates::xnnpack
