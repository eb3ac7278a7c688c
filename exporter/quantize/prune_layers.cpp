#include "taper/exporter/quantize/prune_layers.h"

#include <algorithm>
#include <array>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/call.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using ir::Node;
using ir::Value;
using Use = PrunedLayer::Use;

/// The products of an input with a stack of matrices, such as those of experts.
struct StackProducts {
  std::vector<Use> uses;
  bool is_transposed = false;  ///< the stack is stored as (matrix, in, out)

  /// Whether nothing but such products reads the value.
  bool follow(const Value* v, bool is_transposed_here) {
    return std::ranges::all_of(v->users, [&](const Node* user) {
      if (user->op == &ops::_to_copy) return follow(user->result(), is_transposed_here);
      if (transposes(*user)) return follow(user->result(), !is_transposed_here);
      const Value* input = nullptr;
      if (user->op == &ops::bmm && ir::Call<ops::bmm>(*user).get<"mat2">() == v)
        input = ir::Call<ops::bmm>(*user).get<"self">();
      if (user->op == &ops::_grouped_mm && ir::Call<ops::_grouped_mm>(*user).get<"mat2">() == v)
        input = ir::Call<ops::_grouped_mm>(*user).get<"self">();
      if (input == nullptr || input == v || input->type.dtype != DType::f32) return false;
      if (!uses.empty() && is_transposed != is_transposed_here) return false;
      is_transposed = is_transposed_here, uses.push_back({user, input});
      return true;
    });
  }
};

/// The products that read a weight as a stack, if nothing else reads it.
StackProducts products_of_stack(const ir::Constant& weight) {
  StackProducts found;
  if (weight.payload->sizes.size() != 3 || !found.follow(weight.value.get(), true)) return {};
  return found;
}

bool is_read_by(const Value* v, const Operator& op) {
  return std::ranges::any_of(v->users, [&](const Node* user) {
    return user->op == &op || (user->op == &ops::_to_copy && is_read_by(user->result(), op));
  });
}

}  // namespace

std::vector<Use> convolutions_of(const Value* weight) {
  std::vector<Use> uses;
  for (const Node* user : weight->users) {
    if (user->op == &ops::_to_copy) {
      const std::vector<Use> widened = convolutions_of(user->result());
      if (widened.empty()) return {};
      uses.insert(uses.end(), widened.begin(), widened.end());
      continue;
    }
    if (user->op != &ops::convolution) return {};
    const ir::Call<ops::convolution> call(*user);
    if (call.get<"weight">() != weight || call.get<"input">() == weight ||
        call.get<"transposed">() || call.get<"input">()->type.dtype != DType::f32)
      return {};
    uses.push_back({user, call.get<"input">()});
  }
  return uses;
}

bool PrunedLayer::is_convolution() const { return uses.front().node->op == &ops::convolution; }

int64_t PrunedLayer::groups() const {
  if (!is_convolution()) return 1;
  return ir::Call<ops::convolution>(*uses.front().node).get<"groups">().value();
}

int64_t PrunedLayer::depth() const { return weight->payload->sizes[is_transposed ? 1 : 2]; }

const Value* ends_of_rows(const Node& product) {
  if (product.op != &ops::_grouped_mm) return nullptr;
  return ir::Call<ops::_grouped_mm>(product).get<"offs">();
}

PrunedLayer layer_of(const Weight& w) {
  PrunedLayer layer{w.constant, {}, w.is_transposed, 0, {}, {}};
  if (is_of_adapter(*w.constant) || w.constant->payload->layout != Layout::dense) return layer;
  if (w.obstacle.empty() && w.matrices == 0) {
    for (const Reader& r : w.readers)
      if (!r.is_look_up) layer.uses.push_back({r.node, r.input()});
    return layer;
  }
  if (w.graph->is_returned(w.constant->value.get())) return layer;
  layer.uses = convolutions_of(w.constant->value.get());
  if (!layer.uses.empty()) return layer;
  const StackProducts stack = products_of_stack(*w.constant);
  if (stack.uses.empty()) return layer;
  return {w.constant, stack.uses, stack.is_transposed, w.constant->payload->sizes[0], {}, {}};
}

std::string reason_to_leave(const Weight& w) {
  const Value* v = w.constant->value.get();
  if (w.obstacle.empty()) return "it is only looked up";
  if (w.constant->payload->layout != Layout::dense || is_of_adapter(*w.constant) ||
      w.graph->is_returned(v))
    return w.obstacle;
  if (is_read_by(v, ops::convolution)) return "its convolution is transposed, or reads it as input";
  if (w.readers.empty()) return "pruning knows none of the operators that read it";
  return w.obstacle;
}

Tensor patches_of(const Node& node, const std::vector<int64_t>& weight_sizes, Tensor x) {
  const ir::Call<ops::convolution> call(node);
  const size_t dims = weight_sizes.size() - 2;
  // lines are pictures with one row, and pictures are volumes with one plane
  const auto of_volume = [&](const auto& list, int64_t missing) {
    std::array<int64_t, 3> three = {missing, missing, missing};
    for (size_t d = 0; d < dims; ++d)
      three[3 - dims + d] = Dim(list[list.size() == 1 ? 0 : d]).value();
    return three;
  };
  const auto kernel = of_volume(std::vector(weight_sizes.begin() + 2, weight_sizes.end()), 1),
             dilation = of_volume(call.get<"dilation">(), 1),
             padding = of_volume(call.get<"padding">(), 0),
             stride = of_volume(call.get<"stride">(), 1);
  for (size_t d = dims; d < 3; ++d) x = x.unsqueeze(2);
  x = eager::constant_pad_nd(x, {0, 0, 0, 0, padding[0], padding[0]});
  const int64_t begins = x.size(2).value() - dilation[0] * (kernel[0] - 1);
  std::vector<Tensor> planes;  // of all patches: (result plane, channel, 1, elements, results)
  for (int64_t k = 0; k < kernel[0]; ++k) {
    const int64_t begin = k * dilation[0];
    const Tensor plane = x.slice(2, begin, begin + begins, stride[0]).permute({0, 2, 1, 3, 4});
    const Tensor columns = eager::call<ops::im2col>(
        node.location, plane.contiguous().reshape({-1, x.size(1), x.size(3), x.size(4)}),
        eager::Ints{kernel[1], kernel[2]}, eager::Ints{dilation[1], dilation[2]},
        eager::Ints{padding[1], padding[2]}, eager::Ints{stride[1], stride[2]});
    planes.push_back(
        columns.reshape({columns.size(0), x.size(1), 1, kernel[1] * kernel[2], columns.size(2)}));
  }
  const int64_t depth = x.size(1).value() * kernel[0] * kernel[1] * kernel[2];
  return eager::cat(planes, 2).permute({0, 4, 1, 2, 3}).contiguous().reshape({-1, depth});
}

}  // namespace taper::quantize
