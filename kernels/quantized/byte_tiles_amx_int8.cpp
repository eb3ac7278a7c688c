#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
#include "taper/kernels/quantized/tile_registers.h"

TAPER_BEGIN_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/avx512_bytes-inl.h"
#include "taper/kernels/quantized/unrolled-inl.h"

// Registers 0 to 3 hold the sums of sixteen pixels for a panel each. The others hold 64 bytes of
// the pixels, and the sixteen vectors of a panel that belong to them: in `x` and `w` whole ones, in
// `last_x` and `last_w` what is left of a tap.
constexpr int x = 4, w = 5, last_x = 6, last_w = 7;
constexpr index_t vectors_of_step = tiles::most_rows,
                  step_bytes = vectors_of_step * BytePanels::vector,
                  panel_step_bytes = vectors_of_step * BytePanels::vector_bytes;
static_assert(step_bytes == tiles::most_row_bytes && BytePanels::rows == tiles::most_rows);

tiles::Shapes shapes_of(index_t pixels, index_t last_vectors) {
  tiles::Shapes shapes;
  for (int v = 0; v < ByteTiles::most_panels; ++v) shapes.set(v, pixels, BytePanels::vector_bytes);
  shapes.set(x, pixels, step_bytes);
  shapes.set(w, vectors_of_step, BytePanels::vector_bytes);
  if (last_vectors > 0) {
    shapes.set(last_x, pixels, last_vectors * BytePanels::vector);
    shapes.set(last_w, last_vectors, BytePanels::vector_bytes);
  }
  return shapes;
}

// A tap of some pixels. Pixels that lie equally far apart are loaded from where they are, others
// from a copy.
class Tap {
 public:
  TAPER_INLINE Tap(const int8_t* const* pixels, index_t count) : pixels_(pixels), count_(count) {
    const auto place = [pixels](index_t r) { return reinterpret_cast<intptr_t>(pixels[r]); };
    if (count > 1) step_ = place(1) - place(0);
    for (index_t r = 2; r < count; ++r) is_even_ &= place(r) - place(r - 1) == step_;
  }
  template <int tile>
  TAPER_INLINE void load(index_t offset, index_t bytes) const {
    if (is_even_) return tiles::load<tile>(pixels_[0] + offset, step_);
    alignas(64) int8_t copy[tiles::most_rows][step_bytes];
    const __mmask64 mask = ~uint64_t{0} >> (64 - bytes);
    for (index_t r = 0; r < count_; ++r)
      _mm512_store_si512(copy[r], _mm512_maskz_loadu_epi8(mask, pixels_[r] + offset));
    tiles::load<tile>(copy, step_bytes);
  }

 private:
  const int8_t* const* pixels_;
  index_t count_, step_ = 0;
  bool is_even_ = true;
};

template <int panels, int of_x, int of_w>
TAPER_INLINE void add_step(const int8_t* weight, index_t panel_bytes) {
  unrolled<panels>(TAPER_EACH(v) {
    tiles::load<of_w>(weight + v * panel_bytes, BytePanels::vector_bytes);
    tiles::add_products<v, of_x, of_w>();
  });
}

// The sums of `count` pixels from `pixel` on, without what they begin at.
template <int panels>
TAPER_INLINE void add_taps(const BytePixels& p, const ByteColumns& c, index_t pixel,
                           index_t count) {
  const index_t steps = p.vectors_of_tap / vectors_of_step,
                last = p.vectors_of_tap % vectors_of_step;
  const int8_t* weight = c.weight;
  unrolled<panels>(TAPER_EACH(v) { tiles::set_zero<v>(); });
  for (index_t t = 0; t < p.taps; ++t) {
    const Tap tap(p.x + t * p.pitch + pixel, count);
    for (index_t s = 0; s < steps; ++s, weight += panel_step_bytes) {
      tap.load<x>(s * step_bytes, step_bytes);
      add_step<panels, x, w>(weight, c.panel_bytes);
    }
    if (last == 0) continue;
    tap.load<last_x>(steps * step_bytes, last * BytePanels::vector);
    add_step<panels, last_x, last_w>(weight, c.panel_bytes);
    weight += last * BytePanels::vector_bytes;
  }
}

template <int panels>
void products(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  const index_t count = pixels < tiles::most_rows ? pixels : index_t{tiles::most_rows};
  tiles::set_shapes(shapes_of(count, p.vectors_of_tap % vectors_of_step));
  const Rounder round(c.rounding);
  for (index_t at = 0; at < pixels; at += count) {
    // the last ones may be computed twice
    const index_t pixel = at < pixels - count ? at : pixels - count;
    add_taps<panels>(p, c, pixel, count);
    alignas(64) int32_t sums[panels][tiles::most_rows][BytePanels::rows];
    unrolled<panels>(TAPER_EACH(v) { tiles::store<v>(sums[v], BytePanels::vector_bytes); });
    for (index_t r = 0; r < count; ++r) {
      __m512i y[4] = {};
      unrolled<panels>(TAPER_EACH(v) {
        const index_t channel = v * BytePanels::rows;
        const __m512i sum =
            _mm512_add_epi32(_mm512_load_si512(sums[v][r]), _mm512_loadu_si512(c.first + channel));
        y[v] = round.rounded(sum, _mm512_loadu_ps(c.scale + channel));
      });
      store(round.in_order(y), c.count, c.to + (pixel + r) * c.to_pixel);
    }
  }
  tiles::release();
}

}  // namespace

// Filters of one channel have no matrices to multiply.
constexpr ByteTiles byte_tiles_amx_int8 = {0,
                                           0,
                                           4,
                                           {},
                                           nullptr,
                                           {products<1>, products<2>, products<3>, products<4>},
                                           &byte_tiles_avx512_vnni};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
