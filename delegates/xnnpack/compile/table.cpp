#include "taper/delegates/xnnpack/compile/table.h"

#include <algorithm>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/scales.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

// ---- matrix products ----

/// Whether it has one element for each output. The library repeats none.
bool is_bias(const Value& v, Dim outputs) {
  return v.type.rank == 1 && proves_equal(v.type.sizes[0], outputs);
}

std::string refuses_linear(const Node& node) {
  const Call<ops::linear> c(node);
  const Value &weight = *c.get<"weight">(), *bias = c.get<"bias">();
  if (weight.type.rank != 2) return "the weight is no matrix";
  if (bias != nullptr && !is_bias(*bias, weight.type.sizes[0]))
    return "the bias is no number for each output";
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
  if (!is_bias(*c.get<"self">(), c.get<"mat2">()->type.sizes[1]))
    return "what is added is no number for each column";
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

std::string refuses_baddbmm(const Node& node) {
  const Call<ops::baddbmm> c(node);
  return is_one(c.get<"alpha">()) && is_one(c.get<"beta">()) ? "" : "alpha or beta is not 1";
}
void lower_baddbmm(Lowering& out, const Node& node) {
  const Call<ops::baddbmm> c(node);
  const Ref product = out.add(Kind::batch_matmul, Function::none,
                              {out.ref(c.get<"batch1">()), out.ref(c.get<"batch2">())});
  out.define(node.result(),
             out.add(Kind::binary, Function::add, {product, out.ref(c.get<"self">())}));
}

std::string refuses_grouped(const Node& node) {
  const Call<ops::_grouped_mm> c(node);
  if (c.get<"self">()->type.rank != 2 || c.get<"mat2">()->type.rank != 3)
    return "its groups are no ranges of rows";
  if (!is_constant(c.get<"mat2">())) return "its matrices are no constants";
  if (is_constant(c.get<"self">()) || is_constant(c.get<"offs">()))
    return "its rows or their ends are constants";
  return c.get<"mat2">()->type.sizes[0].value() > most_groups ? "it has more than 4096 groups" : "";
}
void lower_grouped(Lowering& out, const Node& node) {
  const Call<ops::_grouped_mm> c(node);
  const Value* ends = c.get<"offs">();
  out.define(node.result(), out.add(Kind::grouped_product, Function::none,
                                    {out.ref(c.get<"self">()), out.ref(ends),
                                     out.permuted(c.get<"mat2">(), {0, 2, 1})},
                                    {ends->type.dtype == DType::i32 ? 32 : 64}));
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
    {&ops::linear, refuses_linear, lower_linear, heavy},
    {&ops::addmm, refuses_addmm, lower_addmm, heavy},
    {&ops::mm, nullptr, lower_mm, heavy},
    {&ops::bmm, nullptr, lower_bmm, heavy},
    {&ops::baddbmm, refuses_baddbmm, lower_baddbmm, heavy},
    {&ops::_grouped_mm, refuses_grouped, lower_grouped, heavy},
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
  for (const std::span<const Row> list :
       {std::span<const Row>(rows), convolution_rows(), pool_rows(), volume_rows(), resizing_rows(),
        pointwise_rows(), moving_rows(), integer_rows(), rounded_rows(), attention_rows()})
    if (const auto at = std::ranges::find(list, &op, &Row::op); at != list.end()) return &*at;
  return nullptr;
}

std::string refuses_weights(const Value* weight, const Value* bias) {
  const bool are = is_constant(weight) && (bias == nullptr || is_constant(bias));
  return are ? "" : "a weight or a bias is no constant";
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
  look_at(node.result());  // parts compute the first result alone
  if (reason.empty() && row->refuses != nullptr) reason = row->refuses(node);
  return reason.empty() ? refuses_types(node) : reason;
}

}  // namespace taper::delegates::xnnpack
