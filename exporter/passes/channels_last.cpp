#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/pointwise.h"
#include "taper/exporter/passes/images.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

const std::vector<Dim> to_last{0, 2, 3, 1}, to_first{0, 3, 1, 2};

/// The type of an image seen with its dimensions in another order.
ir::Type permuted(const ir::Type& type, const std::vector<Dim>& order) {
  ir::Type turned = type;
  for (int i = 0; i < 4; ++i) {
    const int from = static_cast<int>(order[static_cast<size_t>(i)].value());
    turned.sizes[i] = type.sizes[from], turned.strides[i] = type.strides[from];
  }
  return turned;
}

bool equal(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}
/// One element for each of two dimensions.
std::vector<Dim> of_two(const std::vector<Dim>& list) {
  return list.size() == 1 ? std::vector<Dim>{list[0], list[0]} : list;
}

class Turner {
 public:
  Turner(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    for (const Node& node : graph_.nodes())
      if (takes_part(node)) {
        members_.insert(&node);
        last_.insert(node.result());
      }
    if (convolutions_ == 0) return 0;
    const int copies = count_copies();
    if (2 * copies > convolutions_) {
      context_.declined(*first_, "images would be copied " + std::to_string(copies) +
                                     " times, to and from channels last, for " +
                                     std::to_string(convolutions_) + " convolutions");
      return 0;
    }
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes())
      if (members_.contains(&node)) nodes.push_back(&node);
    for (Node* node : nodes) turn(node);
    context_.did(*nodes.front(), "begins " + std::to_string(nodes.size()) +
                                     " operators with channels last, " +
                                     std::to_string(convolutions_) + " of them convolutions");
    remove_dead_code(graph_, context_);
    return static_cast<int>(nodes.size());
  }

 private:
  // ---- what takes part ----

  bool takes_part(const Node& node) {
    const Value* result = node.results.empty() ? nullptr : node.result();
    if (result == nullptr || result->type.rank != 4 || result->type.dtype != DType::f32)
      return false;
    if (node.op == &ops::convolution) {
      if (!is_image_convolution(node)) return false;
      if (convolutions_++ == 0) first_ = &node;
      return true;
    }
    if (node.op == &ops::slice_Tensor) return is_sliced_for_padding(node);
    if (!runs(turned_row(*node.op))) return false;
    if (node.op == &ops::constant_pad_nd) return reads_only_last(node);
    if (node.op == &ops::max_pool2d)
      return last_.contains(ir::Call<ops::max_pool2d>(node).get<"self">());
    if (node.op == &ops::avg_pool2d)
      return last_.contains(ir::Call<ops::avg_pool2d>(node).get<"self">());
    if (node.op == &ops::cat) {
      const ir::Call<ops::cat> cat(node);
      return (same(cat.get<"dim">(), 1) || same(cat.get<"dim">(), -3)) && reads_only_last(node);
    }
    return ir::is_pointwise(*node.op) && reads_only_last(node);
  }

  /// A slice of an image that only paddings, and more slices like it, read: they take any strides.
  bool is_sliced_for_padding(const Node& node) const {
    return last_.contains(ir::Call<ops::slice_Tensor>(node).get<"self">()) &&
           is_only_padded(*node.result());
  }
  bool is_only_padded(const Value& v) const {
    return !graph_.is_returned(&v) && std::ranges::all_of(v.users, [&](const Node* user) {
      return user->op == &ops::constant_pad_nd ||
             (user->op == &ops::slice_Tensor && is_only_padded(*user->result()));
    });
  }

  /// Whether the target has kernels of an operator. They take every f32 call that the rule accepts.
  bool runs(const Operator& op) const {
    return std::ranges::any_of(context_.kernels.all(),
                               [&](const Kernel* k) { return k->op == &op; });
  }

  /// Over constant weights, and where the target's kernels ask for filters in panels: kernels that
  /// read any filter as it lies do as well with channels first.
  bool is_image_convolution(const Node& node) const {
    const ir::Call<ops::convolution> conv(node);
    const Value* weight = conv.get<"weight">();
    if (!runs(ops::taper_convolution) || conv.get<"transposed">() ||
        weight->type.dtype != DType::f32 || ir::base_of(weight)->origin != Value::Origin::constant)
      return false;
    const target::Candidates candidates = context_.kernels.candidates(node);
    return !candidates.records.empty() && candidates.records.front()->packs();
  }

  /// At least one image that lies with channels last, and no other tensors but numbers: one for all
  /// elements, or a constant one for each channel.
  bool reads_only_last(const Node& node) const {
    bool only = true, any = false;
    ir::for_each_value(node, [&](const Value* v) {
      const bool is_last = last_.contains(v) || is_free(*v);
      any = any || last_.contains(v) || (is_last && !ir::is_dense(v->type));
      only = only && (v->type.rank == 0 || is_last || is_of_channels(*v));
    });
    return only && any;
  }

  /// A dense constant (channels, 1, 1).
  static bool is_of_channels(const Value& v) {
    return v.origin == Value::Origin::constant && v.type.rank == 3 && ir::is_dense(v.type) &&
           same(v.type.sizes[1], 1) && same(v.type.sizes[2], 1);
  }

  // ---- what it costs ----

  /// How many values must be copied into the other order.
  int count_copies() const {
    std::unordered_set<const Value*> copied;
    for (const Node* node : members_) {
      const Value* image = node->op == &ops::convolution
                               ? ir::Call<ops::convolution>(*node).get<"input">()
                               : nullptr;  // the others read what members give
      if (image != nullptr && !last_.contains(image) && !is_free(*image)) copied.insert(image);
    }
    for (const Value* v : last_) {
      const bool is_pixel = same(v->type.sizes[2], 1) && same(v->type.sizes[3], 1);
      if (is_pixel || same(v->type.sizes[1], 1)) continue;  // lies so in both orders
      bool leaves = graph_.is_returned(v);
      for (const Node* user : v->users)
        leaves = leaves || !(members_.contains(user) || user->op == &ops::mean_dim ||
                             is_turning_permute(*user));
      if (leaves) copied.insert(v);
    }
    return static_cast<int>(copied.size());
  }

  /// Whether an image with channels first lies as one with channels last does.
  static bool is_free(const Value& v) {
    return v.type.rank == 4 && ir::is_dense(permuted(v.type, to_last));
  }

  /// A permute into the order that we give, whose users do not look at strides.
  bool is_turning_permute(const Node& node) const {
    return node.op == &ops::permute && equal(ir::Call<ops::permute>(node).get<"dims">(), to_last) &&
           !graph_.is_returned(node.result()) &&
           std::ranges::none_of(node.result()->users, [](const Node* user) {
             return user->op->category == Category::view;
           });
  }

  // ---- the new nodes ----

  Value* permute(Node* before, Value* v, const std::vector<Dim>& order) {
    return ir::insert_before(graph_, before, ops::permute, {v, order}, before->location,
                             before->module)
        ->result();
  }

  /// What a value is with channels last: an image, or a number for each channel.
  Value* turned(Node* before, Value* v) {
    if (v->type.rank == 0) return v;
    Value*& image = turned_[v];
    if (image == nullptr)
      image = v->type.rank == 4 ? permute(before, v, to_last)
                                : ir::insert_before(graph_, before, ops::view,
                                                    {v, std::vector<Dim>{v->type.sizes[0]}},
                                                    before->location, before->module)
                                      ->result();
    return image;
  }

  std::vector<ir::Argument> arguments_of(Node* node) {
    if (node->op == &ops::convolution) {
      const ir::Call<ops::convolution> conv(*node);
      return {turned(node, conv.get<"input">()),
              conv.get<"weight">(),
              node->arguments[conv.position<"bias">],
              of_two(conv.get<"stride">()),
              of_two(conv.get<"padding">()),
              of_two(conv.get<"dilation">()),
              conv.get<"groups">(),
              std::vector<Value*>{},
              std::vector<Dim>{},
              std::vector<double>{}};
    }
    std::vector<ir::Argument> arguments = node->arguments;
    for (ir::Argument& argument : arguments) {
      if (Value** v = std::get_if<Value*>(&argument)) *v = turned(node, *v);
      if (auto* list = std::get_if<std::vector<Value*>>(&argument))
        for (Value*& v : *list) v = turned(node, v);
    }
    if (node->op == &ops::cat) arguments[ir::Call<ops::cat>::position<"dim">] = Dim(3);
    if (node->op == &ops::slice_Tensor) {
      using Slice = ir::Call<ops::slice_Tensor>;
      arguments[Slice::position<"dim">] = Dim(turned_dim(Slice(*node).get<"dim">().value()));
    }
    if (node->op == &ops::constant_pad_nd) {
      using Pad = ir::Call<ops::constant_pad_nd>;
      arguments[Pad::position<"pad">] = turned_pad(Pad(*node).get<"pad">());
    }
    return arguments;
  }

  static const Operator& turned_row(const Operator& op) {
    if (&op == &ops::convolution) return ops::taper_convolution;
    if (&op == &ops::max_pool2d) return ops::taper_max_pool2d;
    if (&op == &ops::avg_pool2d) return ops::taper_avg_pool2d;
    return op;
  }

  void turn(Node* node) {
    Value* old = node->result();
    Value* image = ir::insert_before(graph_, node, turned_row(*node->op), arguments_of(node),
                                     node->location, node->module)
                       ->result();
    Value* first = permute(node, image, to_first);
    turned_[first] = image;
    // A view's type follows from the strides below it. So views see a copy that lies as the old
    // value did, but for a permute back to channels last.
    Value* copy = nullptr;
    for (Node* user : std::vector<Node*>(old->users)) {
      if (user->op->category != Category::view || members_.contains(user)) continue;
      if (is_turning_permute(*user)) {
        graph_.replace_uses(user->result(), image);
        continue;
      }
      if (copy == nullptr)
        copy = ir::insert_before(graph_, node, ops::clone, {first}, node->location, node->module)
                   ->result();
      graph_.replace_uses_in(user, old, copy);
    }
    const bool is_returned = graph_.is_returned(old);
    graph_.replace_uses(old, first);
    graph_.swap_names(old, is_returned ? first : image);
  }

  ir::Graph& graph_;
  PassContext& context_;
  int convolutions_ = 0;
  const Node* first_ = nullptr;
  std::unordered_set<const Node*> members_;
  std::unordered_set<const Value*> last_;            ///< results of members
  std::unordered_map<const Value*, Value*> turned_;  ///< the same image with channels last
};

}  // namespace

int channels_last(ir::Graph& graph, PassContext& context) { return Turner(graph, context).run(); }

}  // namespace taper::passes
