#include "taper/exporter/emit/constant_layouts.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "taper/exporter/ir/delegate.h"

namespace taper::emit {
namespace {

bool equal(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.sizes, a.sizes + a.rank, b.sizes) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

/// The shape of a view that shows each element of its constant once, in the constant's dtype.
/// nullopt for other views, and if a size or stride is a symbol.
std::optional<Shape> whole_shape(const ir::Type& type, const ir::Payload& payload) {
  if (type.dtype != payload.dtype || !proves_equal(type.offset, 0)) return std::nullopt;
  Shape shape;
  shape.rank = type.rank;
  index_t last = 0;
  for (int d = 0; d < type.rank; ++d) {
    if (!type.sizes[d].is_constant() || !type.strides[d].is_constant()) return std::nullopt;
    shape.sizes[d] = static_cast<index_t>(type.sizes[d].value());
    shape.strides[d] = static_cast<index_t>(type.strides[d].value());
    last += (shape.sizes[d] - 1) * shape.strides[d];
  }
  index_t count = 1;
  for (const int64_t n : payload.sizes) count *= static_cast<index_t>(n);
  if (count == 0 || shape.numel() != count || last >= count) return std::nullopt;
  return shape;
}

/// The packing of argument `i` in which the first record reads it, asked for or not. nullptr unless
/// every record that a loader of the target may choose can read the same layout. Halves are not
/// stored as f32.
const Packing* packing_of(const ir::Node& call, size_t i, Layout from,
                          const target::Candidates& candidates,
                          const target::KernelTable& kernels) {
  if (candidates.records.empty()) return nullptr;
  const Packing* first = target::packing_of(*candidates.records.front(), call, i, from);
  if (first == nullptr || is_in_halves(from) != is_in_halves(first->layout) ||
      is_in_blocks(from) != is_in_blocks(first->layout))
    return nullptr;
  const bool all_read = std::ranges::all_of(candidates.records, [&](const Kernel* k) {
    const Packing* own = target::packing_of(*k, call, i, from);
    return own != nullptr && own->layout == first->layout;
  });
  if (!all_read) return nullptr;
  const Packing* elsewhere =
      first->bytes == nullptr ? kernels.asked_elsewhere(call, i, *first) : nullptr;
  return elsewhere != nullptr ? elsewhere : first;
}

}  // namespace

void ConstantLayouts::add(uint32_t constant, const ir::Value& seen, const Packing* packing) {
  const ir::Payload& payload = *tables_.constants()[constant].payload;
  const std::optional<Shape> shape = whole_shape(seen.type, payload);
  if (!shape || (packing != nullptr && packing->bytes != nullptr &&
                 packing->bytes({nullptr, &*shape, payload.dtype, payload.layout}) == 0))
    packing = nullptr;
  const auto [at, is_first] = uses_.try_emplace(constant, Use{packing, shape.value_or(Shape())});
  Use& use = at->second;
  if (packing == nullptr || use.packing == nullptr || use.packing->layout != packing->layout ||
      !equal(use.shape, *shape))
    use.packing = nullptr;
  else if (use.packing->bytes == nullptr)
    use.packing = packing;  // which may ask for the layout that the other one only reads
}

void ConstantLayouts::add(const ir::Graph& graph) {
  ir::for_each_own_graph(graph, [&](const ir::Graph& g) {
    std::unordered_map<const ir::Value*, uint32_t> entry_of;
    for (const ir::Constant& c : g.constants())
      entry_of[c.value.get()] = tables_.constant(c.path, c.payload);
    const auto constant_of = [&](const ir::Value* v) {
      const ir::Value* base = v == nullptr ? nullptr : ir::base_of(v);
      const bool is_constant = base != nullptr && base->origin == ir::Value::Origin::constant;
      return is_constant ? std::optional(entry_of.at(base)) : std::nullopt;
    };
    const auto add_value = [&](const ir::Value* v, const Packing* packing) {
      if (const auto constant = constant_of(v)) add(*constant, *v, packing);
    };
    for (const ir::Node& node : g.nodes()) {
      if (node.op->category == Category::view) continue;
      const target::Candidates candidates =
          target::is_instruction(node) ? kernels_.candidates(node) : target::Candidates();
      for (size_t i = 0; i < node.arguments.size(); ++i) {
        const auto* tensor = std::get_if<ir::Value*>(&node.arguments[i]);
        const auto constant = tensor != nullptr ? constant_of(*tensor) : std::nullopt;
        const Packing* packing =
            constant ? packing_of(node, i, tables_.constants()[*constant].payload->layout,
                                  candidates, kernels_)
                     : nullptr;
        ir::for_each_value(node.arguments[i], [&](const ir::Value* v) { add_value(v, packing); });
      }
    }
    for (const ir::Output& o : g.outputs()) add_value(o.value, nullptr);
    for (const ir::Write& w : g.writes()) add_value(w.value, nullptr);
    for (const ir::SymbolBinding& s : g.symbols()) add_value(s.value, nullptr);
  });
}

bool ConstantLayouts::asks_for(uint32_t i) const {
  const auto at = uses_.find(i);
  if (at == uses_.end() || at->second.packing == nullptr) return false;
  if (at->second.packing->bytes == nullptr) return false;  // all read it, and nothing asks for it
  for (const StateEntry& s : tables_.states())
    if (s.initial == i) return false;  // sessions copy the constant
  return true;
}

std::optional<PackedConstant> ConstantLayouts::packed(uint32_t i) const {
  if (!asks_for(i)) return std::nullopt;
  const Use& use = uses_.at(i);
  const ir::Payload& payload = *tables_.constants()[i].payload;
  const TensorRef source{const_cast<std::byte*>(payload.bytes.get()), &use.shape, payload.dtype,
                         payload.layout};
  const Packing& packing = *use.packing;
  return PackedConstant{packing.layout,
                        {use.shape.sizes, use.shape.sizes + use.shape.rank},
                        packing.bytes(source),
                        [source, &packing](std::byte* into) { packing.pack(source, into); }};
}

}  // namespace taper::emit
