// The geometry of resampling, for kernels: the distance between positions of the result, and the
// elements of the input that each position is computed from.
#pragma once
#include <cmath>

#include "taper/kernels/portable/cubic.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

enum class Method { nearest, nearest_exact, linear, cubic };
constexpr bool is_nearest(Method m) { return m == Method::nearest || m == Method::nearest_exact; }
constexpr int taps_of(Method m) { return is_nearest(m) ? 1 : m == Method::linear ? 2 : 4; }

struct Axis {
  index_t in, out;
  Maybe<double> scale;

  /// The distance between two neighbouring positions of the result, in elements of the input.
  template <class T>
  T step(bool align_corners) const {
    if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
    return scale ? static_cast<T>(1 / *scale) : static_cast<T>(in) / static_cast<T>(out);
  }
};

/// Always three dimensions: missing ones come first and have extent 1.
struct Resampling {
  index_t planes;
  Axis axis[3];
  bool align_corners;
  bool is_small_image;  ///< two dimensions whose sizes in the result add up to at most 128

  index_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
};

inline Resampling resampling_of(const Shape& in, const Shape& out, bool align_corners,
                                const Maybe<double>* scales) {
  const int missing = 5 - in.rank;
  const bool is_small_image = out.rank == 4 && out.sizes[2] <= 128 - out.sizes[3];
  Resampling p{in.sizes[0] * in.sizes[1], {}, align_corners, is_small_image};
  for (int d = 0; d < 3; ++d) {
    const int i = d - missing;
    p.axis[d] = i < 0 ? Axis{1, 1, {}} : Axis{in.sizes[2 + i], out.sizes[2 + i], scales[i]};
  }
  return p;
}
template <class... Scales>
Resampling resampling_of(const Shape& in, const Shape& out, bool align_corners, Scales... scales) {
  const Maybe<double> list[] = {scales...};
  return resampling_of(in, out, align_corners, list);
}
template <class... Scales>
Resampling resampling_of(const Shape& in, const Shape& out, Maybe<double> first, Scales... scales) {
  return resampling_of(in, out, false, first, scales...);
}

template <class W, int count>
struct Taps {
  index_t at[count];  ///< in elements from the beginning of the line
  W weight[count];
};

/// The element that position `i` of the result takes, for a nearest method. Where a position is a
/// whole number, rounding decides between two elements. So this follows PyTorch's own roundings: T
/// is the type of positions, and a float is rounded down.
template <Method method, class T>
index_t nearest_at(const Axis& axis, index_t i) {
  static_assert(is_nearest(method));
  const T place = static_cast<T>(i) + (method == Method::nearest ? T(0) : T(0.5));
  const float at = std::floor(static_cast<float>(axis.step<T>(false) * place));
  const index_t last = axis.in - 1;
  return at < static_cast<float>(last) ? static_cast<index_t>(at) : last;
}
/// The same for a dimension of an image in PyTorch's kernel for small images (is_small_image).
/// There, positions are floats for every dtype. If a size stays or doubles, the scale is ignored.
template <Method method>
index_t nearest_in_small_image(const Axis& axis, index_t i) {
  if (method == Method::nearest && axis.out == axis.in) return i;
  if (method == Method::nearest && axis.out == 2 * axis.in) return i / 2;
  return nearest_at<method, float>(axis, i);
}

/// The taps of position `i` of the result, for a linear or cubic method. `stride`: that of the
/// input.
template <Method method, class W>
Taps<W, taps_of(method)> taps_at(const Axis& axis, W step, bool align_corners, index_t stride,
                                 index_t i) {
  static_assert(!is_nearest(method));
  const index_t last = axis.in - 1;
  const auto inside = [&](index_t at) { return (at < 0 ? 0 : at > last ? last : at) * stride; };
  Taps<W, taps_of(method)> taps;
  const W position = static_cast<W>(i);
  W at = align_corners ? step * position : step * (position + W(0.5)) - W(0.5);
  if (method == Method::linear && at < 0) at = 0;
  if (method == Method::linear && axis.in == axis.out) at = position;  // whatever the scale
  const index_t first =
      at < static_cast<W>(last) ? static_cast<index_t>(std::floor(at)) : last;  // at least -1
  W rest = at - static_cast<W>(first);
  rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
  if constexpr (method == Method::linear) {
    taps.weight[0] = 1 - rest, taps.weight[1] = rest;
    const bool stays = axis.in == axis.out;  // then a NaN in the next element does not matter
    for (int k = 0; k < 2; ++k) taps.at[k] = inside(stays ? first : first + k);
  } else if constexpr (method == Method::cubic) {
    cubic_weights(rest, taps.weight);
    for (int k = 0; k < 4; ++k) taps.at[k] = inside(first - 1 + k);
  }
  return taps;
}

}  // namespace taper::portable
