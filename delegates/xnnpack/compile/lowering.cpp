#include "taper/delegates/xnnpack/compile/lowering.h"

#include <algorithm>
#include <cstring>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::delegates::xnnpack {
namespace {

const std::vector<int64_t> of_line = {0, -1, 2, 1}, turned_line = {0, 2, 1};

/// The orders of an image or a volume: (0, 2, …, 1) and (0, last, 1, …).
std::vector<int64_t> to_channels_last(int rank) {
  std::vector<int64_t> order = {0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
std::vector<int64_t> to_plain(int rank) {
  std::vector<int64_t> order = {0, rank - 1};
  for (int d = 1; d < rank - 1; ++d) order.push_back(d);
  return order;
}

/// See Lowering::permuted.
eager::Tensor reordered(const eager::Tensor& x, const std::vector<int64_t>& order) {
  eager::Ints dims;
  eager::Dims sizes;
  for (const int64_t d : order) {
    sizes.push_back(d < 0 ? Dim(1) : x.size(d));
    if (d >= 0) dims.push_back(d);
  }
  return eager::reshape(eager::permute(x, dims), sizes);
}

/// The constant that a value shows, through views.
std::string path_of(const ir::Graph& body, const ir::Value* value) {
  const ir::Value* base = ir::base_of(value);
  for (const ir::Constant& c : body.constants())
    if (c.value.get() == base) return c.path;
  return "";
}

}  // namespace

Lowering::Lowering(const ir::Graph& body) : body_(body), values_(body) {
  uint32_t index = 0;
  for (const ir::Input& input : body.inputs())
    define(input.value.get(), {Ref::Kind::operand, index++});
}

void Lowering::define(const ir::Value* value, Ref ref, Order order) {
  refs_[{value, order}] = ref;
  note_scale(value, ref);
}

void Lowering::note_scale(const ir::Value* value, Ref ref) {
  if (value->type.dtype != DType::i8) return;
  integers_.push_back({ref, 8, scale_of(*value).value_or(Scale()), Ref(), 0});
}

void Lowering::give_scales(Ref constant, uint8_t bits, Ref scales, uint8_t channel,
                           uint32_t block) {
  integers_.push_back({constant, bits, Scale(), scales, channel, block});
  if (block > 0) integers_.push_back({scales, 16, Scale(), Ref(), 0});
}

Ref Lowering::rounded(Ref value) {
  const auto [at, is_new] = rounded_.try_emplace(value);
  if (!is_new) return at->second;
  at->second = add(blob::Kind::unary, blob::Function::convert, {value});
  integers_.push_back({at->second, 8, Scale(), Ref(), 0, 0, true});
  return at->second;
}

Order Lowering::natural_order(const ir::Value* value) const {
  const bool is_last = refs_.contains({value, Order::channels_last});
  return is_last && !refs_.contains({value, Order::plain}) ? Order::channels_last : Order::plain;
}

Ref Lowering::ref(const ir::Value* value, Order order) {
  const int rank = value->type.rank;
  if (rank < 3 || rank > 5) order = Order::plain;
  if (const auto at = refs_.find({value, order}); at != refs_.end()) return at->second;
  if (values_.find(value)) {
    const eager::Tensor& elements = values_.at(value);
    const bool is_last = order == Order::channels_last;
    const Ref made =
        constant(value, is_last ? reordered(elements, rank == 3 ? of_line : to_channels_last(rank))
                                : elements);
    note_scale(value, made);
    return refs_[{value, order}] = made;
  }
  const Order other = order == Order::plain ? Order::channels_last : Order::plain;
  const auto at = refs_.find({value, other});
  if (at == refs_.end()) throw ExportError("xnnpack: " + value->name + " was not lowered");
  const Ref made = turned(value, at->second, order);
  note_scale(value, made);
  return refs_[{value, order}] = made;
}

Ref Lowering::turned(const ir::Value* value, Ref ref, Order to) {
  const auto node = [&](blob::Kind kind, Ref x, std::vector<int64_t> numbers) {
    return add(kind, blob::Function::none, {x}, std::move(numbers));
  };
  using enum blob::Kind;
  const bool is_last = to == Order::channels_last;
  const int rank = value->type.rank;
  if (is_finishing_ || ref.kind == Ref::Kind::operand) ++compiled_.border_transposes;
  if (rank > 3) return node(transpose, ref, is_last ? to_channels_last(rank) : to_plain(rank));
  const Dim* s = value->type.sizes;  // (batch, channels, length)
  if (is_last)
    return node(reshape, node(transpose, ref, turned_line), numbers_or_zero({s[0], 1, s[2], s[1]}));
  return node(transpose, node(reshape, ref, numbers_or_zero({s[0], s[2], s[1]})), turned_line);
}

Ref Lowering::permuted(const ir::Value* value, const std::vector<int64_t>& order) {
  const auto [at, is_new] = arranged_.try_emplace({value, order});
  if (!is_new) return at->second;
  return at->second = constant(value, reordered(elements(value), order));
}

Ref Lowering::reshaped(const ir::Value* value, const std::vector<int64_t>& sizes) {
  return reshaped(value, elements(value), sizes);
}

Ref Lowering::permuted(const ir::Value* value, const eager::Tensor& elements,
                       const std::vector<int64_t>& order) {
  return constant(value, reordered(elements, order));
}

Ref Lowering::reshaped(const ir::Value* value, const eager::Tensor& elements,
                       const std::vector<int64_t>& sizes) {
  return constant(value, eager::reshape(elements, {sizes.begin(), sizes.end()}));
}

Ref Lowering::joined(std::vector<Ref> values, int64_t axis) {
  constexpr size_t most = most_inputs;
  while (values.size() > 1) {
    std::vector<Ref> longer;
    for (size_t i = 0; i < values.size(); i += most) {
      const size_t count = std::min(most, values.size() - i);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i);
      const std::vector<Ref> some(begin, begin + static_cast<std::ptrdiff_t>(count));
      longer.push_back(
          count == 1 ? some[0] : add(blob::Kind::concatenate, blob::Function::none, some, {axis}));
    }
    values = std::move(longer);
  }
  return values[0];
}

Ref Lowering::number(double value) {
  return constant(std::vector<float>{static_cast<float>(value)}, {1});
}

const eager::Tensor& Lowering::elements(const ir::Value* value) {
  if (!values_.find(value)) throw ExportError("xnnpack: " + value->name + " is no constant");
  return values_.at(value);
}

Ref Lowering::constant(const ir::Value* source, const eager::Tensor& elements) {
  const eager::Tensor counted = elements.rank() == 0 ? eager::reshape(elements, {1}) : elements;
  return constant(path_of(body_, source), ir::payload_of(counted));
}

Ref Lowering::constant(std::string path, std::shared_ptr<const ir::Payload> payload) {
  compiled_.constants.push_back({std::move(path), std::move(payload)});
  return {Ref::Kind::constant, static_cast<uint32_t>(compiled_.constants.size() - 1)};
}

Ref Lowering::add(blob::Kind kind, blob::Function function, std::vector<Ref> inputs,
                  std::vector<int64_t> numbers, std::vector<float> parameters) {
  nodes_.push_back(
      {kind, function, std::move(inputs), std::move(numbers), std::move(parameters), source_});
  return {Ref::Kind::node, static_cast<uint32_t>(nodes_.size() - 1)};
}

uint32_t Lowering::position(Ref ref) const {
  const auto operands = static_cast<uint32_t>(body_.inputs().size());
  switch (ref.kind) {
    case Ref::Kind::operand:
      return ref.index;
    case Ref::Kind::constant:
      return operands + ref.index;
    case Ref::Kind::node:
      return operands + static_cast<uint32_t>(compiled_.constants.size()) + ref.index;
    default:
      return 0xffffffffu;
  }
}

std::vector<flatbuffers::Offset<blob::Quantized>> Lowering::integers(
    flatbuffers::FlatBufferBuilder& b) const {
  std::map<uint32_t, const Integers*> in_order;
  for (const Integers& i : integers_) in_order[position(i.value)] = &i;
  std::vector<flatbuffers::Offset<blob::Quantized>> list;
  for (const auto& [value, i] : in_order)
    list.push_back(blob::CreateQuantized(b, value, i->bits, i->scale.zero_point, i->scale.scale,
                                         position(i->scales), i->channel, i->block, i->is_rounded));
  return list;
}

partition::Compiled Lowering::finish() {
  is_finishing_ = true;
  std::vector<Ref> outputs;
  for (const ir::Output& o : body_.outputs()) outputs.push_back(ref(o.value));
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<blob::Node>> nodes;
  for (const Node& n : nodes_) {
    std::vector<uint32_t> inputs;
    for (const Ref r : n.inputs) inputs.push_back(position(r));
    nodes.push_back(blob::CreateNodeDirect(b, n.kind, n.function, &inputs, &n.numbers,
                                           &n.parameters,
                                           n.source.empty() ? nullptr : n.source.c_str()));
  }
  std::vector<uint32_t> results;
  for (const Ref r : outputs) results.push_back(position(r));
  const auto quantized = integers(b);
  b.Finish(blob::CreatePartDirect(b, static_cast<uint32_t>(body_.inputs().size()),
                                  static_cast<uint32_t>(compiled_.constants.size()), &nodes,
                                  &results, &quantized),
           blob::PartIdentifier());
  compiled_.blob.resize(b.GetSize());
  std::memcpy(compiled_.blob.data(), b.GetBufferPointer(), b.GetSize());
  return std::move(compiled_);
}

}  // namespace taper::delegates::xnnpack
