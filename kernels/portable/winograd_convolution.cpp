// taper::winograd_convolution: each sum runs over the input channels in their order.
#include "taper/kernels/portable/image_program.h"
#include "taper/kernels/portable/widened.h"
#include "taper/kernels/portable/winograd.h"
#include "taper/kernels/shapes/channels_last.h"

namespace taper::portable {
namespace {

using In = View<const float>;
using Ints = Span<const int64_t>;

struct Plan {
  index_t to_pixel;  // from one pixel of the result to the next one
};

/// Bᵀ d B of the inputs below one tile, for one channel.
void transform_input(const In& image, index_t batch, index_t y, index_t x, index_t channel,
                     float (&to)[winograd_places]) {
  const index_t height = image.size(1), width = image.size(2), channels = image.size(3);
  float in[4][4], half[4][4];
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 4; ++j) {
      const bool inside = y + i >= 0 && y + i < height && x + j >= 0 && x + j < width;
      in[i][j] = inside
                     ? image.data()[((batch * height + y + i) * width + x + j) * channels + channel]
                     : 0.0f;
    }
  for (int j = 0; j < 4; ++j) line_of_input(in[0][j], in[1][j], in[2][j], in[3][j], &half[0][j], 4);
  for (int i = 0; i < 4; ++i)
    line_of_input(half[i][0], half[i][1], half[i][2], half[i][3], &to[4 * i], 1);
}

/// G g Gᵀ of one filter, from weights in either layout.
void filter_at(const In& weight, index_t output, index_t input, float (&to)[winograd_places]) {
  const index_t inputs = weight.size(1);
  if (weight.layout() == Layout::dense)
    return transform_filter(weight.data() + (output * inputs + input) * 9, to);
  const WinogradPanels panels{weight.data(), weight.size(0), inputs};
  for (int p = 0; p < winograd_places; ++p) to[p] = *panels.at(p, output, input);
}

/// The tile's results for `count` channels from `first` on.
void run_tile(In input, In weight, const float* bias, index_t pad_y, index_t pad_x, index_t batch,
              index_t tile_y, index_t tile_x, index_t first, int count, index_t to_pixel,
              Pixels out) {
  float sum[panel_width][winograd_places] = {}, in[winograd_places], filter[winograd_places];
  for (index_t c = 0; c < input.size(3); ++c) {
    transform_input(input, batch, 2 * tile_y - pad_y, 2 * tile_x - pad_x, c, in);
    for (int o = 0; o < count; ++o) {
      filter_at(weight, first + o, c, filter);
      for (int p = 0; p < winograd_places; ++p) sum[o][p] += filter[p] * in[p];
    }
  }
  for (int o = 0; o < count; ++o) {
    const float* m = sum[o];
    float half[2][4];
    for (int j = 0; j < 4; ++j) {
      half[0][j] = m[j] + m[4 + j] + m[8 + j];
      half[1][j] = m[4 + j] - m[8 + j] - m[12 + j];
    }
    for (index_t i = 0; i < 2; ++i) {
      const float* h = half[i];
      const float pair[2] = {h[0] + h[1] + h[2], h[1] - h[2] - h[3]};
      for (index_t j = 0; j < 2; ++j) {
        const index_t y = 2 * tile_y + i, x = 2 * tile_x + j;
        if (y >= out.size(1) || x >= out.size(2)) continue;
        out.data()[((batch * out.size(1) + y) * out.size(2) + x) * to_pixel + first + o] =
            pair[j] + (bias != nullptr ? bias[first + o] : 0.0f);
      }
    }
  }
}

Error prepare(Context& context, Plan& plan, In, In, Maybe<In>, Ints, ViewList<const float>, Ints,
              Span<const double>, Pixels out) {
  return take_pixel_step(context, out, plan.to_pixel);
}

Error run(Context& context, const Plan& plan, In input, In weight, Maybe<In> bias, Ints padding,
          ViewList<const float> others, Ints program, Span<const double> constants, Pixels out) {
  const index_t channels = out.size(3), row = out.size(2);
  const WinogradTiles tiles = winograd_tiles(out.size(1), out.size(2));
  const auto finish = program_over(program, constants, others, out, plan.to_pixel);
  parallel_for(context.threads, out.size(0) * tiles.rows, [&](index_t task) {
    const index_t batch = task / tiles.rows, y = task % tiles.rows;
    for (index_t x = 0; x < tiles.columns; ++x)
      for (index_t first = 0; first < channels; first += panel_width) {
        const index_t rest = channels - first;
        run_tile(input, weight, bias ? bias->data() : nullptr, padding[0],
                 padding[padding.size() - 1], batch, y, x, first,
                 static_cast<int>(rest < panel_width ? rest : panel_width), plan.to_pixel, out);
      }
    if (program.empty()) return;
    const index_t first = batch * out.size(1) + 2 * y, rows = 2 * y + 2 <= out.size(1) ? 2 : 1;
    finish.run(fused::run_portable_program, first * row, rows * row, 0, channels);
  });
  return Error::ok;
}

// Filters that a file may hold in panels or in halves.
constexpr WidenedPackings<1> reads_filters{to_f32_layout<1, Layout::winograd_panels>};

}  // namespace

TAPER_RECORD(taper_winograd_convolution, taper_winograd_convolution_f32, {}, reads_filters, prepare,
             run)

}  // namespace taper::portable
