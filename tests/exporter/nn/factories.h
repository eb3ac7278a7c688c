// Modules made of the arguments that golden cases name, and how each is called.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/nn/nn.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {

/// The tensors and options of one call.
struct Call {
  std::vector<Tensor> inputs;
  eager::NamedTensors tensors;  ///< keyword arguments that are tensors
  Json options;                 ///< the others

  Tensor input(size_t i) const { return i < inputs.size() ? inputs[i] : Tensor(); }
  Tensor keyword(const std::string& name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? Tensor() : found->second;
  }
};

/// A module and its call, which gives the outputs that are defined.
struct Callable {
  std::shared_ptr<nn::Module> module;
  std::function<std::vector<Tensor>(const Call&)> run;
};

using Factory = std::function<Callable(const Json& args)>;
/// By PyTorch's class names.
const std::map<std::string, Factory>& factories();

/// Factories of one file; factories() joins them.
std::map<std::string, Factory> layer_factories();
std::map<std::string, Factory> sequence_factories();
std::map<std::string, Factory> more_factories();

template <class T>
T argument(const Json& args, const char* name, T fallback) {
  return args.contains(name) && !args[name].is_null() ? args[name].get<T>() : fallback;
}
template <class T>
std::optional<T> optional_argument(const Json& args, const char* name) {
  return args.contains(name) && !args[name].is_null() ? std::optional(args[name].get<T>())
                                                      : std::nullopt;
}
template <int n>
nn::Extents<n> extents(const Json& args, const char* name, int64_t fallback) {
  nn::Extents<n> e = fallback;
  if (!args.contains(name) || args[name].is_null()) return e;
  if (args[name].is_number()) return args[name].get<int64_t>();
  for (size_t i = 0; i < n; ++i) e.values[i] = args[name][i].get<int64_t>();
  return e;
}
template <int n>
std::optional<nn::Extents<n>> optional_extents(const Json& args, const char* name) {
  return args.contains(name) && !args[name].is_null() ? std::optional(extents<n>(args, name, 0))
                                                      : std::nullopt;
}

/// A layer: one input, one output.
template <class L>
Callable layer(std::shared_ptr<L> l) {
  return {l, [l](const Call& c) -> std::vector<Tensor> { return {(*l)(c.inputs.at(0))}; }};
}
template <class L, class... A>
Callable make_layer(A&&... a) {
  return layer(std::make_shared<L>(std::forward<A>(a)...));
}

}  // namespace taper::tests
