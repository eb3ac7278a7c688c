// Padding by reflection and by replication, and the gradients. Element i of a padded dimension is
// element source(i - before) of the tensor.
#include "taper/kernels/shapes/padding.h"

#include "taper/kernels/portable/rows.h"

namespace taper::portable {
namespace {

/// The element in [0, size) that position i, which may lie outside, is copied from.
template <bool reflects>
index_t source(index_t i, index_t size) {
  if (reflects) return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/// The padding before each dimension of a tensor. The row gives these numbers from the last
/// dimension on.
struct Before {
  index_t at[max_rank] = {};

  Before(Span<const int64_t> padding, int rank) {
    for (index_t k = 0; k < padding.size() / 2; ++k)
      at[rank - 1 - k] = static_cast<index_t>(padding[2 * k]);
  }
};

template <class T, bool reflects>
Error forward(Context& context, AnyView<const T> self, Span<const int64_t> padding, View<T> out) {
  const Shape& shape = out.shape();
  const int last = shape.rank - 1;
  const Before before(padding, shape.rank);
  const index_t width = shape.sizes[last], extent = self.size(last), step = self.stride(last),
                from = before.at[last];
  const index_t begin = from < 0       ? 0
                        : from < width ? from
                                       : width,
                end = from + extent < begin   ? begin
                      : from + extent < width ? from + extent
                                              : width;
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = self.data();
    for (int d = 0; d < last; ++d)
      x += source<reflects>(at[d] - before.at[d], self.size(d)) * self.stride(d);
    T* y = out.data() + row * width;
    for (index_t i = 0; i < begin; ++i) y[i] = x[source<reflects>(i - from, extent) * step];
    copy_run(x + (begin - from) * step, step, end - begin, y + begin);
    for (index_t i = end; i < width; ++i) y[i] = x[source<reflects>(i - from, extent) * step];
  });
  return Error::ok;
}
template <class T>
constexpr auto reflect = &forward<T, true>;
template <class T>
constexpr auto replicate = &forward<T, false>;

/// An element may have several copies. Their gradients are added in row-major order, plane by
/// plane.
template <class T, bool reflects>
Error backward(Context& context, View<const T> grad_output, AnyView<const T> self,
               Span<const int64_t> padding, View<T> out) {
  const int rank = self.rank(), n = static_cast<int>(padding.size() / 2);
  const Before before(padding, rank);
  // always three padded dimensions: missing ones come first and have extent 1
  index_t planes = 1, in[3] = {1, 1, 1}, padded[3] = {1, 1, 1}, shift[3] = {};
  for (int d = 0; d < rank - n; ++d) planes *= self.size(d);
  for (int d = rank - n, k = 3 - n; d < rank; ++d, ++k)
    in[k] = self.size(d), padded[k] = grad_output.size(d), shift[k] = before.at[d];
  const index_t in_plane = in[0] * in[1] * in[2], plane_size = padded[0] * padded[1] * padded[2];
  parallel_for(context.threads, planes, [&](index_t plane) {
    const T* dy = grad_output.data() + plane * plane_size;
    T* dx = out.data() + plane * in_plane;
    for (index_t i = 0; i < in_plane; ++i) dx[i] = 0;
    for (index_t d = 0; d < padded[0]; ++d)
      for (index_t h = 0; h < padded[1]; ++h, dy += padded[2]) {
        const index_t row =
            source<reflects>(d - shift[0], in[0]) * in[1] + source<reflects>(h - shift[1], in[1]);
        for (index_t w = 0; w < padded[2]; ++w)
          dx[row * in[2] + source<reflects>(w - shift[2], in[2])] += dy[w];
      }
  });
  return Error::ok;
}

}  // namespace

#define TAPER_PADS(n)                                                       \
  TAPER_BYTES(reflection_pad##n##d, reflect)                                \
  TAPER_BYTES(replication_pad##n##d, replicate)                             \
  TAPER_KERNEL(reflection_pad##n##d_backward, f32, backward<float, true>)   \
  TAPER_KERNEL(reflection_pad##n##d_backward, f64, backward<double, true>)  \
  TAPER_KERNEL(replication_pad##n##d_backward, f32, backward<float, false>) \
  TAPER_KERNEL(replication_pad##n##d_backward, f64, backward<double, false>)
TAPER_PADS(1)
TAPER_PADS(2)
TAPER_PADS(3)

}  // namespace taper::portable
