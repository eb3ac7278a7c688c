// Fractional max pooling (B. Graham, "Fractional Max-Pooling", 2014): windows of one size whose
// distances a random number of each plane and dimension decides.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/maximum.h"
#include "taper/kernels/shapes/pooling.h"

namespace taper::portable {
namespace {

/// A sample is a number in [0, 1), but any that leaves positions exact will do.
constexpr int sample_limit = 1 << 20;

/// Where window i of `count` begins.
template <class T>
index_t start_of(index_t i, index_t count, index_t in, index_t kernel, T sample) {
  const index_t last = in - kernel;
  if (i == count - 1) return last;
  const T step = static_cast<T>(last) / static_cast<T>(count - 1);
  const index_t start = static_cast<index_t>((static_cast<T>(i) + sample) * step) -
                        static_cast<index_t>(sample * step);
  return start < 0 ? 0 : start < last ? start : last;
}

template <class T>
Error forward(Context& context, View<const T> self, Span<const int64_t> kernel_size,
              Span<const int64_t>, View<const T> random_samples, View<T> out,
              View<int64_t> indices) {
  const index_t rows = self.size(-2), columns = self.size(-1), out_rows = out.size(-2),
                out_columns = out.size(-1);
  const index_t height = static_cast<index_t>(each(kernel_size, 0)),
                width = static_cast<index_t>(each(kernel_size, 1));
  const T* samples = random_samples.data();
  for (index_t i = 0; i < random_samples.numel(); ++i)
    if (!(samples[i] > -sample_limit && samples[i] < sample_limit))
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("element {} of random_samples is not in (-{}, {})"), i,
                          sample_limit, sample_limit);
  parallel_for(context.threads, self.numel() / (rows * columns), [&](index_t plane) {
    const T* x = self.data() + plane * rows * columns;
    index_t to = plane * out_rows * out_columns;
    for (index_t h = 0; h < out_rows; ++h)
      for (index_t w = 0; w < out_columns; ++w, ++to) {
        const index_t top = start_of(h, out_rows, rows, height, samples[2 * plane + 1]),
                      left = start_of(w, out_columns, columns, width, samples[2 * plane]);
        Peak<T> best{top * columns + left};
        for (index_t r = top; r < top + height; ++r)
          for (index_t c = left; c < left + width; ++c)
            best.see(x[r * columns + c], r * columns + c);
        out.data()[to] = best.value, indices.data()[to] = best.at;
      }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(fractional_max_pool2d, f32, forward<float>)
TAPER_KERNEL(fractional_max_pool2d, f64, forward<double>)

}  // namespace taper::portable
