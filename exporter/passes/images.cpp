#include "taper/exporter/passes/images.h"

#include <algorithm>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

}  // namespace

int64_t turned_dim(int64_t dim) {
  constexpr int64_t places[] = {0, 3, 1, 2};
  return places[dim < 0 ? dim + 4 : dim];
}

std::vector<Dim> turned_pad(const std::vector<Dim>& pad) {
  std::vector<Dim> turned(8, Dim(0));
  for (size_t i = 0; i < pad.size(); ++i) {
    const int64_t dim = turned_dim(3 - static_cast<int64_t>(i) / 2);
    turned[static_cast<size_t>(2 * (3 - dim)) + i % 2] = pad[i];
  }
  return turned;
}

Value* Images::insert(Node* at, const Node& like, const Operator& op,
                      std::vector<Argument> arguments) {
  return ir::insert_before(graph_, at, op, std::move(arguments), like.location, like.module)
      ->result();
}

Value* Images::image(Node* at, Value* value) {
  if (const auto known = images_.find(value); known != images_.end()) return known->second;
  const auto turned = [&](Value* v) {
    if (value->type.rank == 4) return insert(at, *at, ops::permute, {v, dims({0, 2, 3, 1})});
    Value* line = insert(at, *at, ops::permute, {v, dims({0, 2, 1})});
    return insert(at, *at, ops::unsqueeze, {line, Dim(1)});
  };
  const Node* node = value->node;
  Value* image;
  if (node != nullptr && node->op == &ops::quantized_decomposed_quantize_per_tensor) {
    // quantization writes the image in its order, and nothing is copied afterwards
    std::vector<Argument> arguments = node->arguments;
    arguments[0] = turned(std::get<Value*>(arguments[0]));
    image = insert(at, *node, *node->op, std::move(arguments));
  } else {
    image = turned(value);
  }
  return images_[value] = image;
}

Value* Images::seen_first(Node* at, Value* image, int rank) {
  Value* first;
  if (rank == 4) {
    first = insert(at, *image->node, ops::permute, {image, dims({0, 3, 1, 2})});
  } else {
    Value* line = insert(at, *image->node, ops::squeeze_dim, {image, Dim(1)});
    first = insert(at, *image->node, ops::permute, {line, dims({0, 2, 1})});
  }
  images_[first] = image;
  return first;
}

Value* Images::dense(Node* at, Value* value) {
  return ir::is_dense(value->type) ? value : insert(at, *at, ops::clone, {value});
}

Value* Images::apply(Node* at, Value* x, const std::function<Value*(Value*)>& op) {
  if (!is_image(x)) return op(x);
  return seen_first(at, op(image(at, x)), x->type.rank);
}

Value* Images::apply(Node* at, Value* a, Value* b,
                     const std::function<Value*(Value*, Value*)>& op) {
  const int rank = a->type.rank;
  if (rank != b->type.rank || (!is_image(a) && !is_image(b))) return op(a, b);
  return seen_first(at, op(image(at, a), image(at, b)), rank);
}

Value* Images::along(Node* at, Value* x, int64_t dim,
                     const std::function<Value*(Value*, int64_t)>& op) {
  if (!is_image(x) || x->type.rank != 4) return op(dense(at, x), dim);
  return seen_first(at, op(image(at, x), turned_dim(dim)), 4);
}

Value* Images::view(Node* at, const Node& like, Value* x) {
  std::vector<Argument> arguments = like.arguments;
  const bool is_turned = is_image(x) && x->type.rank == 4;
  if (is_turned && like.op == &ops::slice_Tensor) {
    using Slice = ir::Call<ops::slice_Tensor>;
    arguments[0] = image(at, x);
    arguments[Slice::position<"dim">] = Dim(turned_dim(Slice(like).get<"dim">().value()));
    return seen_first(at, insert(at, like, *like.op, std::move(arguments)), 4);
  }
  if (like.op == &ops::clone) return x;  // integers need no other order
  // a pixel lies so in both orders; other views need the elements in theirs
  const bool is_pixel = is_turned && same(x->type.sizes[2], 1) && same(x->type.sizes[3], 1);
  if (like.op == &ops::view) x = is_pixel ? image(at, x) : dense(at, x);
  arguments[0] = x;
  return insert(at, like, *like.op, std::move(arguments));
}

Value* Images::pad(Node* at, const Node& like, Value* x, Scalar value) {
  using Pad = ir::Call<ops::constant_pad_nd>;
  std::vector<Argument> arguments = like.arguments;
  arguments[Pad::position<"value">] = value;
  const bool is_turned = is_image(x) && x->type.rank == 4;
  arguments[0] = is_turned ? image(at, x) : x;
  if (is_turned) arguments[Pad::position<"pad">] = turned_pad(Pad(like).get<"pad">());
  Value* padded = insert(at, like, *like.op, std::move(arguments));
  return is_turned ? seen_first(at, padded, 4) : padded;
}

Value* Images::max_pool(Node* at, const Node& like, Value* x) {
  std::vector<Argument> arguments = like.arguments;
  arguments[0] = image(at, x);
  return seen_first(at, insert(at, like, ops::taper_max_pool2d, std::move(arguments)), 4);
}

Value* Images::resize(Node* at, const Node& like, Value* x) {
  const int64_t sizes[] = {x->type.sizes[2].value(), x->type.sizes[3].value()};
  Value* resized = image(at, x);
  for (const int64_t dim : {0, 1}) {
    // the operator itself says which row or column each one is
    const eager::Tensor numbers = eager::arange(sizes[dim], DType::f32);
    const eager::Tensor plane =
        dim == 0 ? numbers.reshape({1, 1, sizes[0], 1}).expand({1, 1, sizes[0], sizes[1]})
                 : numbers.reshape({1, 1, 1, sizes[1]}).expand({1, 1, sizes[0], sizes[1]});
    const eager::OperatorInfo& info = eager::info_of(*like.op);
    ir::BoxedArguments arguments(info, like.arguments, [&](Value*) { return plane; });
    eager::Tensor taken;
    eager::dispatch(info, arguments.data(), &taken, like.location);
    taken = taken.select(3 - dim, 0).reshape({-1}).to(DType::i64);
    Value* places = graph_.add_constant("", ir::payload_of(taken));
    resized = insert(at, like, ops::index_select, {resized, Dim(1 + dim), places});
  }
  return seen_first(at, resized, 4);
}

Value* Images::cat(Node* at, const Node& like, std::vector<Value*> parts, int64_t dim) {
  const bool is_turned =
      std::ranges::any_of(parts, [&](const Value* v) { return is_image(v) && v->type.rank == 4; });
  if (!is_turned) return insert(at, like, ops::cat, {parts, Dim(dim)});
  for (Value*& part : parts) part = image(at, part);
  return seen_first(at, insert(at, like, ops::cat, {parts, Dim(turned_dim(dim))}), 4);
}

void Images::replace(Value* old, Value* value, Node* at) {
  if (!ir::is_dense(value->type)) {
    Value* copy = nullptr;
    for (Node* user : std::vector<Node*>(old->users)) {
      if (user->op->category != Category::view) continue;
      if (copy == nullptr) copy = insert(at, *at, ops::clone, {value});
      graph_.replace_uses_in(user, old, copy);
    }
  }
  take_place_of(graph_, old, value);
}

}  // namespace taper::passes
