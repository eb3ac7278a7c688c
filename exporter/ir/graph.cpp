#include "taper/exporter/ir/graph.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace taper::ir {

std::shared_ptr<const Payload> Payload::copy(DType dtype, std::vector<int64_t> sizes,
                                             const void* bytes) {
  size_t count = 1;
  for (int64_t n : sizes) count *= static_cast<size_t>(n);
  const size_t size = count * static_cast<size_t>(::taper::size_bytes(dtype));
  std::shared_ptr<std::byte> own(
      new std::byte[size + 64](),
      std::default_delete<std::byte[]>());  // kernels may read 64 bytes further
  if (size > 0) std::memcpy(own.get(), bytes, size);
  return std::make_shared<const Payload>(Payload{dtype, std::move(sizes), own, size});
}

namespace {

std::vector<Dim> dims(const std::vector<int64_t>& sizes) { return {sizes.begin(), sizes.end()}; }

std::string spelled(std::string_view stem) {
  std::string name(stem.empty() ? "value" : stem);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  std::ranges::replace_if(name, std::not_fn(allowed), '_');
  return name;
}

/// Passes go through users in order, from either end: looks for `node` from both.
void remove_one(std::vector<Node*>& users, Node* node) {
  for (size_t front = 0, back = users.size(); front < back; ++front) {
    for (const size_t at : {front, --back})
      if (users[at] == node) {
        users.erase(users.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
  }
  assert(false && "a use is not in its value's list");
}

}  // namespace

std::string Graph::fresh_name(std::string_view stem) {
  const std::string base = spelled(stem);
  std::string name = base;
  while (!names_.try_emplace(name, nullptr).second)
    name = base + "_" + std::to_string(++counters_[base]);
  return name;
}

void Graph::name_freshly(Value* value, std::string_view stem) {
  value->name = fresh_name(stem);
  names_[value->name] = value;
}

void Graph::rename(Value* value, const std::string& name) {
  if (value->name == name) return;
  if (!names_.try_emplace(name, value).second)
    throw ExportError("two values have the name " + name);
  names_.erase(value->name);
  value->name = name;
}

void Graph::name_by_user(Value* value, std::string_view name) {
  names_.erase(value->name);
  const auto taken = names_.find(spelled(name));
  Value* other = taken == names_.end() ? nullptr : taken->second;
  const bool yields =
      other != nullptr && other->origin == Value::Origin::result && !other->named_by_user;
  if (yields) names_.erase(taken);
  name_freshly(value, name);
  value->named_by_user = true;
  if (yields) name_freshly(other, name);
}

void Graph::swap_names(Value* a, Value* b) {
  std::swap(names_.at(a->name), names_.at(b->name));
  std::swap(a->name, b->name);
  std::swap(a->named_by_user, b->named_by_user);
}

std::unique_ptr<Value> Graph::make_value(std::string_view name, const Type& type,
                                         Value::Origin origin, int index) {
  auto value = std::make_unique<Value>();
  name_freshly(value.get(), name);
  value->type = type;
  value->origin = origin;
  value->index = index;
  return value;
}

Value* Graph::add_input(std::string name, const Type& type) {
  auto value = make_value(name, type, Value::Origin::input, static_cast<int>(inputs_.size()));
  inputs_.push_back({std::move(name), std::move(value), {}});
  return inputs_.back().value.get();
}

void Graph::add_number_input(std::string name, Dim number) {
  inputs_.push_back({std::move(name), nullptr, number});
}

void Graph::add_output(std::string name, Value* value) {
  outputs_.push_back({std::move(name), value, {}});
}
void Graph::add_number_output(std::string name, Dim number) {
  outputs_.push_back({std::move(name), nullptr, number});
}

State* Graph::add_state(std::string path, StateKind kind, bool trainable, DType dtype,
                        const std::vector<int64_t>& sizes, std::shared_ptr<const Payload> initial) {
  if (find_state(path) != nullptr) throw ExportError("two states have the path " + path);
  auto value = make_value(path, dense_type(dtype, dims(sizes)), Value::Origin::state,
                          static_cast<int>(states_.size()));
  states_.push_back({std::move(path), kind, trainable, std::move(initial), std::move(value)});
  return &states_.back();
}

Value* Graph::add_constant(std::string path, std::shared_ptr<const Payload> payload) {
  auto value =
      make_value(path.empty() ? "constant" : path, dense_type(payload->dtype, dims(payload->sizes)),
                 Value::Origin::constant, static_cast<int>(constants_.size()));
  constants_.push_back({std::move(path), std::move(payload), std::move(value)});
  return constants_.back().value.get();
}

void Graph::add_write(State* state, Value* value) {
  for (Write& w : writes_)
    if (w.state == state) {
      w.value = value;
      return;
    }
  writes_.push_back({state, value});
}

void Graph::add_check(const Check& check) {
  const auto equal = [&](const Check& c) {
    return c.comparison == check.comparison && same(c.left, check.left) &&
           same(c.right, check.right);
  };
  if (std::ranges::none_of(checks_, equal)) checks_.push_back(check);
}

State* Graph::find_state(std::string_view path) {
  auto at = std::ranges::find(states_, path, &State::path);
  return at == states_.end() ? nullptr : &*at;
}

Node* Graph::insert(std::list<Node>::iterator before, const Operator& op,
                    std::vector<Argument> arguments, std::span<const Type> types, Location location,
                    std::string module) {
  auto at = nodes_.insert(before,
                          Node{&op, std::move(arguments), {}, location, std::move(module), {}, {}});
  Node* node = &*at;
  node->position = at;
  for_each_value(*node, [&](Value* v) { v->users.push_back(node); });
  for (size_t i = 0; i < types.size(); ++i) {
    auto& result = node->results.emplace_back();
    if (!types[i].present) continue;
    result = make_value(op.identifier, types[i], Value::Origin::result, static_cast<int>(i));
    result->node = node;
  }
  return node;
}

Node* Graph::append(const Operator& op, std::vector<Argument> arguments,
                    std::span<const Type> types, Location location, std::string module) {
  return insert(nodes_.end(), op, std::move(arguments), types, location, std::move(module));
}
Node* Graph::insert_before(Node* before, const Operator& op, std::vector<Argument> arguments,
                           std::span<const Type> types, Location location, std::string module) {
  return insert(before->position, op, std::move(arguments), types, location, std::move(module));
}
Node* Graph::append_control(const Operator& op, std::vector<Argument> arguments,
                            std::vector<std::unique_ptr<Graph>> bodies, std::span<const Type> types,
                            Location location, std::string module) {
  Node* node = append(op, std::move(arguments), types, location, std::move(module));
  node->bodies = std::move(bodies);
  return node;
}

void Graph::set_argument(Node* node, size_t i, Argument argument) {
  for_each_value(node->arguments[i], [&](Value* v) { remove_one(v->users, node); });
  node->arguments[i] = std::move(argument);
  for_each_value(node->arguments[i], [&](Value* v) { v->users.push_back(node); });
}

void Graph::replace_uses_in(Node* node, Value* old, Value* replacement) {
  const auto replace = [&](Value*& v) {
    if (v != old) return;
    v = replacement;
    remove_one(old->users, node);
    replacement->users.push_back(node);
  };
  for (Argument& a : node->arguments) {
    if (auto* one = std::get_if<Value*>(&a))
      replace(*one);
    else if (auto* many = std::get_if<std::vector<Value*>>(&a))
      std::ranges::for_each(*many, replace);
  }
}

void Graph::replace_uses(Value* old, Value* replacement) {
  assert(old != replacement);
  while (!old->users.empty()) replace_uses_in(old->users.back(), old, replacement);
  for (Output& o : outputs_)
    if (o.value == old) o.value = replacement;
  for (Write& w : writes_)
    if (w.value == old) w.value = replacement;
  for (SymbolBinding& s : symbols_)
    if (s.value == old) s.value = replacement;
}

void Graph::erase(Node* node) {
  for (const auto& r : node->results) {
    assert((r == nullptr || !is_used(r.get())) && "a node whose result is used cannot be erased");
    if (r != nullptr) names_.erase(r->name);
  }
  for_each_value(*node, [&](Value* v) { remove_one(v->users, node); });
  nodes_.erase(node->position);
}

void Graph::erase_unused_constants() {
  constants_.remove_if([&](const Constant& c) {
    if (is_used(c.value.get())) return false;
    names_.erase(c.value->name);
    return true;
  });
  int index = 0;
  for (Constant& c : constants_) c.value->index = index++;
}

void Graph::erase_state(State* state) {
  assert(!is_used(state->value.get()));
  names_.erase(state->value->name);
  states_.remove_if([&](const State& s) { return &s == state; });
  int index = 0;
  for (State& s : states_) s.value->index = index++;
}

bool Graph::is_returned(const Value* value) const {
  return std::ranges::any_of(outputs_, [&](const Output& o) { return o.value == value; }) ||
         std::ranges::any_of(writes_, [&](const Write& w) { return w.value == value; });
}

bool Graph::is_used(const Value* value) const {
  return !value->users.empty() || is_returned(value) ||
         std::ranges::any_of(symbols_, [&](const SymbolBinding& s) { return s.value == value; });
}

std::string describe(const Node& node) {
  std::string s(name_of(*node.op));
  if (node.location.known()) s += " at " + node.location.to_string();
  if (!node.module.empty()) s += " (" + node.module + ")";
  return s;
}

const Value* base_of(const Value* value) {
  while (value->node != nullptr && value->node->op->category == Category::view)
    value = std::get<Value*>(value->node->arguments[0]);
  return value;
}
Value* base_of(Value* value) {
  return const_cast<Value*>(base_of(static_cast<const Value*>(value)));
}

}  // namespace taper::ir
