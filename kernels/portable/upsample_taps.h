// The geometry of resampling, for kernels: how far positions of the result are apart, and which
// elements of the input each is made of.
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

  /// The distance of two positions of the result, in elements of the input.
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

  index_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
};

inline Resampling resampling_of(const Shape& in, const Shape& out, bool align_corners,
                                const Maybe<double>* scales) {
  const int missing = 5 - in.rank;
  Resampling p{in.sizes[0] * in.sizes[1], {}, align_corners};
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
  index_t at[count];  ///< in elements from the first of the line
  W weight[count];
};

/// The taps of result `i`. `stride`: of the input.
template <Method method, class W>
Taps<W, taps_of(method)> taps_at(const Axis& axis, W step, bool align_corners, index_t stride,
                                 index_t i) {
  const index_t last = axis.in - 1;
  const auto inside = [&](index_t at) { return (at < 0 ? 0 : at > last ? last : at) * stride; };
  Taps<W, taps_of(method)> taps;
  const W position = static_cast<W>(i);
  if constexpr (is_nearest(method)) {
    const W at = std::floor(step * (method == Method::nearest ? position : position + W(0.5)));
    taps.at[0] = at < static_cast<W>(last) ? inside(static_cast<index_t>(at)) : last * stride;
    taps.weight[0] = 1;
    return taps;
  }
  W at = align_corners ? step * position : step * (position + W(0.5)) - W(0.5);
  if (method == Method::linear && at < 0) at = 0;
  if (method == Method::linear && axis.in == axis.out) at = position;  // whatever the scale
  const index_t first =
      at < static_cast<W>(last) ? static_cast<index_t>(std::floor(at)) : last;  // at least -1
  W rest = at - static_cast<W>(first);
  rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
  if constexpr (method == Method::linear) {
    taps.weight[0] = 1 - rest, taps.weight[1] = rest;
    for (int k = 0; k < 2; ++k) taps.at[k] = inside(first + k);
  } else if constexpr (method == Method::cubic) {
    cubic_weights(rest, taps.weight);
    for (int k = 0; k < 4; ++k) taps.at[k] = inside(first - 1 + k);
  }
  return taps;
}

}  // namespace taper::portable
