#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr uint32_t most_values = 1u << 17;
constexpr index_t most_numbers = 16;
constexpr index_t most_row = index_t{1} << 28;  // bytes of a row in 4 bits

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
    case blob::Kind::grouped_product:
      return {3, 3, 1};
    default:
      return {1, 1, 0};
  }
}

bool has_function(const NodeView& n) {
  using F = blob::Function;
  if (n.kind == blob::Kind::unary) return n.function >= F::clamp && n.function <= F::convert;
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

// A grouped product is alone in its part, and takes the inputs in their order.
bool is_valid_grouped_product(const Part& part) {
  const NodeView n = part.node(0);
  return part.nodes() == 1 && part.operands() == 2 && part.constants() == 1 && n.inputs[0] == 0 &&
         n.inputs[1] == 1 && n.numbers.size() == 1 && (n.numbers[0] == 32 || n.numbers[0] == 64);
}
bool are_valid_products(const Part& part) {
  for (index_t i = 0; i < part.nodes(); ++i)
    if (part.node(i).kind == blob::Kind::grouped_product) return is_valid_grouped_product(part);
  return true;
}

constexpr uint32_t least_block = 32, most_block = 1u << 15;

// Whether a constant lies beside its integers that can be their scales.
bool has_valid_scales(const Part& part, const blob::Quantized& q) {
  if (q.zero_point() != 0 || !part.is_constant(q.scales())) return false;
  const blob::Quantized* scales = part.quantized(static_cast<index_t>(q.scales()));
  if (q.block() == 0) return scales == nullptr;
  return q.bits() == 4 && q.block() % least_block == 0 && q.block() <= most_block &&
         scales != nullptr && scales->bits() == 16;
}

bool is_valid_quantized(const Part& part, const blob::Quantized& q) {
  const bool is_constant = part.is_constant(q.value()), has_scales = q.scales() != no_value;
  const bool is_input = static_cast<index_t>(q.value()) < part.inputs();
  if (q.is_rounded()) return !is_input && q.bits() == 8 && !has_scales && q.block() == 0;
  if (q.bits() == 16) return is_constant && !has_scales && q.block() == 0;
  if (q.bits() != 8 && (!is_constant || (q.bits() != 32 && q.bits() != 4))) return false;
  if (has_scales) return is_constant && has_valid_scales(part, q);
  return q.bits() != 4 && q.block() == 0 && q.zero_point() >= -128 && q.zero_point() <= 127 &&
         q.scale() >= 1e-10f && q.scale() <= 1e10f;
}

bool are_valid_quantized(const Part& part, const blob::Part& table) {
  if (table.quantized() == nullptr) return true;
  index_t before = -1;
  for (const blob::Quantized* q : *table.quantized()) {
    const auto value = static_cast<index_t>(q->value());
    if (value <= before || value >= part.values()) return false;
    before = value;
  }
  for (const blob::Quantized* q : *table.quantized())
    if (!is_valid_quantized(part, *q)) return false;
  return true;
}

bool has_one_scale(const blob::Quantized* q) {
  return q != nullptr && q->bits() == 8 && q->scales() == no_value && !q->is_rounded();
}
// The library makes shifts of such ratios, and trusts that they are not extreme.
bool is_between(float ratio, float least, float most) { return ratio >= least && ratio < most; }
bool has_valid_ratios(const Part& part, const NodeView& n, const blob::Quantized& y) {
  using F = blob::Function;
  const float x = part.quantized(n.inputs[0])->scale(), to = y.scale();
  if (n.kind == blob::Kind::binary) {
    const float other = part.quantized(n.inputs[1])->scale();
    if (n.function == F::multiply) return is_between(x * other / to, 0x1p-16f, 0x1p8f);
    return is_between(x / to, 0x1p-10f, 0x1p8f) && is_between(other / to, 0x1p-10f, 0x1p8f);
  }
  const bool converts = n.kind == blob::Kind::unary && n.function == F::convert;
  return (!converts && n.kind != blob::Kind::mean) || is_between(x / to, 0x1p-8f, 0x1p7f);
}
bool have_equal_scales(const blob::Quantized& a, const blob::Quantized& b) {
  return a.scale() == b.scale() && a.zero_point() == b.zero_point();
}

// Whether a filter and a bias are as the library takes them beside an x in 8 bits.
bool are_quantized_weights(const Part& part, const NodeView& n) {
  const blob::Quantized* filter = part.quantized(n.inputs[1]);
  if (filter == nullptr || filter->bits() != 8 || filter->zero_point() != 0) return false;
  const bool depthwise = n.kind == blob::Kind::depthwise;
  if (filter->scales() != no_value && filter->channel() != (depthwise ? 3 : 0)) return false;
  if (n.inputs[2] == no_value) return true;
  const blob::Quantized* bias = part.quantized(n.inputs[2]);
  return bias != nullptr && bias->bits() == 32 && bias->zero_point() == 0 && bias->channel() == 0 &&
         (bias->scales() == no_value) == (filter->scales() == no_value);
}

// Whether a product of f32 or of rounded rows can have this filter of integers and this bias.
bool are_weights_with_scales(const Part& part, const NodeView& n, bool may_be_half_bytes) {
  const blob::Quantized* filter = part.quantized(n.inputs[1]);
  return filter != nullptr && (filter->bits() == 8 || (may_be_half_bytes && filter->bits() == 4)) &&
         filter->scales() != no_value && filter->channel() == 0 &&
         (n.inputs[2] == no_value || part.quantized(n.inputs[2]) == nullptr);
}
bool is_rounded(const blob::Quantized* q) { return q != nullptr && q->is_rounded(); }

// Whether the library computes the node on values of these types.
bool has_valid_types(const Part& part, const NodeView& n, index_t result) {
  using K = blob::Kind;
  using F = blob::Function;
  const blob::Quantized *x = part.quantized(n.inputs[0]), *y = part.quantized(result);
  if (is_rounded(x))
    return n.kind == K::fully_connected && y == nullptr && are_weights_with_scales(part, n, true);
  if (n.kind == K::fully_connected && x == nullptr && part.quantized(n.inputs[1]) != nullptr)
    return y == nullptr && are_weights_with_scales(part, n, false);
  if (is_rounded(y)) return n.kind == K::unary && n.function == F::convert && x == nullptr;
  if (n.kind == K::unary && n.function == F::convert)
    return (x != nullptr || y != nullptr) && (x == nullptr || has_one_scale(x)) &&
           (y == nullptr || has_one_scale(y)) &&
           (x == nullptr || y == nullptr || has_valid_ratios(part, n, *y));
  bool is_float = y == nullptr, is_integer = has_one_scale(y);
  const bool has_filter =
      n.kind == K::convolution || n.kind == K::depthwise || n.kind == K::fully_connected;
  for (index_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == no_value) continue;
    const blob::Quantized* input = part.quantized(n.inputs[i]);
    is_float = is_float && input == nullptr;
    if (!has_filter || i == 0) is_integer = is_integer && has_one_scale(input);
  }
  if (is_float || !is_integer) return is_float;
  switch (n.kind) {
    case K::convolution:
    case K::depthwise:
    case K::fully_connected:
      return are_quantized_weights(part, n);
    case K::binary:
      return n.function <= F::multiply && has_valid_ratios(part, n, *y);
    case K::unary:
    case K::mean:
      return has_valid_ratios(part, n, *y);
    case K::max_pool:
    case K::concatenate:
    case K::slice:
    case K::transpose:
    case K::reshape:
    case K::pad:
      for (const uint32_t i : n.inputs)
        if (!have_equal_scales(*part.quantized(i), *y)) return false;
      return true;
    default:
      return false;
  }
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
      parameters(span_of(node.parameters())),
      source(node.source() == nullptr ? "" : node.source()->c_str()) {}

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
  if (!are_valid_quantized(part, table)) return false;
  const uint32_t inputs = static_cast<uint32_t>(part.inputs());
  for (index_t i = 0; i < part.nodes(); ++i)
    if (!is_valid_node(part, part.node(i), inputs + static_cast<uint32_t>(i)) ||
        !has_valid_types(part, part.node(i), part.inputs() + i))
      return false;
  if (!are_valid_products(part)) return false;
  for (index_t i = 0; i < part.results(); ++i) {
    if (part.result(i) < part.inputs() || part.result(i) >= part.values() ||
        is_rounded(part.quantized(part.result(i))))
      return false;
    for (index_t k = 0; k < i; ++k)
      if (part.result(k) == part.result(i)) return false;
  }
  for (index_t v = part.inputs(); v < part.values(); ++v)
    if (!is_needed(part, v)) return false;
  return part.results() > 0;
}

const blob::Quantized* Part::quantized(index_t value) const {
  const auto* list = table_->quantized();
  if (list == nullptr) return nullptr;
  uint32_t first = 0, last = list->size();
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    if (static_cast<index_t>(list->Get(middle)->value()) < value)
      first = middle + 1;
    else
      last = middle;
  }
  const bool is_found =
      first < list->size() && static_cast<index_t>(list->Get(first)->value()) == value;
  return is_found ? list->Get(first) : nullptr;
}

DType Part::dtype(index_t value) const {
  if (value == 1 && is_grouped_product()) return node(0).numbers[0] == 32 ? DType::i32 : DType::i64;
  const blob::Quantized* q = quantized(value);
  if (q == nullptr) return DType::f32;
  switch (q->bits()) {
    case 4:
      return DType::u8;
    case 8:
      return DType::i8;
    case 16:
      return DType::bf16;
    default:
      return DType::i32;
  }
}

bool Part::widen_halves(Shape* shapes) const {
  if (table_->quantized() == nullptr) return true;
  for (const blob::Quantized* q : *table_->quantized()) {
    if (q->bits() != 4) continue;
    Shape& shape = shapes[q->value()];
    if (shape.rank != 2 || shape.sizes[1] > most_row) return false;
    shape.sizes[1] *= 2;
  }
  return true;
}

bool Part::has_scales_for_channels(const Shape* shapes) const {
  if (table_->quantized() == nullptr) return true;
  for (const blob::Quantized* q : *table_->quantized()) {
    if (q->scales() == no_value) continue;
    const Shape &value = shapes[q->value()], &scales = shapes[q->scales()];
    if (q->block() > 0) {
      const index_t block = static_cast<index_t>(q->block());
      if (scales.rank != 2 || scales.sizes[0] != value.sizes[0] || value.sizes[1] % block != 0 ||
          scales.sizes[1] != value.sizes[1] / block)
        return false;
      continue;
    }
    if (q->channel() >= value.rank || scales.rank != 1 ||
        scales.sizes[0] != value.sizes[q->channel()])
      return false;
  }
  return true;
}

index_t Part::infer(Shape* shapes) const {
  for (index_t i = 0; i < inputs(); ++i)
    if (!is_countable(shapes[i])) return 0;
  if (!widen_halves(shapes) || !has_scales_for_channels(shapes)) return 0;
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
