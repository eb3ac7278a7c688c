#include "taper/kernels/quantized/blocks.h"

#include "taper/kernels/quantized/panels.h"

namespace taper::quantized {
namespace {

internal::Decoder decoder_of(Layout layout) {
  if (const internal::Decoder d = internal::plain_decoder(layout)) return d;
  if (const internal::Decoder d = internal::k_decoder(layout)) return d;
  return internal::grid_decoder(layout);
}

void write(const Unit& unit, bool has_offset, float* to) {
  for (int k = 0; k < unit_elements; ++k) {
    const float product = unit.scale[k / 16] * static_cast<float>(unit.value[k]);
    to[k] = has_offset ? product + unit.offset[k / 16] : product;
  }
}
void write(const FloatUnit& unit, float* to) {
  for (int k = 0; k < unit_elements; ++k) to[k] = unit.scale * unit.value[k];
}

// Blocks that lie one behind the other; `write_unit` decodes a unit of a block.
template <class F>
void for_units(Layout layout, const std::byte* blocks, index_t count, float* to,
               const F& write_unit) {
  const BlockSize block = block_of(layout);
  for (index_t b = 0; b < count / block.elements; ++b, blocks += block.bytes)
    for (int u = 0; u < block.elements / unit_elements; ++u, to += unit_elements)
      write_unit(blocks, u, to);
}

}  // namespace

BlockTraits traits_of(Layout layout) {
  constexpr LayoutSet with_offset = one(Layout::q4_1) | one(Layout::q5_1) | one(Layout::q2_k) |
                                    one(Layout::q4_k) | one(Layout::q5_k) |
                                    one(Layout::q4_1_panels) | one(Layout::q4_k_panels);
  constexpr LayoutSet with_halves = one(Layout::q2_k) | one(Layout::q3_k) | one(Layout::q6_k) |
                                    one(Layout::iq2_xs) | one(Layout::iq2_s) | one(Layout::iq1_m) |
                                    one(Layout::nvfp4) | one(Layout::q6_k_panels);
  return {(with_offset & one(layout)) != 0, (with_halves & one(layout)) != 0};
}

BlockMatrix::BlockMatrix(const TensorRef& t)
    : data(static_cast<const std::byte*>(t.data)),
      layout(t.layout),
      rows(1),
      depth(t.shape->rank == 0 ? 1 : t.shape->sizes[t.shape->rank - 1]) {
  for (int d = 0; d + 1 < t.shape->rank; ++d) rows *= t.shape->sizes[d];
}

const std::byte* BlockMatrix::block(index_t row, index_t unit) const {
  const BlockSize size = block_of(layout);
  return data + (row * (depth / size.elements) + unit / units_of_block()) * size.bytes;
}

void BlockMatrix::decode(index_t row, index_t unit, Unit& to) const {
  if (is_in_block_panels(layout)) return internal::decode_panel(*this, row, unit, to);
  decoder_of(layout)(block(row, unit), static_cast<int>(unit % units_of_block()), to);
}
void BlockMatrix::decode(index_t row, index_t unit, FloatUnit& to) const {
  internal::float_decoder(layout)(block(row, unit), static_cast<int>(unit % units_of_block()), to);
}

void BlockMatrix::row(index_t row, float* to) const {
  if (!is_in_block_panels(layout)) return dequantize(layout, block(row, 0), depth, to);
  const bool has_offset = traits_of(layout).has_offset;
  Unit unit;
  for (index_t u = 0; u < units(); ++u) {
    internal::decode_panel(*this, row, u, unit);
    write(unit, has_offset, to + u * unit_elements);
  }
}

void dequantize(Layout layout, const std::byte* blocks, index_t count, float* to) {
  if (!holds_integers(layout)) {
    const internal::FloatDecoder decode = internal::float_decoder(layout);
    FloatUnit unit;
    return for_units(layout, blocks, count, to, [&](const std::byte* block, int u, float* here) {
      decode(block, u, unit);
      write(unit, here);
    });
  }
  const internal::Decoder decode = decoder_of(layout);
  const bool has_offset = traits_of(layout).has_offset;
  Unit unit;
  for_units(layout, blocks, count, to, [&](const std::byte* block, int u, float* here) {
    decode(block, u, unit);
    write(unit, has_offset, here);
  });
}

}  // namespace taper::quantized
