// Formats with one scale for each block, or for each sixteen elements.
#include "taper/kernels/half_precision.h"
#include "taper/kernels/portable/small_floats.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized::internal {

float half_at(const std::byte* from, int offset) {
  return portable::to_float(load_at<Half>(from, offset));
}

namespace {

// Sixteen bytes hold elements 0 to 15 in their lower halves, and 16 to 31 in their upper halves.
template <class F>
void for_nibbles(const std::byte* bytes, const F& body) {
  for (int j = 0; j < 16; ++j) {
    const int b = byte_at(bytes, j);
    body(j, b & 15), body(j + 16, b >> 4);
  }
}

void q4_0(const std::byte* block, int, Unit& to) {
  for_nibbles(block + 2, [&](int k, int q) { to.value[k] = static_cast<int8_t>(q - 8); });
  set_scales(to, half_at(block, 0));
}
void q4_1(const std::byte* block, int, Unit& to) {
  for_nibbles(block + 4, [&](int k, int q) { to.value[k] = static_cast<int8_t>(q); });
  set_scales(to, half_at(block, 0), half_at(block, 2));
}
// Four bytes hold the fifth bits of all elements.
void q5_0(const std::byte* block, int, Unit& to) {
  const auto high = load_at<uint32_t>(block, 2);
  for_nibbles(block + 6, [&](int k, int q) {
    to.value[k] = static_cast<int8_t>((q | static_cast<int>(high >> k & 1) << 4) - 16);
  });
  set_scales(to, half_at(block, 0));
}
void q5_1(const std::byte* block, int, Unit& to) {
  const auto high = load_at<uint32_t>(block, 4);
  for_nibbles(block + 8, [&](int k, int q) {
    to.value[k] = static_cast<int8_t>(q | static_cast<int>(high >> k & 1) << 4);
  });
  set_scales(to, half_at(block, 0), half_at(block, 2));
}
void q8_0(const std::byte* block, int, Unit& to) {
  std::memcpy(to.value, block + 2, sizeof to.value);
  set_scales(to, half_at(block, 0));
}

void iq4_nl(const std::byte* block, int, Unit& to) {
  for_nibbles(block + 2, [&](int k, int q) { to.value[k] = iq4_levels[q]; });
  set_scales(to, half_at(block, 0));
}
// 256 elements: f16 scale, two high bits and then four low bits of the scale of each 32.
void iq4_xs(const std::byte* block, int unit, Unit& to) {
  const int low = byte_at(block, 4 + unit / 2) >> unit % 2 * 4 & 15,
            high = load_at<uint16_t>(block, 2) >> 2 * unit & 3;
  for_nibbles(block + 8 + 16 * unit, [&](int k, int q) { to.value[k] = iq4_levels[q]; });
  set_scales(to, half_at(block, 0) * static_cast<float>((low | high << 4) - 32));
}

void mxfp4(const std::byte* block, int, Unit& to) {
  for_nibbles(block + 1, [&](int k, int q) { to.value[k] = e2m1_levels[q]; });
  set_scales(to, half_power(byte_at(block, 0)));
}
// Half of an e4m3 without sign. 0 and the NaN count as 0.
float half_e4m3(int x) {
  if (x == 0 || x == 0x7f) return 0;
  const int exponent = x >> 3 & 15, mantissa = x & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return (1 + static_cast<float>(mantissa) / 8) *
         from_bits(static_cast<uint32_t>(exponent - 8 + 127) << 23);
}
// 64 elements: a scale for each sixteen, and then their nibbles in eight bytes.
void nvfp4(const std::byte* block, int unit, Unit& to) {
  for (int h = 0; h < 2; ++h) {
    const int part = 2 * unit + h;
    for (int j = 0; j < 8; ++j) {
      const int b = byte_at(block, 4 + 8 * part + j);
      to.value[16 * h + j] = e2m1_levels[b & 15], to.value[16 * h + j + 8] = e2m1_levels[b >> 4];
    }
    to.scale[h] = half_e4m3(byte_at(block, part)), to.offset[h] = 0;
  }
}

// A byte holds five digits of base three: the digits of ceil(256 / 243 * number).
int digit(int byte, int place) {
  constexpr int powers[5] = {1, 3, 9, 27, 81};
  return ((byte * powers[place] & 255) * 3 >> 8) - 1;
}
// Elements 0 to 159 lie in 32 bytes, 160 to 239 in 16, and the last ones in 4.
void tq1_0(const std::byte* block, int unit, Unit& to) {
  for (int k = 0; k < unit_elements; ++k) {
    const int i = unit * unit_elements + k;
    const int byte = i < 160   ? i % 32
                     : i < 240 ? 32 + (i - 160) % 16
                               : 48 + (i - 240) % 4,
              place = i < 160   ? i / 32
                      : i < 240 ? (i - 160) / 16
                                : (i - 240) / 4;
    to.value[k] = static_cast<int8_t>(digit(byte_at(block, byte), place));
  }
  set_scales(to, half_at(block, 52));
}
void tq2_0(const std::byte* block, int unit, Unit& to) {
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] = static_cast<int8_t>((byte_at(block, unit / 4 * 32 + k) >> unit % 4 * 2 & 3) - 1);
  set_scales(to, half_at(block, 64));
}

// An f16 without its lowest four bits, which hold the zero point z: in steps of 1/4 of an integer
// of two bits, and of 1/2 of one of three. Eight bytes have two bits of each element.
float scale_and_zero(const std::byte* block, int* zero) {
  const auto bits = load_at<uint16_t>(block);
  *zero = bits & 15;
  const auto scale = static_cast<uint16_t>(bits & 0xfff0);
  return half_at(reinterpret_cast<const std::byte*>(&scale), 0);
}
int two_bits(const std::byte* block, int k) { return byte_at(block, 2 + k % 8) >> k / 8 * 2 & 3; }
void q2_z(const std::byte* block, int, Unit& to) {
  int zero;
  set_scales(to, scale_and_zero(block, &zero));
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] = static_cast<int8_t>(4 * two_bits(block, k) - zero);
}
// Four more bytes hold the third bits.
void q3_z(const std::byte* block, int, Unit& to) {
  int zero;
  set_scales(to, scale_and_zero(block, &zero));
  const auto high = load_at<uint32_t>(block, 10);
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] =
        static_cast<int8_t>(2 * (two_bits(block, k) | static_cast<int>(high >> k & 1) << 2) - zero);
}

}  // namespace

Decoder plain_decoder(Layout layout) {
  switch (layout) {
    case Layout::q4_0:
      return q4_0;
    case Layout::q4_1:
      return q4_1;
    case Layout::q5_0:
      return q5_0;
    case Layout::q5_1:
      return q5_1;
    case Layout::q8_0:
      return q8_0;
    case Layout::iq4_nl:
      return iq4_nl;
    case Layout::iq4_xs:
      return iq4_xs;
    case Layout::mxfp4:
      return mxfp4;
    case Layout::nvfp4:
      return nvfp4;
    case Layout::tq1_0:
      return tq1_0;
    case Layout::tq2_0:
      return tq2_0;
    case Layout::q2_z:
      return q2_z;
    case Layout::q3_z:
      return q3_z;
    default:
      return nullptr;
  }
}

}  // namespace taper::quantized::internal
