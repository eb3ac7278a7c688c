// The geometry of convolution and its gradients, which are three ways through one cross-correlation
// y = x * w:
//
//   x  (batch, groups * inputs, in…)    w  (groups * outputs, inputs, kernel…)
//   y  (batch, groups * outputs, out…)
//   y[o, p] = sum over i, k of w[o, i, k] x[i, p * stride - padding + k * dilation]
#pragma once
#include "taper/runtime/core/span.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// Always three spatial dimensions (depth, height, width): missing ones come first and have
/// extent 1.
struct Correlation {
  index_t batch, groups, inputs, outputs;  ///< inputs and outputs: channels of one group
  index_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  index_t in_plane() const { return in[0] * in[1] * in[2]; }
  index_t out_plane() const { return out[0] * out[1] * out[2]; }
  index_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// Whether both images can be counted with zeros between and around their elements, wherever a
/// kernel puts them. In a hostile file, sizes may be up to 2^30 each although all tensors are
/// small. So kernels that copy an image ask this before they multiply more than two sizes.
inline bool is_countable(const Correlation& c) {
  constexpr int64_t limit = int64_t{1} << 48, longest = int64_t{1} << 32;
  int64_t count;
  if (__builtin_add_overflow(int64_t{c.inputs}, int64_t{c.outputs}, &count) ||
      __builtin_mul_overflow(count, int64_t{c.groups}, &count))
    return false;
  for (int d = 0; d < 3; ++d) {
    const int64_t in = c.in[d], out = c.out[d], kernel = c.kernel[d];
    if (in > longest || out > longest || kernel > longest) return false;
    const int64_t extent = in + out + 2 * int64_t{c.padding[d]} + kernel * int64_t{c.dilation[d]} +
                           int64_t{c.stride[d]};
    if (__builtin_mul_overflow(count, extent, &count) || count > limit) return false;
  }
  return true;
}

/// `x` and `y` are the shapes on the two sides, whichever of them is computed. A list of one number
/// holds for every dimension.
inline Correlation correlation_of(const Shape& x, const Shape& y, const Shape& weight,
                                  Span<const int64_t> stride, Span<const int64_t> padding,
                                  Span<const int64_t> dilation, int64_t groups) {
  Correlation c;
  c.batch = x.sizes[0], c.groups = static_cast<index_t>(groups);
  c.inputs = weight.sizes[1], c.outputs = weight.sizes[0] / c.groups;
  const int missing = 3 - (x.rank - 2);
  const auto each = [](Span<const int64_t> list, int i) {
    return static_cast<index_t>(list[list.size() == 1 ? 0 : i]);
  };
  for (int d = 0; d < 3; ++d) {
    const int i = d - missing;
    c.in[d] = c.out[d] = c.kernel[d] = c.stride[d] = c.dilation[d] = 1, c.padding[d] = 0;
    if (i < 0) continue;
    c.in[d] = x.sizes[i + 2], c.out[d] = y.sizes[i + 2], c.kernel[d] = weight.sizes[i + 2];
    c.stride[d] = each(stride, i), c.padding[d] = each(padding, i),
    c.dilation[d] = each(dilation, i);
  }
  return c;
}

}  // namespace taper::portable
