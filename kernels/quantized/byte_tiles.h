// The innermost loops of static 8-bit products, once for each instruction set. Sums of 32 bits are
// exact modulo 2^32, so every set gives the same integers.
#pragma once
#include "taper/kernels/quantized/byte_panels.h"
#include "taper/kernels/quantized/instruction_set.h"

namespace taper::quantized {

/// Some results, pixel by pixel, and where their inputs lie.
struct BytePixels {
  const int8_t* const* x;  ///< tap t of pixel r: x[t * pitch + r], from a group's first channel on
  index_t pitch, taps;
  index_t vectors_of_tap;  ///< four channels each. Reads up to 3 bytes behind the last channel
};
/// The channels of the results: those of some neighbouring panels.
struct ByteColumns {
  const int8_t* weight;
  index_t panel_bytes;
  const int32_t* first;  ///< at what sums begin, and what they are multiplied by: 16 for each panel
  const float* scale;
  index_t count;  ///< at most 16 for each panel
  Rounding rounding;
  int8_t* to;  ///< of the first pixel
  index_t to_pixel;
};

struct ByteTiles {
  static constexpr int most_pixels = 6, most_panels = 4;

  int32_t shift;  ///< is added to each input: ByteChannels::first takes it off
  int pixels;     ///< of the largest tile
  int panels;
  /// [panels - 1][pixels - 1]
  void (*tile[most_panels][most_pixels])(const BytePixels&, const ByteColumns&);
  /// One filter for each channel: `pixels` results of `columns.count` channels, any number of them.
  void (*depthwise)(const BytePixels&, const ByteColumns&, index_t pixels);
  static constexpr index_t most_depthwise_taps = 64;

  /// In the place of `tile`, for any number of pixels: [panels - 1]
  void (*products[most_panels])(const BytePixels&, const ByteColumns&, index_t pixels) = {};
  const ByteTiles* for_depthwise = nullptr;  ///< in the place of `depthwise`

  /// The results at any number of pixels.
  void multiply(BytePixels x, ByteColumns c, index_t count_of_panels, index_t count) const {
    if (products[count_of_panels - 1] != nullptr) return products[count_of_panels - 1](x, c, count);
    const index_t parts = (count + pixels - 1) / pixels;
    for (index_t i = 0, from = 0; i < parts; ++i) {
      const index_t here = (i + 1) * count / parts - from;
      tile[count_of_panels - 1][here - 1](x, c);
      from += here, x.x += here, c.to += here * c.to_pixel;
    }
  }
};

extern const ByteTiles byte_tiles_avx2, byte_tiles_avx_vnni, byte_tiles_avx512_vnni,
    byte_tiles_amx_int8;
extern const ByteTiles byte_tiles_neon, byte_tiles_dotprod, byte_tiles_i8mm;

}  // namespace taper::quantized

/// Calls a macro with the name of each table that this build has, and the features it needs.
#if TAPER_TILES_X86
#define TAPER_OF_BYTE_TILES(macro)                                                                \
  macro(avx2, with_implied(CpuFeature::avx2)) macro(avx_vnni, with_implied(CpuFeature::avx_vnni)) \
      macro(avx512_vnni, with_implied(CpuFeature::avx512_vnni)) macro(                            \
          amx_int8, with_implied(CpuFeature::amx_int8) | CpuFeatures(CpuFeature::avx512_vnni))
#elif TAPER_TILES_ARM64
#define TAPER_OF_BYTE_TILES(macro)                    \
  macro(neon, {}) macro(dotprod, CpuFeature::dotprod) \
      macro(i8mm, (CpuFeatures{CpuFeature::dotprod, CpuFeature::i8mm}))
#endif
