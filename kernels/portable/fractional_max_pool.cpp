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

/// The windows along one dimension. A dimension that is not there has one window of one element.
template <class T>
struct Starts {
  index_t extent = 1, count = 1, kernel = 1;
  T sample = 0;
  index_t operator[](index_t i) const { return start_of(i, count, extent, kernel, sample); }
};

/// Pools one plane or volume of depth, height and width.
template <class T>
void pool_plane(const T* x, const Starts<T>& depth, const Starts<T>& height, const Starts<T>& width,
                T* y, int64_t* indices) {
  for (index_t d = 0; d < depth.count; ++d)
    for (index_t h = 0; h < height.count; ++h)
      for (index_t w = 0; w < width.count; ++w, ++y, ++indices) {
        const index_t front = depth[d], top = height[h], left = width[w];
        Peak<T> best{(front * height.extent + top) * width.extent + left};
        for (index_t z = front; z < front + depth.kernel; ++z)
          for (index_t r = top; r < top + height.kernel; ++r)
            for (index_t c = left; c < left + width.kernel; ++c) {
              const index_t at = (z * height.extent + r) * width.extent + c;
              best.see(x[at], at);
            }
        *y = best.value, *indices = best.at;
      }
}

/// n pooled dimensions. The samples of a plane are those of width and height, in this order; the
/// samples of a volume those of depth, height and width. This is PyTorch's order.
template <class T, int n>
Error forward(Context& context, View<const T> self, Span<const int64_t> kernel_size,
              Span<const int64_t>, View<const T> random_samples, View<T> out,
              View<int64_t> indices) {
  const T* samples = random_samples.data();
  for (index_t i = 0; i < random_samples.numel(); ++i)
    if (!(samples[i] > -sample_limit && samples[i] < sample_limit))
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("element {} of random_samples is not in (-{}, {})"), i,
                          sample_limit, sample_limit);
  Starts<T> dims[3];
  index_t elements = 1, results = 1;
  for (int i = 0; i < n; ++i) {
    Starts<T>& dim = dims[3 - n + i];
    dim.extent = self.size(i - n), dim.count = out.size(i - n);
    dim.kernel = static_cast<index_t>(each(kernel_size, i));
    elements *= dim.extent, results *= dim.count;
  }
  parallel_for(context.threads, self.numel() / elements, [&](index_t plane) {
    Starts<T> starts[3] = {dims[0], dims[1], dims[2]};
    for (int i = 0; i < n; ++i)
      starts[3 - n + i].sample = samples[n * plane + (n == 2 ? 1 - i : i)];
    pool_plane(self.data() + plane * elements, starts[0], starts[1], starts[2],
               out.data() + plane * results, indices.data() + plane * results);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(fractional_max_pool2d, f32, forward<float, 2>)
TAPER_KERNEL(fractional_max_pool2d, f64, forward<double, 2>)
TAPER_KERNEL(fractional_max_pool3d, f32, forward<float, 3>)
TAPER_KERNEL(fractional_max_pool3d, f64, forward<double, 3>)

}  // namespace taper::portable
