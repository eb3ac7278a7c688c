#include "taper/kernels/optimized/filter_gradient.h"

#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/pays.h"

namespace taper::optimized {
namespace {

using portable::Correlation;

/// The results whose tap k lies inside the image, along one dimension.
struct Inside {
  index_t begin, end, first;  ///< `first`: where the tap of result `begin` lies
  Inside(const Correlation& c, int d, index_t k) {
    const index_t shift = k * c.dilation[d] - c.padding[d], stride = c.stride[d];
    begin = shift < 0 ? ceil_div(-shift, stride) : 0;
    end = shift < c.in[d] ? smaller(c.out[d], ceil_div(c.in[d] - shift, stride)) : 0;
    end = larger(begin, end);
    first = begin * stride + shift;
  }
};

/// The sum of y x over the rows of a plane. Element i of a row of x is x[i * step].
struct PlaneProduct {
  index_t rows, width, y_row, x_row, step;
  const float *y, *x;
};
constexpr int lanes = 32;

/// Adds term(i) to lane i % 32 for each i < n.
template <class Term>
void add_terms(index_t n, float (&lane)[lanes], const Term& term) {
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) lane[l] += term(i + l);
  }
  const int rest = static_cast<int>(n - i);
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) lane[l] += l < rest ? term(i + l) : 0.0f;
}

template <bool dense>
float plane_product(const PlaneProduct& p) {
  const index_t step = dense ? 1 : p.step, y_row = p.y_row, x_row = p.x_row;
  const float *y = p.y, *x = p.x;
  float lane[lanes] = {};
  index_t r = 0;
  for (; r + 4 <= p.rows; r += 4, y += 4 * y_row, x += 4 * x_row)
    add_terms(p.width, lane, [=](index_t i) {
      const float *a = y + i, *b = x + i * step;
      return (a[0] * b[0] + a[y_row] * b[x_row]) +
             (a[2 * y_row] * b[2 * x_row] + a[3 * y_row] * b[3 * x_row]);
    });
  for (; r < p.rows; ++r, y += y_row, x += x_row)
    add_terms(p.width, lane, [=](index_t i) { return y[i] * x[i * step]; });
  return portable::join_lanes(lane);
}

}  // namespace

template <CpuLevel level>
void run_filter_gradient(const Correlation& c, const float* x, const float* y, float* weight,
                         const Threads* threads) {
  threads = portable::if_it_pays(
      threads, c.groups * c.outputs * c.inputs * c.taps() * c.batch * c.out_plane());
  parallel_for(threads, c.groups * c.outputs * c.inputs, [&](index_t filter) {
    const index_t output = filter / c.inputs,
                  input = output / c.outputs * c.inputs + filter % c.inputs;
    float* w = weight + filter * c.taps();
    for (index_t d = 0; d < c.kernel[0]; ++d)
      for (index_t h = 0; h < c.kernel[1]; ++h)
        for (index_t k = 0; k < c.kernel[2]; ++k) {
          const Inside z(c, 0, d), rows(c, 1, h), columns(c, 2, k);
          float sum = 0;
          for (index_t n = 0; n < c.batch; ++n) {
            const float* from = x + (n * c.groups * c.inputs + input) * c.in_plane();
            const float* result = y + (n * c.groups * c.outputs + output) * c.out_plane();
            for (index_t i = z.begin; i < z.end; ++i) {
              const index_t depth = z.first + (i - z.begin) * c.stride[0];
              const PlaneProduct product{
                  rows.end - rows.begin,
                  columns.end - columns.begin,
                  c.out[2],
                  c.stride[1] * c.in[2],
                  c.stride[2],
                  result + (i * c.out[1] + rows.begin) * c.out[2] + columns.begin,
                  from + (depth * c.in[1] + rows.first) * c.in[2] + columns.first};
              sum += product.step == 1 ? AtLevel<level, &plane_product<true>>::call(product)
                                       : AtLevel<level, &plane_product<false>>::call(product);
            }
          }
          *w++ = sum;
        }
  });
}

#define TAPER_FILTER_GRADIENT(level)                                                   \
  template void run_filter_gradient<CpuLevel::level>(const Correlation&, const float*, \
                                                     const float*, float*, const Threads*);
TAPER_FILTER_GRADIENT(portable)
#if TAPER_X86_LEVELS
TAPER_FILTER_GRADIENT(avx2)
TAPER_FILTER_GRADIENT(avx512)
#endif

}  // namespace taper::optimized
