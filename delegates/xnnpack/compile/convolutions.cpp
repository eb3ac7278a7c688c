// Rows of convolutions of lines, images and volumes.
#include <algorithm>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/delegates/xnnpack/compile/volumes.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace convolving {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

/// Sizes of windows, and how they move: of an image, or of a line as an image of one row.
struct Windows {
  explicit Windows(const Call<ops::convolution>& c)
      : is_line(c.get<"input">()->type.rank == 3),
        strides(pair(c.get<"stride">(), 1)),
        paddings(pair(c.get<"padding">(), 0)),
        dilations(pair(c.get<"dilation">(), 1)),
        more(pair(c.get<"output_padding">(), 0)) {}
  std::vector<int64_t> pair(const std::vector<Dim>& dims, int64_t of_row) const {
    if (!is_line) return pair_of(dims, {of_row, of_row});
    return {of_row, dims.empty() ? of_row : dims[0].value()};
  }
  /// The order of a weight with the dimensions of windows in its middle.
  std::vector<int64_t> order(int64_t first, int64_t last) const {
    if (is_line) return {first, -1, 2, last};
    return {first, 2, 3, last};
  }

  bool is_line;
  std::vector<int64_t> strides, paddings, dilations, more;
};

std::string refuses_images(const Value& v) {
  if (v.type.rank == 4) return "";
  if (v.type.rank != 3) return "only lines, images and volumes in batches are taken";
  const bool has_one_symbol = v.type.sizes[0].is_constant() || v.type.sizes[2].is_constant();
  return has_one_symbol ? "" : "its batch and its length are symbolic";
}

/// The groups of a transposed convolution are convolutions of their own. The library would make a
/// matrix product of each channel of a depthwise one.
constexpr int64_t most_groups = 16, least_channels = 4;

/// The library computes the sizes of a transposed result in numbers that longer images leave.
std::string refuses_length(const Value& x) {
  for (int d = 2; d < x.type.rank; ++d)
    if (x.type.sizes[d].upper() > most_elements / most_step)
      return "it is transposed, and an image may be longer than 524288 pixels";
  return "";
}

std::string refuses_transposed(const Call<ops::convolution>& c, const Value& result) {
  const Windows w(c);
  const ir::Type& weight = c.get<"weight">()->type;
  const int64_t groups = c.get<"groups">().value();
  if (groups > most_groups || (groups > 1 && weight.sizes[0].value() / groups < least_channels))
    return "it is transposed, and of many or small groups";
  if (std::string reason = refuses_length(*c.get<"input">()); !reason.empty()) return reason;
  for (size_t d = w.is_line ? 1 : 0; d < 2; ++d) {
    const int64_t window = weight.sizes[weight.rank - 2 + static_cast<int>(d)].value();
    if (w.more[d] >= w.strides[d]) return "its output_padding is not smaller than its stride";
    if (result.type.sizes[result.type.rank - 2 + static_cast<int>(d)].lower() < w.strides[d])
      return "its result is smaller than its stride";
    if (w.paddings[d] > w.dilations[d] * (window - 1))
      return "its padding is larger than its window";
  }
  return "";
}

std::string refuses_moves(const Call<ops::convolution>& c) {
  const ir::Type& weight = c.get<"weight">()->type;
  const Windows w(c);
  const std::vector<int64_t> window = numbers({weight.sizes + 2, weight.sizes + weight.rank});
  return refuses_steps(joined({window, w.strides, w.paddings, w.dilations}));
}

std::string refuses_depthwise(const Call<ops::convolution>& c) {
  const ir::Type& weight = c.get<"weight">()->type;
  if (proves_equal(c.get<"groups">(), 1) || weight.sizes[1].value() != 1) return "";
  int64_t window = 1;
  for (int d = 2; d < weight.rank; ++d) window *= weight.sizes[d].value();
  return refuses_depthwise_window(window);
}

std::string refuses_convolution(const Node& node) {
  const Call<ops::convolution> c(node);
  if (node.result()->type.rank == 5) {
    const std::string reason = refuses_volume(c);
    return reason.empty() ? refuses_weights(c.get<"weight">(), c.get<"bias">()) : reason;
  }
  for (const Value* v : {c.get<"input">(), node.result()})
    if (std::string reason = refuses_images(*v); !reason.empty()) return reason;
  if (std::string reason = refuses_moves(c); !reason.empty()) return reason;
  std::string reason =
      c.get<"transposed">() ? refuses_transposed(c, *node.result()) : refuses_depthwise(c);
  return reason.empty() ? refuses_weights(c.get<"weight">(), c.get<"bias">()) : reason;
}

/// The elements of a group of a constant; none: all of them.
Ref part_of(Lowering& out, const Value* constant, int64_t group, int64_t groups,
            const std::vector<int64_t>& order) {
  if (constant == nullptr) return Ref();
  if (groups == 1) return out.permuted(constant, order);
  const eager::Tensor& all = out.elements(constant);
  const int64_t count = all.size(0).value() / groups;
  return out.permuted(constant, eager::slice(all, 0, group * count, (group + 1) * count), order);
}

void lower_transposed(Lowering& out, const Node& node) {
  const Call<ops::convolution> c(node);
  const Windows w(c);
  const int64_t groups = c.get<"groups">().value(),
                inputs = c.get<"weight">()->type.sizes[0].value() / groups;
  const Ref x = out.ref(c.get<"input">(), Order::channels_last);
  std::vector<Ref> results;
  for (int64_t group = 0; group < groups; ++group) {
    const Ref of_group = groups == 1 ? x
                                     : out.add(Kind::slice, Function::none, {x},
                                               {0, 0, 0, group * inputs, 0, 0, 0, inputs});
    // weights are (inputs, outputs / groups, height, width)
    results.push_back(
        out.add(Kind::deconvolution, Function::none,
                {of_group, part_of(out, c.get<"weight">(), group, groups, w.order(1, 0)),
                 part_of(out, c.get<"bias">(), group, groups, {0})},
                joined({w.strides, w.paddings, w.dilations, w.more})));
  }
  out.define(node.result(), out.joined(std::move(results), 3), Order::channels_last);
}

void lower_convolution(Lowering& out, const Node& node) {
  const Call<ops::convolution> c(node);
  if (node.result()->type.rank == 5) return lower_volume(out, node);
  if (c.get<"transposed">()) return lower_transposed(out, node);
  const Value *x = c.get<"input">(), *weight = c.get<"weight">(), *bias = c.get<"bias">();
  const int64_t groups = c.get<"groups">().value(), inputs = weight->type.sizes[1].value();
  // weights are (outputs, inputs / groups, height, width)
  const bool is_depthwise = groups > 1 && inputs == 1;
  const Windows w(c);
  std::vector<int64_t> numbers = joined({w.strides, w.paddings, w.dilations});
  if (!is_depthwise) numbers.push_back(groups);
  const Ref filter = out.permuted(weight, is_depthwise ? w.order(1, 0) : w.order(0, 1));
  const Ref result =
      out.add(is_depthwise ? Kind::depthwise : Kind::convolution, Function::none,
              {out.ref(x, Order::channels_last), filter, bias == nullptr ? Ref() : out.ref(bias)},
              std::move(numbers));
  out.define(node.result(), result, Order::channels_last);
}

const Row rows[] = {{&ops::convolution, refuses_convolution, lower_convolution, true}};

}  // namespace
}  // namespace convolving

std::span<const Row> convolution_rows() { return convolving::rows; }

}  // namespace taper::delegates::xnnpack
