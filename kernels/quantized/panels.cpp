#include "taper/kernels/quantized/panels.h"

namespace taper::quantized {
namespace {

using internal::byte_at;
using internal::half_at;
using internal::load_at;

constexpr int width = static_cast<int>(panel_width);

// Where row i of a unit has its element k. Of nibbles, elements 16 to 31 are the upper halves of 0
// to 15.
constexpr int byte_of(int i, int k) { return k / 4 * 4 * width + i * 4 + k % 4; }

// The two high bits of element k of row i: two vectors of nibbles share one of them.
constexpr int high_byte_of(int i, int k) { return k % 16 / 8 * 4 * width + i * 4 + k % 4; }
constexpr int high_shift_of(int k) { return k % 8 / 4 * 4 + k / 16 * 2; }

void copy(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }

// The scales of row i, from one block.
void pack_scales(Layout from, const std::byte* block, int i, std::byte* scales) {
  switch (from) {
    case Layout::q4_1:
      copy(scales + 2 * (width + i), block + 2, 2);
      [[fallthrough]];
    case Layout::q4_0:
    case Layout::q8_0:
      return copy(scales + 2 * i, block, 2);
    case Layout::q4_k:
      copy(scales + 2 * i, block, 2), copy(scales + 2 * (width + i), block + 2, 2);
      for (int u = 0; u < 8; ++u) {
        int scale = 0, offset = 0;
        internal::six_bits(block + 4, u, &scale, &offset);
        std::byte* to = scales + 64 + 2 * width * u + i;
        to[0] = static_cast<std::byte>(scale), to[width] = static_cast<std::byte>(offset);
      }
      return;
    default:  // q6_k
      copy(scales + 2 * i, block + 208, 2);
      for (int part = 0; part < 16; ++part) scales[32 + width * part + i] = block[192 + part];
  }
}
// Four bytes of unsigned integers that were shifted, without the bits of their neighbours.
uint32_t four(const std::byte* from, int shift, uint32_t mask) {
  return load_at<uint32_t>(from, 0) >> shift & mask * 0x01010101u;
}
void store(std::byte* to, uint32_t word) { std::memcpy(to, &word, sizeof word); }

// The nibbles of row i: those of elements k to k + 3, and of k + 16 to k + 19 above them.
void pack_nibbles(const std::byte* from, int shift, int i, std::byte* values) {
  for (int k = 0; k < 16; k += 4)
    store(values + byte_of(i, k), four(from + k, shift, 15) | four(from + k + 16, shift, 15) << 4);
}

// k_blocks.cpp says where the bits of a unit lie in a block.
void pack_q6_k(const std::byte* block, int unit, int i, std::byte* values) {
  pack_nibbles(block + unit / 4 * 64 + unit % 2 * 32, unit % 4 / 2 * 4, i, values);
  const std::byte* high = block + 128 + unit / 4 * 32;
  for (int k = 0; k < 16; k += 8) {
    uint32_t word = 0;
    const int parts[] = {k, k + 4, k + 16, k + 20};
    for (const int part : parts) word |= four(high + part, unit % 4 * 2, 3) << high_shift_of(part);
    store(values + 256 + high_byte_of(i, k), word);
  }
}

void pack_values(Layout from, const std::byte* block, int unit, int i, std::byte* values) {
  switch (from) {
    case Layout::q4_0:
    case Layout::q4_1: {  // the nibbles are those of the block
      const std::byte* nibbles = block + (from == Layout::q4_0 ? 2 : 4);
      for (int k = 0; k < 16; k += 4) copy(values + byte_of(i, k), nibbles + k, 4);
      return;
    }
    case Layout::q8_0:
      for (int k = 0; k < unit_elements; k += 4) copy(values + byte_of(i, k), block + 2 + k, 4);
      return;
    case Layout::q4_k:
      return pack_nibbles(block + 16 + unit / 2 * 32, unit % 2 * 4, i, values);
    default:
      return pack_q6_k(block, unit, i, values);
  }
}

}  // namespace

Layout panels_of(Layout blocks) {
  switch (blocks) {
    case Layout::q4_0:
      return Layout::q4_0_panels;
    case Layout::q4_1:
      return Layout::q4_1_panels;
    case Layout::q8_0:
      return Layout::q8_0_panels;
    case Layout::q4_k:
      return Layout::q4_k_panels;
    default:  // q6_k
      return Layout::q6_k_panels;
  }
}

void pack_panel(const BlockMatrix& m, index_t panel, std::byte* to) {
  const BlockSize block = block_of(m.layout);
  const Layout layout = panels_of(m.layout);
  const PanelFormat f = panel_format(layout);
  const index_t blocks = m.depth / block.elements, row = panel * width;
  if (blocks == 0) return;
  std::memset(to, 0, static_cast<size_t>(panel_bytes(layout, m.depth)));
  std::byte* scales = to + m.units() * f.value_bytes;
  for (index_t b = 0; b < blocks; ++b, scales += f.scale_bytes)
    for (int i = 0; i < width && row + i < m.rows; ++i) {
      const std::byte* from = m.data + ((row + i) * blocks + b) * block.bytes;
      pack_scales(m.layout, from, i, scales);
      for (int u = 0; u < f.units; ++u)
        pack_values(m.layout, from, u, i, to + (b * f.units + u) * f.value_bytes);
    }
}

size_t bytes_of_panels(const TensorRef& source) {
  const BlockMatrix m(source);
  const Layout panels = panels_of(source.layout);
  const int rank = source.shape->rank;
  const bool fills_panels = rank == 2 || (rank == 3 && source.shape->sizes[1] % width == 0);
  if (!fills_panels || m.rows == 0 || m.depth % block_of(panels).elements != 0) return 0;
  return static_cast<size_t>((m.rows + width - 1) / width * panel_bytes(panels, m.depth));
}

void pack_panels(const TensorRef& source, void* packed) {
  const BlockMatrix m(source);
  const index_t bytes = panel_bytes(panels_of(source.layout), m.depth);
  for (index_t p = 0; p * width < m.rows; ++p)
    pack_panel(m, p, static_cast<std::byte*>(packed) + p * bytes);
}

void internal::decode_panel(const BlockMatrix& m, index_t row, index_t unit, Unit& to) {
  const PanelFormat f = panel_format(m.layout);
  const int i = static_cast<int>(row % width), u = static_cast<int>(unit % f.units);
  const std::byte *values = values_of(m, row / width) + unit * f.value_bytes,
                  *scales = scales_of(m, row / width) + unit / f.units * f.scale_bytes;
  for (int k = 0; k < unit_elements; ++k) {
    if (m.layout == Layout::q8_0_panels) {
      to.value[k] = load_at<int8_t>(values, byte_of(i, k));
      continue;
    }
    int q = byte_at(values, byte_of(i, k % 16)) >> k / 16 * 4 & 15;
    if (m.layout == Layout::q4_0_panels) q -= 8;
    if (m.layout == Layout::q6_k_panels)
      q = (q | (byte_at(values + 256, high_byte_of(i, k)) >> high_shift_of(k) & 3) << 4) - 32;
    to.value[k] = static_cast<int8_t>(q);
  }
  const float d = half_at(scales, 2 * i);
  if (m.layout == Layout::q4_1_panels) return set_scales(to, d, half_at(scales, 2 * (width + i)));
  if (m.layout == Layout::q4_k_panels) {
    const std::byte* small = scales + f.small + 2 * width * u + i;
    return set_scales(
        to, d * static_cast<float>(byte_at(small, 0)),
        -(half_at(scales, 2 * (width + i)) * static_cast<float>(byte_at(small, width))));
  }
  set_scales(to, d);
  if (m.layout == Layout::q6_k_panels)
    for (int h = 0; h < 2; ++h)
      to.scale[h] =
          d * static_cast<float>(load_at<int8_t>(scales, f.small + width * (2 * u + h) + i));
}

}  // namespace taper::quantized
