#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr uint32_t most_nodes = 1u << 13, most_values = 1u << 17;
constexpr index_t most_numbers = 16;

template <class T>
Span<const T> span_of(const flatbuffers::Vector<T>* v) {
  if (v == nullptr || v->size() == 0) return {};
  return {reinterpret_cast<const T*>(v->Data()), static_cast<index_t>(v->size())};
}

// How many inputs a kind has, and how many of the last ones must be constants or absent.
struct Inputs {
  index_t least, most, constants;
};
Inputs inputs_of(blob::Kind kind) {
  switch (kind) {
    case blob::Kind::convolution:
    case blob::Kind::depthwise:
    case blob::Kind::deconvolution:
    case blob::Kind::fully_connected:
      return {3, 3, 2};
    case blob::Kind::binary:
    case blob::Kind::batch_matmul:
      return {2, 2, 0};
    case blob::Kind::concatenate:
      return {2, most_inputs, 0};
    default:
      return {1, 1, 0};
  }
}

bool has_function(const NodeView& n) {
  using F = blob::Function;
  if (n.kind == blob::Kind::unary) return n.function >= F::clamp && n.function <= F::tanh;
  if (n.kind == blob::Kind::binary) return n.function >= F::add && n.function <= F::prelu;
  return n.function == F::none;
}

bool is_aligned(const void* data, size_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

// `known`: the number of values before the node's own.
bool is_valid_node(const Part& part, const NodeView& n, uint32_t known) {
  if (n.kind > blob::Kind::MAX || !has_function(n) || n.numbers.size() > most_numbers ||
      n.parameters.size() > 2 || !is_aligned(n.numbers.data(), alignof(int64_t)))
    return false;
  const Inputs expected = inputs_of(n.kind);
  const index_t count = n.inputs.size();
  if (count < expected.least || count > expected.most) return false;
  for (index_t i = 0; i < count; ++i) {
    const uint32_t value = n.inputs[i];
    const bool may_be_absent = expected.constants == 2 && i == 2;
    if (value == no_value ? !may_be_absent : value >= known) return false;
    if (value != no_value && i >= count - expected.constants && !part.is_constant(value))
      return false;
  }
  for (const float p : n.parameters)
    if (p != p) return false;
  return true;
}

// The library aborts if nobody needs a result. A node behind the last one that needs it is needed
// itself, so it suffices to look for one reader.
bool is_needed(const Part& part, index_t value) {
  for (index_t r = 0; r < part.results(); ++r)
    if (part.result(r) == value) return true;
  for (index_t i = value - part.inputs() + 1; i < part.nodes(); ++i)
    for (const uint32_t input : part.node(i).inputs)
      if (input == static_cast<uint64_t>(value)) return true;
  return false;
}

}  // namespace

NodeView::NodeView(const blob::Node& node)
    : kind(node.kind()),
      function(node.function()),
      inputs(span_of(node.inputs())),
      numbers(span_of(node.numbers())),
      parameters(span_of(node.parameters())) {}

bool Part::is_valid(Span<const std::byte> bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()),
                                 static_cast<size_t>(bytes.size()));
  if (bytes.size() < 16 || !blob::VerifyPartBuffer(verifier)) return false;
  const blob::Part& table = *blob::GetPart(bytes.data());
  if (table.nodes() == nullptr || table.results() == nullptr || table.nodes()->size() == 0 ||
      table.nodes()->size() > most_nodes || table.operands() == 0 ||
      table.operands() > most_values || table.constants() > most_values)
    return false;
  const Part part(bytes);
  const uint32_t inputs = static_cast<uint32_t>(part.inputs());
  for (index_t i = 0; i < part.nodes(); ++i)
    if (!is_valid_node(part, part.node(i), inputs + static_cast<uint32_t>(i))) return false;
  for (index_t i = 0; i < part.results(); ++i) {
    if (part.result(i) < part.inputs() || part.result(i) >= part.values()) return false;
    for (index_t k = 0; k < i; ++k)
      if (part.result(k) == part.result(i)) return false;
  }
  for (index_t v = part.inputs(); v < part.values(); ++v)
    if (!is_needed(part, v)) return false;
  return part.results() > 0;
}

index_t Part::infer(Shape* shapes) const {
  for (index_t i = 0; i < inputs(); ++i)
    if (!is_countable(shapes[i])) return 0;
  for (index_t i = 0; i < nodes(); ++i) {
    const NodeView n = node(i);
    const Shape* given[most_inputs] = {};
    for (index_t k = 0; k < n.inputs.size(); ++k)
      if (n.inputs[k] != no_value) given[k] = &shapes[n.inputs[k]];
    if (!infer_node(n, given, shapes[inputs() + i])) return i;
  }
  return -1;
}

}  // namespace taper::delegates::xnnpack
