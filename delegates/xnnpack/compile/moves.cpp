// Rows of what moves elements, in f32 or in integers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {
namespace moving {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

/// The order of a copy.
std::vector<int64_t> same_order(int rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::string refuses_cat(const Node& node) {
  const auto& list = Call<ops::cat>(node).get<"tensors">();
  if (list.empty()) return "it joins no tensors";
  if (node.result()->type.dtype == DType::i8 && list.size() > static_cast<size_t>(most_inputs))
    return "it joins more than 5 tensors of integers";
  const int rank = node.result()->type.rank;
  const auto differs = [&](const Value* v) { return v->type.rank != rank; };
  return std::ranges::any_of(list, differs) ? "the ranks differ" : "";
}
void lower_cat(Lowering& out, const Node& node) {
  const Call<ops::cat> c(node);
  const auto& list = c.get<"tensors">();
  const auto is_last = [&](const Value* v) { return out.natural_order(v) == Order::channels_last; };
  const Order order = std::ranges::any_of(list, is_last) ? Order::channels_last : Order::plain;
  std::vector<Ref> inputs;
  for (const Value* v : list) inputs.push_back(out.ref(v, order));
  const int rank = node.result()->type.rank;
  int64_t axis = axis_of(c.get<"dim">(), rank);
  if (order == Order::channels_last) axis = place_with_channels_last(axis, rank);
  Ref result = out.joined(inputs, axis);
  if (inputs.size() == 1 && out.is_output(node.result())) {
    const int dimensions = rank == 3 && order == Order::channels_last ? 4 : rank;
    result = out.add(Kind::transpose, Function::none, {result}, same_order(dimensions));
  }
  out.define(node.result(), result, order);
}

std::string refuses_reshape(const Node& node) {
  const Value& result = *node.result();
  int open = 0;
  for (int i = 0; i < result.type.rank; ++i) open += !result.type.sizes[i].is_constant();
  return open > 1 ? "it has more than one symbolic size" : "";
}
/// Whether one is a line and the other the image of one row that it is.
bool are_line_and_image(const Value& a, const Value& b) {
  const ir::Type &line = a.type.rank == 3 ? a.type : b.type,
                 &image = a.type.rank == 3 ? b.type : a.type;
  return line.rank == 3 && image.rank == 4 && proves_equal(image.sizes[2], 1) &&
         proves_equal(image.sizes[0], line.sizes[0]) &&
         proves_equal(image.sizes[1], line.sizes[1]) && proves_equal(image.sizes[3], line.sizes[2]);
}
void lower_reshape(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Value& result = *node.result();
  if (are_line_and_image(*x, result) && out.natural_order(x) == Order::channels_last)
    return out.define(&result, out.ref(x, Order::channels_last), Order::channels_last);
  std::vector<int64_t> sizes;
  for (int i = 0; i < result.type.rank; ++i)
    sizes.push_back(result.type.sizes[i].is_constant() ? result.type.sizes[i].value() : 0);
  // an image or a volume of one pixel lies the same way in both orders
  const bool is_pixel =
      x->type.rank > 3 && std::all_of(x->type.sizes + 2, x->type.sizes + x->type.rank,
                                      [](Dim d) { return proves_equal(d, 1); });
  const Ref in = out.ref(x, is_pixel ? out.natural_order(x) : Order::plain);
  out.define(&result, out.add(Kind::reshape, Function::none, {in}, std::move(sizes)));
}

/// Whether the order brings an image or a volume with channels last into plain order.
bool ends_channels_last(const std::vector<int64_t>& order) {
  const auto rank = static_cast<int64_t>(order.size());
  if (rank < 4 || rank > 5 || order[0] != 0 || order[1] != rank - 1) return false;
  for (size_t d = 2; d < order.size(); ++d)
    if (order[d] != static_cast<int64_t>(d) - 1) return false;
  return true;
}
/// A transpose, unless the elements lie so already.
void lower_order(Lowering& out, const Node& node, std::vector<int64_t> order) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const int rank = x->type.rank;
  if (ends_channels_last(order) && out.natural_order(x) == Order::plain)
    return out.define(node.result(), out.ref(x), Order::channels_last);
  const Order from = rank == 3 ? Order::plain : out.natural_order(x);
  if (from == Order::channels_last)
    for (int64_t& d : order) d = place_with_channels_last(d, rank);
  const Ref in = out.ref(x, from);
  const bool is_copy = order == same_order(rank) && !out.is_output(node.result());
  out.define(node.result(), is_copy ? in : out.add(Kind::transpose, Function::none, {in}, order));
}
void lower_clone(Lowering& out, const Node& node) {
  const Value* x = Call<ops::clone>(node).get<"self">();
  if (out.is_output(node.result())) return lower_order(out, node, same_order(x->type.rank));
  const Order order = out.natural_order(x);
  out.define(node.result(), out.ref(x, order), order);
}

void lower_permute(Lowering& out, const Node& node) {
  const Call<ops::permute> c(node);
  std::vector<int64_t> order;
  for (const Dim d : c.get<"dims">()) order.push_back(axis_of(d, c.get<"self">()->type.rank));
  lower_order(out, node, std::move(order));
}
void lower_transpose(Lowering& out, const Node& node) {
  const Call<ops::transpose_int> c(node);
  const int rank = c.get<"self">()->type.rank;
  std::vector<int64_t> order = same_order(rank);
  if (rank > 0)
    std::swap(order[static_cast<size_t>(axis_of(c.get<"dim0">(), rank))],
              order[static_cast<size_t>(axis_of(c.get<"dim1">(), rank))]);
  lower_order(out, node, std::move(order));
}

std::string refuses_slice(const Node& node) {
  const Call<ops::slice_Tensor> c(node);
  const Value* x = c.get<"self">();
  const int axis = static_cast<int>(axis_of(c.get<"dim">(), x->type.rank));
  const Dim* start = c.get<"start">();
  if (!proves_equal(c.get<"step">(), 1)) return "its step is not 1";
  if (!x->type.sizes[axis].is_constant() || !node.result()->type.sizes[axis].is_constant() ||
      (start != nullptr && !start->is_constant()))
    return "its bounds are symbolic";
  return "";
}
/// Numbers for each dimension, twice: as the library wants them for a value in this order. A line
/// with channels last has one dimension more.
struct TwoLists {
  TwoLists(int rank, Order order)
      : rank(rank),
        order(order),
        count(rank == 3 && order == Order::channels_last ? 4 : rank),
        list(static_cast<size_t>(2 * count)) {}
  void set(int64_t dimension, int64_t first, int64_t second) {
    if (order == Order::channels_last) dimension = place_with_channels_last(dimension, rank);
    list[static_cast<size_t>(dimension)] = first;
    list[static_cast<size_t>(dimension + count)] = second;
  }
  int rank;
  Order order;
  int64_t count;
  std::vector<int64_t> list;
};

void lower_slice(Lowering& out, const Node& node) {
  const Call<ops::slice_Tensor> c(node);
  const Value* x = c.get<"self">();
  const int64_t axis = axis_of(c.get<"dim">(), x->type.rank);
  const int64_t extent = x->type.sizes[axis].value();
  const Dim* given = c.get<"start">();
  int64_t start = given == nullptr ? 0 : given->value();
  start = std::clamp<int64_t>(start < 0 ? start + extent : start, 0, extent);
  const Order order = out.natural_order(x);
  TwoLists bounds(x->type.rank, order);
  bounds.set(axis, start, node.result()->type.sizes[axis].value());
  out.define(node.result(),
             out.add(Kind::slice, Function::none, {out.ref(x, order)}, std::move(bounds.list)),
             order);
}

std::string refuses_pad(const Node& node) {
  const Call<ops::constant_pad_nd> c(node);
  const auto& pad = c.get<"pad">();
  if (!are_fixed(pad)) return "a padding is symbolic";
  if (c.get<"value">() == nullptr) return "its number is symbolic";
  if (std::isnan(real(*c.get<"value">()))) return "its number is NaN";
  const auto is_negative = [](Dim d) { return d.value() < 0; };
  return std::ranges::any_of(pad, is_negative) ? "a padding is negative"
                                               : refuses_steps(numbers(pad));
}
/// The library rounds a number to an integer of the tensor.
float pad_value(const Value& x, double value) {
  if (x.type.dtype != DType::i8) return static_cast<float>(value);
  const Scale s = scale_of(x).value_or(Scale());
  return s.scale * static_cast<float>(value - s.zero_point);
}
void lower_pad(Lowering& out, const Node& node) {
  const Call<ops::constant_pad_nd> c(node);
  const Value* x = c.get<"self">();
  const std::vector<int64_t> pad = numbers(c.get<"pad">());  // of the last dimension first
  const Order order = out.natural_order(x);
  TwoLists borders(x->type.rank, order);
  for (size_t i = 0; i < pad.size() / 2; ++i)
    borders.set(x->type.rank - 1 - static_cast<int64_t>(i), pad[2 * i], pad[2 * i + 1]);
  out.define(node.result(),
             out.add(Kind::pad, Function::none, {out.ref(x, order)}, std::move(borders.list),
                     {pad_value(*x, real(*c.get<"value">()))}),
             order);
}

const Row rows[] = {
    {&ops::cat, refuses_cat, lower_cat},
    {&ops::view, refuses_reshape, lower_reshape},
    {&ops::unsqueeze, refuses_reshape, lower_reshape},
    {&ops::squeeze_dim, refuses_reshape, lower_reshape},
    {&ops::clone, nullptr, lower_clone},
    {&ops::permute, nullptr, lower_permute},
    {&ops::transpose_int, nullptr, lower_transpose},
    {&ops::slice_Tensor, refuses_slice, lower_slice},
    {&ops::constant_pad_nd, refuses_pad, lower_pad},
};

}  // namespace
}  // namespace moving

std::span<const Row> moving_rows() { return moving::rows; }

}  // namespace taper::delegates::xnnpack
