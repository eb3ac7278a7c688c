// Modules, the parts of models. A module holds parameters, buffers and other modules as plain
// members and names them once.
//
//   struct LeNet : nn::Module {
//     nn::Conv2d conv1{1, 6, {.kernel_size = 5, .padding = 2}};
//     nn::Linear fc1{16 * 5 * 5, 10};
//     TAPER_MODULE(conv1, fc1)                 // "conv1.weight", "conv1.bias", "fc1.weight", …
//
//     Tensor forward(Tensor x) { return fc1(flatten(relu(conv1(x)), 1)); }
//   };
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "taper/exporter/eager/named_tensors.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/eager/tensor.h"

namespace taper::nn {

using eager::Dims;
using eager::Ints;
using eager::NamedTensors;
using eager::Tensor;

/// A tensor that training changes. A member of type `Tensor` is a buffer instead: it is saved but
/// not trained.
struct Parameter : Tensor {
  Parameter() = default;
  /// The parameter wants a gradient from now on.
  Parameter(const Tensor& value, Location here = Location::current()) : Tensor(value) {
    set_requires_grad(true, here);
  }
};

class Module;
class Members;

namespace internal {
template <class M>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
/// nn::Dict (containers.h): entries with names.
template <class M>
concept Named = requires(M& member) {
  member.begin()->first, member.begin()->second, M::names_entries;
};
}  // namespace internal

/// The base of all modules. Like a Tensor, a copy of a module shares its parameters.
class Module {
 public:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  /// Passes each member and its name to `members`. TAPER_MODULE writes this function. Write it
  /// yourself if members are made at run time.
  virtual void visit_members(Members& members);

  /// This module's parameters and those of the modules in it, in the order of TAPER_MODULE, each
  /// once.
  std::vector<Tensor> parameters();
  /// The same with paths: "layers.0.weight". A tensor that several members share appears under its
  /// first path.
  std::vector<std::pair<std::string, Tensor>> named_parameters();
  std::vector<std::pair<std::string, Tensor>> named_buffers();
  /// Parameters and buffers under every path they have. The tensors are the module's own, not
  /// copies.
  NamedTensors state_dict();

  /// Copies the values of `state` into this module. With `strict`, both must have the same names.
  /// Throws ExportError, which lists missing and unexpected names or says which shape differs; then
  /// nothing changes.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  /// Writes state_dict() to a safetensors file. Throws io::FileError.
  void save(const std::string& path);
  void load(const std::string& path, bool strict = true);

  /// Switches Dropout and BatchNorm to training or evaluation, in this module and all modules in
  /// it.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  /// Clears the gradients of all parameters.
  void zero_grad();
  /// Freezes the parameters (`false`) or lets them be trained again.
  void set_requires_grad(bool on);
  /// Casts floating-point parameters and buffers; they become new tensors, so make the optimizer
  /// afterwards.
  void to(DType dtype);

  /// The name of this module in its parent ("conv1"); empty for the outermost one. Reports and
  /// errors show it.
  const std::string& name() const { return name_; }

  /// Sets the names of all parameters, buffers and modules to their paths. Every function above
  /// does this, and so does the constructor of a class with TAPER_MODULE. A trace needs the names
  /// for states.
  void set_names();

 private:
  friend class Members;
  void walk(const std::string& path, bool rename, Members& members);
  std::vector<std::pair<std::string, Tensor>> named(bool parameters);

  std::string name_;
  bool training_ = true;
};

/// Receives a module's members. Handed to Module::visit_members.
class Members {
 public:
  virtual ~Members() = default;

  /// TAPER_MODULE expands to a call of this function: the names as they stand in the source,
  /// separated by commas, and the members.
  template <class... M>
  void all([[maybe_unused]] std::string_view names, M&... members) {
    (add(next(names), members), ...);
  }

  /// Adds a parameter, a buffer (an undefined one is left out), a module, a pointer to a module, or
  /// a std::vector or nn::Dict of any of these. The elements of a vector are called "blocks.0",
  /// "blocks.1", those of a Dict "blocks.first".
  template <class M>
  void add(const std::string& name, M& member) {
    if constexpr (std::is_base_of_v<Module, M>)
      child(name, member);
    else if constexpr (std::is_base_of_v<Tensor, M>) {
      if (member.defined()) tensor(path_ + name, member, std::is_base_of_v<Parameter, M>);
    } else if constexpr (internal::is_vector<M>) {
      for (size_t i = 0; i < member.size(); ++i) add(name + "." + std::to_string(i), member[i]);
    } else if constexpr (internal::Named<M>) {
      for (auto& [key, value] : member) add(name + "." + key, value);
    } else if constexpr (requires {
                           *member;
                           member.get();
                         }) {
      if (member) add(name, *member);
    } else
      static_assert(std::is_base_of_v<Module, M>,
                    "TAPER_MODULE takes modules, Parameters, Tensors, pointers to modules, and "
                    "std::vectors and nn::Dicts of these");
  }

 protected:
  virtual void tensor(const std::string& path, Tensor& tensor, bool is_parameter) = 0;
  virtual void module(Module&) {}

 private:
  friend class Module;
  static std::string next(std::string_view& names);
  void child(const std::string& name, Module& module);

  std::string path_;
  bool rename_ = false;
};

namespace internal {

/// The last data member of a class with TAPER_MODULE. It names the members above it.
struct Naming {
  template <class M>
  explicit Naming(M* module) {
    module->set_names();
  }
};

/// Calls forward(…) under the module's name.
template <class M, class... A>
auto run(M& module, A&&... arguments) {
  eager::ModuleScope scope(module.name());
  return module.forward(std::forward<A>(arguments)...);
}

}  // namespace internal

/// A module from one tensor to one tensor. A class derived from it can be used in Sequential, and
/// its errors name the caller's line.
class Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& input, Location here = Location::current()) = 0;
  Tensor operator()(const Tensor& input, Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, here);
  }
};

}  // namespace taper::nn

/// Names the members of a module; state_dict and parameters() list them in this order. Write it
/// after the members. It makes the module callable: `block(x)` runs `forward(x)` under the module's
/// name. It does not work in a class inside a function.
#define TAPER_MODULE(...)                                                    \
  void visit_members(::taper::nn::Members& taper_members) override {         \
    taper_members.all(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);              \
  }                                                                          \
  template <class... A>                                                      \
  auto operator()(A&&... arguments) {                                        \
    return ::taper::nn::internal::run(*this, std::forward<A>(arguments)...); \
  }                                                                          \
  ::taper::nn::internal::Naming taper_naming{this};

/// The same for a module that is callable already, such as a Layer or a Loss.
#define TAPER_LAYER(...)                                             \
  void visit_members(::taper::nn::Members& taper_members) override { \
    taper_members.all(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);      \
  }                                                                  \
  ::taper::nn::internal::Naming taper_naming{this};
