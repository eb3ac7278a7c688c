#pragma once
#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// Modules of one kind. The elements of a member are called "blocks.0", "blocks.1", ….
template <class M>
using ModuleList = std::vector<M>;

/// Parameters that are called "weights.0", "weights.1", ….
using ParameterList = std::vector<Parameter>;

/// Members with names that are chosen at run time, in the order in which they came. The entry
/// "conv" of a member `choices` is called "choices.conv".
template <class T>
class Dict {
 public:
  static constexpr bool names_entries = true;
  Dict() = default;
  /// Throws ExportError for a name as `insert` does.
  Dict(std::initializer_list<std::pair<std::string, T>> entries) {
    for (const auto& [name, value] : entries) insert(name, value);
  }

  /// Adds an entry, or replaces the one of this name. Throws ExportError for a name that is empty
  /// or contains a dot: paths would be ambiguous.
  T& insert(const std::string& name, T value) {
    if (name.empty() || name.find('.') != std::string::npos)
      throw ExportError("Dict: the name \"" + name + "\" must not be empty or contain a dot");
    if (T* present = find(name)) return *present = std::move(value);
    return entries_.emplace_back(name, std::move(value)).second;
  }
  /// Throws ExportError, which lists the names, if there is no such entry.
  T& operator[](const std::string& name) {
    if (T* present = find(name)) return *present;
    std::string names;
    for (const auto& [other, value] : entries_) names += (names.empty() ? "" : ", ") + other;
    throw ExportError("Dict: there is no \"" + name + "\"; the names are " + names);
  }
  bool contains(const std::string& name) { return find(name) != nullptr; }
  /// Whether there was such an entry.
  bool erase(const std::string& name) {
    return std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; }) > 0;
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  T* find(const std::string& name) {
    for (auto& [other, value] : entries_)
      if (other == name) return &value;
    return nullptr;
  }

  std::vector<std::pair<std::string, T>> entries_;
};

/// Modules of one kind by name. Layers of several kinds: `ModuleDict<std::shared_ptr<Layer>>`.
template <class M>
using ModuleDict = Dict<M>;
using ParameterDict = Dict<Parameter>;

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
