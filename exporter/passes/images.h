// Images whose channels lie last, in a graph whose images have them first.
#pragma once
#include <functional>
#include <initializer_list>
#include <unordered_map>
#include <vector>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/constant_values.h"

namespace taper::passes {

/// A list of numbers.
inline std::vector<Dim> dims(std::initializer_list<int64_t> list) {
  return {list.begin(), list.end()};
}

/// Where a dimension of (batch, channels, height, width) lies with channels last.
int64_t turned_dim(int64_t dim);
/// The padding of an image with channels last: two elements for each dimension, the last dimension
/// first.
std::vector<Dim> turned_pad(const std::vector<Dim>& pad);

/// Remembers which values are views of i8 images with channels last. So neighbouring integer
/// operators pass images on without copies. A value of rank 3 (batch, channels, width) is an image
/// of one row. New nodes stand before `at`.
class Images {
 public:
  explicit Images(ir::Graph& graph) : graph_(graph) {}

  /// (batch, height, width, channels) of a value with channels first.
  ir::Value* image(ir::Node* at, ir::Value* value);
  /// The image that the value is a view of; nullptr: it is none.
  ir::Value* known_image(const ir::Value* value) const {
    const auto known = images_.find(value);
    return known == images_.end() ? nullptr : known->second;
  }
  /// The image with channels first, as a value of this rank.
  ir::Value* seen_first(ir::Node* at, ir::Value* image, int rank);
  /// The value itself if it is dense, or a copy.
  ir::Value* dense(ir::Node* at, ir::Value* value);

  /// Applies an operator on elements, to images where an operand is one.
  ir::Value* apply(ir::Node* at, ir::Value* x, const std::function<ir::Value*(ir::Value*)>& op);
  ir::Value* apply(ir::Node* at, ir::Value* a, ir::Value* b,
                   const std::function<ir::Value*(ir::Value*, ir::Value*)>& op);
  /// Applies an operator along a dimension, which lies elsewhere in an image: op(value, dimension).
  ir::Value* along(ir::Node* at, ir::Value* x, int64_t dim,
                   const std::function<ir::Value*(ir::Value*, int64_t)>& op);

  // `like` is the f32 node, and x the integers of its first argument.
  ir::Value* view(ir::Node* at, const ir::Node& like, ir::Value* x);
  ir::Value* pad(ir::Node* at, const ir::Node& like, ir::Value* x, Scalar value);
  ir::Value* max_pool(ir::Node* at, const ir::Node& like, ir::Value* x);
  /// Nearest neighbours. All sizes are numbers.
  ir::Value* resize(ir::Node* at, const ir::Node& like, ir::Value* x);
  ir::Value* cat(ir::Node* at, const ir::Node& like, std::vector<ir::Value*> parts, int64_t dim);

  /// Everybody who reads `old` reads `value`, but views read a dense copy: their types follow from
  /// the strides below.
  void replace(ir::Value* old, ir::Value* value, ir::Node* at);

 private:
  ir::Value* insert(ir::Node* at, const ir::Node& like, const Operator& op,
                    std::vector<ir::Argument> arguments);
  bool is_image(const ir::Value* value) const { return images_.contains(value); }

  ir::Graph& graph_;
  std::unordered_map<const ir::Value*, ir::Value*> images_;  ///< of a value with channels first
};

}  // namespace taper::passes
