// The intermediate representation: ATen operators over values with symbolic shapes, states, and the
// source lines of the nodes.
#pragma once
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "taper/exporter/base/location.h"
#include "taper/exporter/dim/type.h"
#include "taper/kernels/operators.h"

namespace taper::ir {

class Graph;
struct Node;
struct Value;

/// The elements of a constant or of a state's first value: row-major, immutable, shared.
struct Payload {
  DType dtype;
  std::vector<int64_t> sizes;
  std::shared_ptr<const std::byte> bytes;  ///< kept alive by this pointer
  size_t size_bytes = 0;
  Layout layout = Layout::dense;  ///< not dense: f32 in halves or in blocks

  /// Copies `bytes`.
  static std::shared_ptr<const Payload> copy(DType dtype, std::vector<int64_t> sizes,
                                             const void* bytes);
  template <class T>
  static std::shared_ptr<const Payload> from(const std::vector<T>& elements,
                                             std::vector<int64_t> sizes) {
    return copy(dtypes_of<T>::dtype, std::move(sizes), elements.data());
  }
};

/// The dtype of the elements as they are stored. f32 in blocks counts as f32.
inline DType stored_dtype(const Payload& p) {
  if (!is_in_halves(p.layout)) return p.dtype;
  return is_in_f16(p.layout) ? DType::f16 : DType::bf16;
}

/// The value of an argument. The operator's row decides which type it has:
///   absent optional → monostate · Tensor → Value* · Tensor[] and Tensor?[] → vector<Value*>
///   (nullptr: absent element) · int, SymInt → Dim · int[], SymInt[], bool[] → vector<Dim> · float
///   → double · bool → bool · Scalar → Scalar · str → string · ScalarType → DType
using Argument = std::variant<std::monostate, Value*, std::vector<Value*>, Dim, std::vector<Dim>,
                              double, std::vector<double>, bool, Scalar, std::string, DType>;

/// A tensor in the graph. Its address is its identity.
struct Value {
  enum class Origin : uint8_t { input, state, constant, result };

  std::string name;            ///< unique in its graph
  bool named_by_user = false;  ///< not after its operator
  Type
      type;  ///< of views: strides and offset relative to the storage of the base that they look at
  Origin origin;
  Node* node = nullptr;  ///< the producer of a result
  int index = 0;         ///< among the node's results, or the graph's inputs, states or constants
  std::vector<Node*>
      users;  ///< each node once for each use; the graph's outputs and writes are not among them
};

/// A call of an operator.
struct Node {
  const Operator* op;
  std::vector<Argument> arguments;              ///< those that reach kernels, in the row's order
  std::vector<std::unique_ptr<Value>> results;  ///< nullptr: not computed (`output_mask`)
  Location location;                            ///< in the user's model
  std::string module;                           ///< "features.3.conv"
  std::list<Node>::iterator position;
  /// The bodies of a branch or a loop (ir/control_flow.h). A body is closed: it has an input for
  /// each operand, and constants, symbols and checks of its own. It has neither states nor writes.
  /// Symbols of the graphs around it may occur in it.
  std::vector<std::unique_ptr<Graph>> bodies;

  Value* result(size_t i = 0) const { return results[i].get(); }
};

/// A tensor or a number that the caller gives.
struct Input {
  std::string name;
  std::unique_ptr<Value> value;  ///< nullptr: a number, whose value is `number`
  Dim number;
};

struct Output {
  std::string name;
  Value* value = nullptr;  ///< nullptr: the number `number`
  Dim number;
};

/// Stored in programs: never change a value.
enum class StateKind : uint8_t { parameter = 0, buffer = 1, optimizer = 2, random = 3, cache = 4 };

/// A tensor that outlives a call and may be written. Methods share states by path.
struct State {
  std::string path;  ///< "conv1.weight"
  StateKind kind;
  bool trainable = false;
  std::shared_ptr<const Payload> initial;  ///< nullptr: zeros
  std::unique_ptr<Value> value;            ///< what it holds at the start; of fixed sizes, dense
};

/// At the end, `state` takes the elements of `value`.
struct Write {
  State* state;
  Value* value;
};

struct Constant {
  std::string path;  ///< "conv1.weight", or what made it; may be empty
  std::shared_ptr<const Payload> payload;
  std::unique_ptr<Value> value;
};

/// Stored in programs: never change a value.
enum class SymbolSource : uint8_t {
  input_extent = 0,   ///< extent `second` of input `first`
  input_number = 1,   ///< input `first`, a number
  element = 2,        ///< element `second` of `value`
  kernel_extent = 3,  ///< extent `second` of `value`, as counted by the kernel that wrote it
};

/// Where a symbol gets its value at run time.
struct SymbolBinding {
  Dim symbol;
  SymbolSource source;
  int first = 0, second = 0;
  Value* value = nullptr;
};

/// A function: a list of nodes, in an order that computes every value before it is used. The graph
/// owns nodes and values; their addresses stay valid until they are erased. Not copyable.
class Graph {
 public:
  explicit Graph(std::string name = "forward") : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }

  // ---- the signature ----
  Value* add_input(std::string name, const Type& type);
  /// Adds a number that the caller gives. `number` is a symbol; bind it with source `input_number`.
  void add_number_input(std::string name, Dim number);
  void add_output(std::string name, Value* value);
  void add_number_output(std::string name, Dim number);
  State* add_state(std::string path, StateKind kind, bool trainable, DType dtype,
                   const std::vector<int64_t>& sizes, std::shared_ptr<const Payload> initial);
  Value* add_constant(std::string path, std::shared_ptr<const Payload> payload);
  /// Replaces an earlier write to the same state.
  void add_write(State* state, Value* value);
  /// Says where a symbol gets its value. Every symbol that occurs in a type or an argument needs a
  /// binding.
  void bind_symbol(SymbolBinding binding) { symbols_.push_back(std::move(binding)); }
  /// Records an assumption. Equal assumptions are recorded once.
  void add_check(const Check& check);

  std::vector<Input>& inputs() { return inputs_; }
  std::vector<Output>& outputs() { return outputs_; }
  std::list<State>& states() { return states_; }
  std::vector<Write>& writes() { return writes_; }
  std::list<Constant>& constants() { return constants_; }
  std::vector<SymbolBinding>& symbols() { return symbols_; }
  std::vector<Check>& checks() { return checks_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::list<State>& states() const { return states_; }
  const std::vector<Write>& writes() const { return writes_; }
  const std::list<Constant>& constants() const { return constants_; }
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }
  const std::vector<Check>& checks() const { return checks_; }
  State* find_state(std::string_view path);

  // ---- nodes ----
  /// In order. Erasing a node keeps iterators to the others.
  std::list<Node>& nodes() { return nodes_; }
  const std::list<Node>& nodes() const { return nodes_; }

  /// Appends a call. `types` has one entry for each result; an entry that is not `present` gives no
  /// value.
  Node* append(const Operator& op, std::vector<Argument> arguments, std::span<const Type> types,
               Location location = {}, std::string module = {});
  /// The same, before `before`.
  Node* insert_before(Node* before, const Operator& op, std::vector<Argument> arguments,
                      std::span<const Type> types, Location location = {}, std::string module = {});
  /// Appends a node with bodies: a branch or a loop.
  Node* append_control(const Operator& op, std::vector<Argument> arguments,
                       std::vector<std::unique_ptr<Graph>> bodies, std::span<const Type> types,
                       Location location = {}, std::string module = {});

  // ---- editing ----
  void set_argument(Node* node, size_t i, Argument argument);
  /// Replaces `old` by `replacement` in all nodes, outputs and writes.
  void replace_uses(Value* old, Value* replacement);
  /// The same in one node.
  void replace_uses_in(Node* node, Value* old, Value* replacement);
  /// Removes a node whose results nobody uses.
  void erase(Node* node);
  /// Removes constants that nobody uses. States and inputs stay: they are the method's signature.
  void erase_unused_constants();
  /// Removes a state that nobody reads or writes.
  void erase_state(State* state);
  bool is_used(const Value* value) const;
  /// Whether the value is an output or is written to a state.
  bool is_returned(const Value* value) const;

  /// A name that no value has yet: `stem`, or `stem_1`, …. Characters other than letters, digits,
  /// '_' and '.' become '_'.
  std::string fresh_name(std::string_view stem);
  /// Gives a value a name, which no other value may have.
  void rename(Value* value, const std::string& name);
  /// Gives a value its name in the user's model. If another value of the model already has this
  /// name, the value gets a similar one. A value that got this name from its operator is renamed.
  void name_by_user(Value* value, std::string_view name);
  /// Exchanges two names. For a value that takes the place of another.
  void swap_names(Value* a, Value* b);

 private:
  Node* insert(std::list<Node>::iterator before, const Operator& op,
               std::vector<Argument> arguments, std::span<const Type> types, Location location,
               std::string module);
  std::unique_ptr<Value> make_value(std::string_view name, const Type& type, Value::Origin origin,
                                    int index);
  void name_freshly(Value* value, std::string_view stem);

  std::string name_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::list<State> states_;
  std::vector<Write> writes_;
  std::list<Constant> constants_;
  std::vector<SymbolBinding> symbols_;
  std::vector<Check> checks_;
  std::list<Node> nodes_;
  std::map<std::string, Value*, std::less<>> names_;  // nullptr: taken, and of no value
  std::map<std::string, int, std::less<>> counters_;
};

/// Calls `visit(Value*)` for every tensor in an argument, or in all arguments of a node. Absent
/// tensors are skipped.
template <class Visit>
void for_each_value(const Argument& argument, Visit&& visit) {
  if (auto* one = std::get_if<Value*>(&argument)) {
    if (*one != nullptr) visit(*one);
  } else if (auto* many = std::get_if<std::vector<Value*>>(&argument)) {
    for (Value* v : *many)
      if (v != nullptr) visit(v);
  }
}
template <class Visit>
void for_each_value(const Node& node, Visit&& visit) {
  for (const Argument& a : node.arguments) for_each_value(a, visit);
}

/// Calls `visit` for every symbolic number in an argument or a node.
template <class Visit>
void for_each_dim(const Argument& argument, Visit&& visit) {
  if (auto* one = std::get_if<Dim>(&argument))
    visit(*one);
  else if (auto* many = std::get_if<std::vector<Dim>>(&argument))
    for (Dim d : *many) visit(d);
}

/// Calls `visit(graph)` for a graph and the bodies in it, outer ones first.
template <class AnyGraph, class Visit>
void for_each_graph(AnyGraph& graph, Visit&& visit) {
  visit(graph);
  for (auto& node : graph.nodes())
    for (auto& body : node.bodies) for_each_graph<AnyGraph>(*body, visit);
}

/// The name of a node in errors and reports: "relu at lenet.cpp:14 (fc1)".
std::string describe(const Node& node);

/// The value whose storage `value` shares: the value itself, or, for a view, the base of its chain.
const Value* base_of(const Value* value);
Value* base_of(Value* value);

}  // namespace taper::ir
