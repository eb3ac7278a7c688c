// fuse_quantized: elements, averages, softmax and products of activations.
#include <cmath>

#include "taper/exporter/passes/average_windows.h"
#include "taper/exporter/passes/integer_fuser.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

void append_numbers(std::vector<Argument>& arguments, const Quantization& from,
                    const Quantization& to) {
  for (const Quantization* q : {&from, &to}) {
    arguments.emplace_back(q->scale);
    arguments.emplace_back(Dim(q->zero_point));
  }
  arguments.emplace_back(range_of(to));
}

}  // namespace

Value* IntegerFuser::binary(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  const bool adds = node.op == &ops::add_Tensor, subtracts = node.op == &ops::sub_Tensor;
  const Scalar* alpha = adds        ? ir::Call<ops::add_Tensor>(node).get<"alpha">()
                        : subtracts ? ir::Call<ops::sub_Tensor>(node).get<"alpha">()
                                    : nullptr;
  if ((adds || subtracts) && (alpha == nullptr || alpha->to<double>() != 1))
    return decline(node, "its alpha is not 1");
  if (!is_only_here(value)) return nullptr;
  const auto a = operand(std::get<Value*>(node.arguments[0])),
             b = operand(std::get<Value*>(node.arguments[1]));
  if (!a || !b) {
    if (a || b) decline(node, "only one of its operands is de-quantized from i8");
    return nullptr;
  }
  const Operator& op = adds ? ops::taper_add_q8 : subtracts ? ops::taper_sub_q8 : ops::taper_mul_q8;
  return did(node, images_.apply(at_, a->integers, b->integers, [&](Value* x, Value* y) {
    return insert(node, op,
                  {x, y, a->numbers.scale, Dim(a->numbers.zero_point), b->numbers.scale,
                   Dim(b->numbers.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
  }));
}

Value* IntegerFuser::average(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  Value* const self = std::get<Value*>(node.arguments[0]);
  std::string why;
  const auto w = average_windows(node, self->type, why);
  if (!w) return decline(node, std::move(why));
  if (!is_only_here(value)) return nullptr;
  const auto x = operand(self);
  if (!x) return decline(node, "its input is not de-quantized from i8");
  Value* image = w->of_rows
                     ? insert(node, ops::unsqueeze, {images_.dense(at_, x->integers), Dim(1)})
                     : images_.image(at_, x->integers);
  image = insert(
      node, ops::taper_avg_pool2d_q8,
      {image, w->kernel, w->stride, w->padding, w->ceil_mode, w->counts_padding, w->divisor,
       x->numbers.scale, Dim(x->numbers.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
  if (w->keeps && !w->of_rows) return did(node, images_.seen_first(at_, image, self->type.rank));
  const ir::Type& type = value.type;
  return did(
      node, insert(node, ops::view, {image, std::vector<Dim>(type.sizes, type.sizes + type.rank)}));
}

Value* IntegerFuser::bilinear(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  const ir::Call<ops::upsample_bilinear2d> call(node);
  if (!is_only_here(value)) return nullptr;
  const auto x = operand(call.get<"self">());
  if (!x) return decline(node, "its input is not de-quantized from i8");
  std::vector<Argument> arguments = node.arguments;
  arguments[0] = images_.image(at_, x->integers);
  append_numbers(arguments, x->numbers, to);
  Value* image = insert(node, ops::taper_upsample_bilinear2d_q8, std::move(arguments));
  return did(node, images_.seen_first(at_, image, 4));
}

Value* IntegerFuser::softmax(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  const ir::Call<ops::_softmax> call(node);
  if (!is_only_here(value)) return nullptr;
  const auto x = operand(call.get<"self">());
  if (!x) return decline(node, "its input is not de-quantized from i8");
  std::vector<int32_t> exponentials;
  for (int distance = 0; distance < 256; ++distance)
    exponentials.push_back(
        static_cast<int32_t>(std::lround(std::exp(-distance * x->numbers.scale) * 0x1p30)));
  Value* table = constant("", "", exponentials, {256});
  const int64_t dim = call.get<"dim">().value(), rank = value.type.rank;
  return did(
      node,
      images_.along(at_, x->integers, dim < 0 ? dim + rank : dim, [&](Value* integers, int64_t d) {
        return insert(node, ops::taper_softmax_q8,
                      {integers, table, Dim(d), to.scale, Dim(to.zero_point), range_of(to)});
      }));
}

Value* IntegerFuser::matrices(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  const ir::Call<ops::bmm> call(node);
  if (!is_only_here(value)) return nullptr;
  const auto a = operand(call.get<"self">()), b = operand(call.get<"mat2">());
  if (!a || !b) {
    if (a || b) decline(node, "only one of its operands is de-quantized from i8");
    return nullptr;
  }
  // the kernel reads any strides of the second one
  std::vector<Argument> arguments = {images_.dense(at_, a->integers), b->integers};
  for (const Quantization* q : {&a->numbers, &b->numbers, &to}) {
    arguments.emplace_back(q->scale);
    arguments.emplace_back(Dim(q->zero_point));
  }
  arguments.emplace_back(range_of(to));
  return did(node, insert(node, ops::taper_bmm_q8, std::move(arguments)));
}

}  // namespace taper::passes
