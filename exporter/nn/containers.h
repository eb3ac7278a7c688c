#pragma once
#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// Modules of one kind. The elements of a member are called "blocks.0", "blocks.1", ….
template <class M>
using ModuleList = std::vector<M>;

namespace internal {

/// Makes a Layer of a user's module with `Tensor forward(Tensor)`. The paths of its members stay
/// the same.
template <class M>
class AsLayer : public Layer {
 public:
  explicit AsLayer(M module) : module_(std::move(module)) {}
  void visit_members(Members& members) override { module_.visit_members(members); }
  Tensor forward(const Tensor& input, Location) override {
    if (module_.training() != training()) module_.train(training());
    return module_.forward(input);
  }

 private:
  M module_;
};

}  // namespace internal

/// Modules that run one after the other, called "0", "1", …:
///
///   nn::Sequential net(nn::Linear(784, 100), nn::ReLU(), nn::Linear(100, 10));
class Sequential : public Layer {
 public:
  Sequential() = default;
  template <class... M>
  requires(sizeof...(M) > 0 && (std::derived_from<M, Module> && ...) &&
           !(sizeof...(M) == 1 &&
             (std::same_as<M, Sequential> && ...))) explicit Sequential(M... modules) {
    (push_back(std::move(modules)), ...);
  }

  /// Appends any module with `Tensor forward(Tensor)`.
  template <std::derived_from<Module> M>
  void push_back(M module) {
    if constexpr (std::derived_from<M, Layer>)
      layers_.push_back(std::make_shared<M>(std::move(module)));
    else
      layers_.push_back(std::make_shared<internal::AsLayer<M>>(std::move(module)));
    set_names();
  }

  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) { return *layers_.at(i); }

  void visit_members(Members& members) override {
    for (size_t i = 0; i < layers_.size(); ++i) members.add(std::to_string(i), layers_[i]);
  }
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    Tensor x = input;
    for (const auto& layer : layers_) x = (*layer)(x, here);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace taper::nn
