// Rows of what resizes images.
#include <algorithm>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/call.h"
#include "taper/kernels/portable/upsample_taps.h"

namespace taper::delegates::xnnpack {
namespace resizing {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;
// ---- resizing ----

/// The scale of a result that has exactly scale * size pixels is what the library computes.
bool is_ratio(const double* scale, Dim from, Dim to) {
  return scale == nullptr ||
         static_cast<double>(to.value()) == *scale * static_cast<double>(from.value());
}
std::string refuses_resize(const Node& node) {
  const Call<ops::upsample_bilinear2d> c(node);
  const Dim* from = c.get<"self">()->type.sizes + 2;
  const Dim* to = node.result()->type.sizes + 2;
  for (int d = 0; d < 2; ++d)
    if (!from[d].is_constant() || !to[d].is_constant()) return "a size of an image is symbolic";
  if (std::max({from[0].value(), from[1].value(), to[0].value(), to[1].value()}) > most_step)
    return "an image has a side of more than 32768 pixels";
  if (!c.get<"align_corners">() && (!is_ratio(c.get<"scales_h">(), from[0], to[0]) ||
                                    !is_ratio(c.get<"scales_w">(), from[1], to[1])))
    return "its scale is not that of its sizes";
  return "";
}
void lower_resize(Lowering& out, const Node& node) {
  const Call<ops::upsample_bilinear2d> c(node);
  const Dim* to = node.result()->type.sizes + 2;
  const Ref x = out.ref(c.get<"self">(), Order::channels_last);
  out.define(node.result(),
             out.add(Kind::resize_bilinear, Function::none, {x},
                     {to[0].value(), to[1].value(), c.get<"align_corners">() ? 1 : 0}),
             Order::channels_last);
}

// ---- the nearest pixel: each pixel several times ----

/// How often a pixel comes along an axis; 0: not equally often.
int64_t times(Dim from, Dim to, const double* scale) {
  if (!from.is_constant() || !to.is_constant() || to.value() % from.value() != 0 ||
      !is_ratio(scale, from, to))
    return 0;
  return to.value() / from.value();
}
template <const Operator& op>
std::vector<int64_t> times_of(const Node& node) {
  const Call<op> c(node);
  const Dim *from = c.template get<"self">()->type.sizes + 2, *to = node.result()->type.sizes + 2;
  return {times(from[0], to[0], c.template get<"scales_h">()),
          times(from[1], to[1], c.template get<"scales_w">())};
}
/// Whether each pixel comes equally often. PyTorch multiplies the place of a pixel by a rounded
/// scale: pixel 41 of 82 is 0.99999994, and so takes pixel 0 of 2.
template <const Operator& op>
bool repeats_pixels(const Node& node) {
  using portable::Axis, portable::Method;
  constexpr Method method =
      &op == &ops::upsample_nearest2d ? Method::nearest : Method::nearest_exact;
  const Call<op> c(node);
  const double* scales[] = {c.template get<"scales_h">(), c.template get<"scales_w">()};
  const Dim *from = c.template get<"self">()->type.sizes + 2, *to = node.result()->type.sizes + 2;
  const bool is_small = to[0].value() <= 128 - to[1].value();
  for (int d = 0; d < 2; ++d) {
    const int64_t times = to[d].value() / from[d].value();
    Axis axis{static_cast<index_t>(from[d].value()), static_cast<index_t>(to[d].value()), {}};
    if (scales[d] != nullptr) axis.scale = {*scales[d], true};
    for (index_t i = 0; i < axis.out; ++i) {
      const index_t at = is_small ? portable::nearest_in_small_image<method>(axis, i)
                                  : portable::nearest_at<method, float>(axis, i);
      if (at != i / times) return false;
    }
  }
  return true;
}
template <const Operator& op>
std::string refuses_nearest(const Node& node) {
  const std::vector<int64_t> n = times_of<op>(node);
  if (n[0] == 0 || n[1] == 0) return "its scale is no whole number";
  if (!repeats_pixels<op>(node)) return "its positions are rounded to other pixels";
  return node.result()->type.sizes[1].is_constant() ? "" : "the number of channels is symbolic";
}
template <const Operator& op>
void lower_nearest(Lowering& out, const Node& node) {
  const std::vector<int64_t> n = times_of<op>(node),
                             to = numbers_or_zero({node.result()->type.sizes[1],
                                                   node.result()->type.sizes[2],
                                                   node.result()->type.sizes[3]});
  const Ref x = out.ref(Call<op>(node).template get<"self">(), Order::channels_last);
  // (batch, height, width, n channels), and then (batch, height, n rows)
  const auto repeated = [&](Ref images, int64_t count, int64_t axis) {
    return out.joined(std::vector<Ref>(static_cast<size_t>(count), images), axis);
  };
  const auto reshaped = [&](Ref images, std::vector<int64_t> sizes) {
    return out.add(Kind::reshape, Function::none, {images}, std::move(sizes));
  };
  const int64_t channels = to[0], height = to[1], width = to[2];
  const Ref wide = repeated(x, n[1], 3);
  const Ref high = repeated(reshaped(wide, {0, height / n[0], width * channels}), n[0], 2);
  out.define(node.result(), reshaped(high, {0, height, width, channels}), Order::channels_last);
}

const Row rows[] = {
    {&ops::upsample_bilinear2d, refuses_resize, lower_resize},
    {&ops::upsample_nearest2d, refuses_nearest<ops::upsample_nearest2d>,
     lower_nearest<ops::upsample_nearest2d>},
    {&ops::_upsample_nearest_exact2d, refuses_nearest<ops::_upsample_nearest_exact2d>,
     lower_nearest<ops::_upsample_nearest_exact2d>},
};

}  // namespace
}  // namespace resizing

std::span<const Row> resizing_rows() { return resizing::rows; }

}  // namespace taper::delegates::xnnpack
