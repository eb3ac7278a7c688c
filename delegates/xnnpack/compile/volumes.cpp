// With channels last, a volume is (batch, depth, height, width, channels): batch * depth images.
// A window that is one image deep goes over these images. A window of one pixel, but deeper, goes
// over images (depth, height * width). Of another window, each image gets the channels of all
// images below the window.
#include "taper/delegates/xnnpack/compile/volumes.h"

#include <algorithm>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::delegates::xnnpack {
namespace volumes {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;
using Numbers = std::vector<int64_t>;

/// How a window goes over (depth, height, width).
struct Window {
  Numbers size, strides, paddings, dilations;

  bool is_flat() const { return size[0] == 1 && strides[0] == 1 && paddings[0] == 0; }
  bool is_of_one_pixel() const {
    for (size_t d = 1; d < 3; ++d)
      if (size[d] != 1 || strides[d] != 1 || paddings[d] != 0) return false;
    return true;
  }
  /// Strides, paddings and dilations of images.
  Numbers over_pixels() const {
    return {strides[1], strides[2], paddings[1], paddings[2], dilations[1], dilations[2]};
  }
  Numbers over_depth() const { return {strides[0], 1, paddings[0], 0, dilations[0], 1}; }
};

Window window_of(const Call<ops::convolution>& c) {
  const Numbers weight = sizes_of(*c.get<"weight">());
  return {{weight.begin() + 2, weight.end()},
          several(c.get<"stride">(), 3, {1, 1, 1}),
          several(c.get<"padding">(), 3, {0, 0, 0}),
          several(c.get<"dilation">(), 3, {1, 1, 1})};
}

bool has_fixed_images(const Value& v) { return has_fixed_sizes(v, 1); }

/// (depth, height, width, channels)
Numbers sizes_behind_batch(const Value& v) {
  const Numbers s = numbers({v.type.sizes + 1, v.type.sizes + 5});
  return {s[1], s[2], s[3], s[0]};
}

// ---- convolutions ----

class Convolution {
 public:
  Convolution(Lowering& out, const Node& node)
      : out_(out),
        call_(node),
        weight_(call_.get<"weight">()),
        window_(window_of(call_)),
        from_(sizes_behind_batch(*call_.get<"input">())),
        to_(sizes_behind_batch(*node.result())),
        groups_(call_.get<"groups">().value()),
        is_depthwise_(groups_ > 1 && weight_->type.sizes[1].value() == 1) {}

  Ref add() {
    const Ref x = out_.ref(call_.get<"input">(), Order::channels_last);
    Ref y;
    if (window_.is_flat())
      y = over_images(reshaped(x, {0, from_[1], from_[2], from_[3]}), 0, bias());
    else if (window_.is_of_one_pixel())
      y = over_depth(x);
    else
      y = over_both(x);
    return reshaped(y, joined({{0}, to_}));
  }

 private:
  Ref reshaped(Ref x, Numbers sizes) {
    return out_.add(Kind::reshape, Function::none, {x}, std::move(sizes));
  }
  Ref bias() {
    const Value* bias = call_.get<"bias">();
    return bias == nullptr ? Ref() : out_.ref(bias);
  }
  /// The node with the filter of these weights (outputs, inputs / groups, height, width).
  Ref convolved(Ref x, const eager::Tensor& weights, Ref bias, Numbers numbers, int64_t groups) {
    if (!is_depthwise_) numbers.push_back(groups);
    const Ref filter =
        out_.permuted(weight_, weights, is_depthwise_ ? Numbers{1, 2, 3, 0} : Numbers{0, 2, 3, 1});
    return out_.add(is_depthwise_ ? Kind::depthwise : Kind::convolution, Function::none,
                    {x, filter, bias}, std::move(numbers));
  }
  /// Images under the part of the filter that lies so deep.
  Ref over_images(Ref images, int64_t depth, Ref bias) {
    return convolved(images, eager::select(out_.elements(weight_), 2, depth), bias,
                     window_.over_pixels(), groups_);
  }
  Ref over_depth(Ref x) {
    const Ref columns = reshaped(x, {0, from_[0], from_[1] * from_[2], from_[3]});
    const eager::Tensor weights = eager::select(out_.elements(weight_), 4, 0);
    return convolved(columns, weights, bias(), window_.over_depth(), groups_);
  }

  Ref over_both(Ref x) {
    const std::vector<Ref> images = images_below_window(x);
    const int64_t depth = window_.size[0];
    if (groups_ == 1) {
      // (outputs, inputs, depth, height, width) -> (outputs, depth * inputs, height, width)
      const Numbers w = sizes_of(*weight_);
      const eager::Tensor weights =
          eager::reshape(eager::permute(out_.elements(weight_), {0, 2, 1, 3, 4}),
                         {w[0], depth * w[1], w[3], w[4]});
      return convolved(out_.joined(images, 3), weights, bias(), window_.over_pixels(), 1);
    }
    Ref sum;
    for (int64_t d = 0; d < depth; ++d) {
      const Ref y = over_images(images[static_cast<size_t>(d)], d, d == 0 ? bias() : Ref());
      sum = d == 0 ? y : out_.add(Kind::binary, Function::add, {sum, y});
    }
    return sum;
  }

  /// For each depth of the window, the images that lie there below one of its places.
  std::vector<Ref> images_below_window(Ref x) {
    const int64_t stride = window_.strides[0], dilation = window_.dilations[0], count = to_[0];
    const int64_t last = (window_.size[0] - 1) * dilation;
    // as many as (steps, stride) holds
    const int64_t steps = last / stride + count, before = window_.paddings[0];
    const int64_t behind = steps * stride - before - from_[0];
    if (before > 0 || behind > 0)
      x = out_.add(Kind::pad, Function::none, {x},
                   {0, before, 0, 0, 0, 0, std::max<int64_t>(behind, 0), 0, 0, 0}, {0});
    if (behind < 0)
      x = out_.add(Kind::slice, Function::none, {x}, {0, 0, 0, 0, 0, 0, steps * stride, 0, 0, 0});
    if (stride > 1) x = reshaped(x, {0, steps, stride, from_[1], from_[2], from_[3]});
    std::vector<Ref> images;
    for (int64_t d = 0; d <= last; d += dilation) {
      Numbers slice = {0, d / stride, 0, 0, 0, 0, count, 0, 0, 0};
      if (stride > 1) slice = {0, d / stride, d % stride, 0, 0, 0, 0, count, 1, 0, 0, 0};
      images.push_back(reshaped(out_.add(Kind::slice, Function::none, {x}, std::move(slice)),
                                {0, from_[1], from_[2], from_[3]}));
    }
    return images;
  }

  Lowering& out_;
  const Call<ops::convolution> call_;
  const Value* weight_;
  const Window window_;
  const Numbers from_, to_;  ///< sizes behind the batch
  const int64_t groups_;
  const bool is_depthwise_;
};

// ---- pools: over the pixels of each image, and then over the depth ----

template <const Operator& op>
Window window_of_pool(const Call<op>& c) {
  const Numbers size = several(c.template get<"kernel_size">(), 3, {});
  return {size,
          several(c.template get<"stride">(), 3, size),
          several(c.template get<"padding">(), 3, {0, 0, 0}),
          {1, 1, 1}};
}

/// What the runtime refuses of the two pools.
std::string refuses_area(const Window& w) {
  if (std::string reason = refuses_steps(joined({w.size, w.strides, w.paddings})); !reason.empty())
    return reason;
  return w.size[1] * w.size[2] > most_step ? "its window has more than 32768 pixels" : "";
}

template <const Operator& op>
std::string refuses_pool(const Node& node) {
  const Call<op> c(node);
  const Value &x = *c.template get<"self">(), &y = *node.result();
  if (x.type.rank != 5) return "only batches of volumes are taken";
  if (!has_fixed_images(x) || !has_fixed_images(y)) return "a size of a volume is symbolic";
  const Window w = window_of_pool(c);
  if constexpr (&op == &ops::max_pool3d_with_indices) {
    if (several(c.template get<"dilation">(), 3, {1, 1, 1}) != Numbers{1, 1, 1})
      return "its dilation is not 1";
  } else {
    if (c.template get<"divisor_override">() != nullptr) return "divisor_override is not taken";
    if (w.paddings != Numbers{0, 0, 0}) return "an average with padding is not taken";
  }
  if (std::string reason = refuses_area(w); !reason.empty()) return reason;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t from = x.type.sizes[d + 2].value(), to = y.type.sizes[d + 2].value();
    if (w.strides[d] > w.size[d] || w.paddings[d] >= w.size[d])
      return "its stride or padding is larger than its window";
    if ((to - 1) * w.strides[d] + w.size[d] > from + 2 * w.paddings[d])
      return "its last window reaches beyond the volume";
  }
  return "";
}

template <Kind kind>
void add_pools(Lowering& out, const Node& node, const Value* volumes, const Window& w) {
  const Numbers from = sizes_behind_batch(*volumes), to = sizes_behind_batch(*node.result());
  Ref x = out.ref(volumes, Order::channels_last);
  const auto pool = [&](Numbers sizes, Numbers numbers) {
    if (numbers[0] * numbers[1] == 1) return;
    if (kind == Kind::max_pool) numbers.insert(numbers.end(), {1, 1});
    x = out.add(Kind::reshape, Function::none, {x}, std::move(sizes));
    x = out.add(kind, Function::none, {x}, std::move(numbers));
  };
  pool({0, from[1], from[2], from[3]},
       {w.size[1], w.size[2], w.strides[1], w.strides[2], w.paddings[1], w.paddings[2]});
  pool({0, from[0], to[1] * to[2], from[3]}, {w.size[0], 1, w.strides[0], 1, w.paddings[0], 0});
  out.define(node.result(), out.add(Kind::reshape, Function::none, {x}, joined({{0}, to})),
             Order::channels_last);
}
template <const Operator& op, Kind kind>
void lower_pool(Lowering& out, const Node& node) {
  const Call<op> c(node);
  add_pools<kind>(out, node, c.template get<"self">(), window_of_pool(c));
}

/// The window of an adaptive pool: it divides the sizes; none: it does not.
Numbers divided_window(const Node& node) {
  const Value &x = *Call<ops::_adaptive_avg_pool3d>(node).get<"self">(), &y = *node.result();
  Numbers window;
  for (int d = 2; d < 5; ++d) {
    if (x.type.sizes[d].value() % y.type.sizes[d].value() != 0) return {};
    window.push_back(x.type.sizes[d].value() / y.type.sizes[d].value());
  }
  return window;
}
std::string refuses_adaptive(const Node& node) {
  const Value& x = *Call<ops::_adaptive_avg_pool3d>(node).get<"self">();
  if (x.type.rank != 5) return "only batches of volumes are taken";
  if (!has_fixed_images(x) || !has_fixed_images(*node.result()))
    return "a size of a volume is symbolic";
  const Numbers size = divided_window(node);
  if (size.empty()) return "its windows are not of one size";
  return refuses_area({size, size, {0, 0, 0}, {1, 1, 1}});
}
void lower_adaptive(Lowering& out, const Node& node) {
  const Numbers size = divided_window(node);
  const Value* x = Call<ops::_adaptive_avg_pool3d>(node).get<"self">();
  add_pools<Kind::average_pool>(out, node, x, {size, size, {0, 0, 0}, {1, 1, 1}});
}

const Row rows[] = {
    {&ops::_adaptive_avg_pool3d, refuses_adaptive, lower_adaptive},
    {&ops::max_pool3d_with_indices, refuses_pool<ops::max_pool3d_with_indices>,
     lower_pool<ops::max_pool3d_with_indices, Kind::max_pool>},
    {&ops::avg_pool3d, refuses_pool<ops::avg_pool3d>,
     lower_pool<ops::avg_pool3d, Kind::average_pool>},
};

}  // namespace
}  // namespace volumes

std::string refuses_volume(const ir::Call<ops::convolution>& c) {
  using namespace volumes;
  if (c.get<"transposed">()) return "transposed convolutions of volumes are not taken";
  const ir::Value& x = *c.get<"input">();
  if (x.type.rank != 5) return "only batches of volumes are taken";
  if (!has_fixed_images(x)) return "a size of a volume is symbolic";
  const Window w = window_of(c);
  // a window with depth pads by less than a padding and a stride
  const int64_t border = w.paddings[0] + w.strides[0];
  const std::string reason =
      refuses_steps(joined({w.size, w.strides, w.paddings, w.dilations, {border}}));
  if (!reason.empty()) return reason;
  const ir::Value& weight = *c.get<"weight">();
  const bool has_groups = !proves_equal(c.get<"groups">(), 1),
             is_depthwise = has_groups && proves_equal(weight.type.sizes[1], 1);
  if (has_groups && !is_depthwise && !w.is_flat() && !w.is_of_one_pixel())
    return "its window has depth, and its groups have several channels";
  if (is_depthwise)
    return refuses_depthwise_window(w.is_of_one_pixel() ? w.size[0] : w.size[1] * w.size[2]);
  return "";
}

void lower_volume(Lowering& out, const ir::Node& node) {
  out.define(node.result(), volumes::Convolution(out, node).add(), Order::channels_last);
}

std::span<const Row> volume_rows() { return volumes::rows; }

}  // namespace taper::delegates::xnnpack
