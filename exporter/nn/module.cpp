#include "taper/exporter/nn/module.h"

#include <functional>
#include <unordered_set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/files.h"

namespace taper::nn {
namespace {

/// Calls functions for what it is shown.
class Visitor : public Members {
 public:
  std::function<void(const std::string& path, Tensor& tensor, bool is_parameter)> on_tensor;
  std::function<void(Module&)> on_module;

 protected:
  void tensor(const std::string& path, Tensor& tensor, bool is_parameter) override {
    if (on_tensor) on_tensor(path, tensor, is_parameter);
  }
  void module(Module& module) override {
    if (on_module) on_module(module);
  }
};

std::string list(const std::vector<std::string>& names) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < shown; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > shown ? text + ", … (" + std::to_string(names.size()) + " in all)" : text;
}

}  // namespace

std::string Members::next(std::string_view& names) {
  const size_t comma = names.find(',');
  std::string_view name = names.substr(0, comma);
  names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && (name.back() == ' ' || name.back() == '_'))
    name.remove_suffix(1);  // a private member `weight_` is "weight"
  return std::string(name);
}

void Members::child(const std::string& name, Module& member) {
  if (rename_) member.name_ = name;
  module(member);
  const std::string outer = path_;
  path_ += name + ".";
  member.visit_members(*this);
  path_ = outer;
}

void Module::visit_members(Members&) {}

void Module::walk(const std::string& path, bool rename, Members& members) {
  members.path_ = path, members.rename_ = rename;
  visit_members(members);
}

void Module::set_names() {
  std::unordered_set<const void*> seen;
  Visitor visitor;
  visitor.on_tensor = [&](const std::string& path, Tensor& tensor, bool) {
    if (seen.insert(tensor.impl()).second) tensor.set_name(path);  // the first path of a shared one
  };
  walk("", true, visitor);
}

std::vector<std::pair<std::string, Tensor>> Module::named(bool parameters) {
  set_names();
  std::vector<std::pair<std::string, Tensor>> found;
  std::unordered_set<const void*> seen;
  Visitor visitor;
  visitor.on_tensor = [&](const std::string& path, Tensor& tensor, bool is_parameter) {
    if (is_parameter == parameters && seen.insert(tensor.impl()).second)
      found.emplace_back(path, tensor);
  };
  walk("", false, visitor);
  return found;
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() { return named(true); }
std::vector<std::pair<std::string, Tensor>> Module::named_buffers() { return named(false); }

std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> found;
  for (const auto& [path, tensor] : named_parameters()) found.push_back(tensor);
  return found;
}

NamedTensors Module::state_dict() {
  set_names();
  NamedTensors state;
  Visitor visitor;
  visitor.on_tensor = [&](const std::string& path, Tensor& tensor, bool) { state[path] = tensor; };
  walk("", false, visitor);
  return state;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  const NamedTensors own = state_dict();
  std::vector<std::string> missing, unexpected;
  for (const auto& [name, tensor] : own) {
    const auto given = state.find(name);
    if (given == state.end())
      missing.push_back(name);
    else if (!eager::same_sizes(given->second.sizes(), tensor.sizes()))
      throw ExportError("load_state_dict: '" + name + "' is " +
                        eager::to_string(given->second.sizes()) + " in the state, " +
                        eager::to_string(tensor.sizes()) + " in the module");
  }
  for (const auto& [name, tensor] : state)
    if (own.count(name) == 0) unexpected.push_back(name);
  if (strict && (!missing.empty() || !unexpected.empty()))
    throw ExportError(
        "load_state_dict:" + (missing.empty() ? "" : " the state lacks " + list(missing) + ";") +
        (unexpected.empty() ? "" : " the module has no " + list(unexpected) + ";") +
        " pass strict = false to load the others");
  eager::NoGrad guard;
  for (auto [name, tensor] : own)
    if (const auto given = state.find(name); given != state.end()) tensor.copy_(given->second);
}

void Module::save(const std::string& path) {
  eager::save_safetensors(path, state_dict(), {{"format", "taper"}});
}
void Module::load(const std::string& path, bool strict) {
  load_state_dict(eager::load_safetensors(path), strict);
}

void Module::train(bool on) {
  Visitor visitor;
  visitor.on_module = [on](Module& module) { module.training_ = on; };
  training_ = on;
  walk("", true, visitor);
}

void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}

void Module::set_requires_grad(bool on) {
  for (const Tensor& parameter : parameters()) parameter.set_requires_grad(on);
}

void Module::to(DType dtype) {
  eager::NoGrad guard;
  std::vector<std::pair<const void*, Tensor>>
      done;  // tensors that several members share stay shared
  Visitor visitor;
  visitor.on_tensor = [&](const std::string&, Tensor& tensor, bool is_parameter) {
    if (!is_floating(tensor.dtype()) || tensor.dtype() == dtype) return;
    const void* before = tensor.impl();
    for (const auto& [old, cast] : done) {
      if (old == before) {
        tensor = cast;
        return;
      }
    }
    const bool trained = is_parameter && tensor.requires_grad();
    tensor = tensor.detach().to(dtype);
    if (trained) tensor.set_requires_grad();
    done.emplace_back(before, tensor);
  };
  walk("", true, visitor);
  set_names();
}

}  // namespace taper::nn
