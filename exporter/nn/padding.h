// Layers that pad the last n dimensions. `padding` is one number for all sides, or pairs (before,
// after) from the last dimension on. Negative numbers crop.
#pragma once
#include <array>
#include <concepts>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// What stands around the input.
enum class PaddingMode {
  zeros,
  reflect,    ///< the input mirrored, its edge not repeated
  replicate,  ///< its edge repeated
  circular    ///< what leaves at one end comes back at the other
};

/// The mode's name for eager::pad.
const char* word(PaddingMode mode);

/// One number, or two for each dimension.
template <int n>
struct Sides {
  std::array<int64_t, 2 * n> values;

  template <std::integral T>
  Sides(T all) {
    values.fill(static_cast<int64_t>(all));
  }
  template <std::integral... T>
  requires(sizeof...(T) == 2 * n) Sides(T... each) : values{static_cast<int64_t>(each)...} {}
};

/// A layer that pads in one of the modes. `value` is for the mode zeros.
template <int n>
class Pad : public Layer {
 public:
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 protected:
  Pad(Sides<n> padding, PaddingMode mode, double value = 0)
      : padding_(padding), mode_(mode), value_(value) {}

 private:
  Sides<n> padding_;
  PaddingMode mode_;
  double value_;
};

template <int n>
struct ConstantPad : Pad<n> {
  ConstantPad(Sides<n> padding, double value) : Pad<n>(padding, PaddingMode::zeros, value) {}
};
template <int n>
struct ZeroPad : Pad<n> {
  explicit ZeroPad(Sides<n> padding) : Pad<n>(padding, PaddingMode::zeros) {}
};
template <int n>
struct ReflectionPad : Pad<n> {
  explicit ReflectionPad(Sides<n> padding) : Pad<n>(padding, PaddingMode::reflect) {}
};
template <int n>
struct ReplicationPad : Pad<n> {
  explicit ReplicationPad(Sides<n> padding) : Pad<n>(padding, PaddingMode::replicate) {}
};
template <int n>
struct CircularPad : Pad<n> {
  explicit CircularPad(Sides<n> padding) : Pad<n>(padding, PaddingMode::circular) {}
};

using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;
using ZeroPad1d = ZeroPad<1>;
using ZeroPad2d = ZeroPad<2>;
using ZeroPad3d = ZeroPad<3>;
using ReflectionPad1d = ReflectionPad<1>;
using ReflectionPad2d = ReflectionPad<2>;
using ReflectionPad3d = ReflectionPad<3>;
using ReplicationPad1d = ReplicationPad<1>;
using ReplicationPad2d = ReplicationPad<2>;
using ReplicationPad3d = ReplicationPad<3>;
using CircularPad1d = CircularPad<1>;
using CircularPad2d = CircularPad<2>;
using CircularPad3d = CircularPad<3>;

}  // namespace taper::nn
