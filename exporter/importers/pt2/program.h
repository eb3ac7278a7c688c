// The JSON of a `.pt2` archive as C++: PyTorch's export schema, major version 8 (torch 2.6 to
// 2.15). Names are the schema's own (torch/_export/serde/schema.py).
#pragma once
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "taper/runtime/core/dtype.h"

namespace taper::pt2 {

struct Graph;

/// An integer, or the text of an expression over symbols: "Add(Symbol('s0', …), Integer(1))".
using SymInt = std::variant<int64_t, std::string>;

/// A dtype by its number in the schema. Taper may not have it.
struct ScalarType {
  int number = 0;
  /// Nothing for complex numbers of two f16, and for rare floats of 8 bits. complex128 becomes c64:
  /// see complex128.h.
  std::optional<DType> dtype() const;
  bool is_complex128() const;
  std::string name() const;  ///< "complex64"
  bool operator==(const ScalarType&) const = default;
};

struct TensorMeta {
  ScalarType dtype;
  std::vector<SymInt> sizes, strides;
  SymInt storage_offset;
};

/// A value of a graph, by name.
struct TensorName {
  std::string name;  ///< empty: an absent element of a `Tensor?[]`
};
struct NumberName {
  std::string name;
};
struct MemoryFormat {
  int number;
};
struct Layout {
  int number;
};
struct Device {
  std::string type;
};
/// A branch or a body of control flow.
struct GraphArgument {
  std::string name;
  std::shared_ptr<const Graph> graph;
};
/// An argument of a kind that no operator of Taper takes, such as a script object or a list of
/// lists.
struct OtherArgument {
  std::string tag;
};

/// `as_none` is std::monostate. A known number is a plain number, even in SymIntArgument.
using Argument = std::variant<std::monostate, TensorName, std::vector<TensorName>, NumberName,
                              int64_t, std::vector<std::variant<int64_t, NumberName>>, double,
                              std::complex<double>, std::vector<double>, bool, std::vector<bool>,
                              std::string, std::vector<std::string>, ScalarType, MemoryFormat,
                              Layout, Device, GraphArgument, OtherArgument>;
using IntegerList = std::vector<std::variant<int64_t, NumberName>>;

/// The tensors that an argument names, one or a list.
std::vector<TensorName> tensors_in(const Argument& argument);
/// The first value that an argument names; "" if there is none.
std::string name_of(const Argument& argument);

struct NamedArgument {
  std::string name;  ///< the schema's; empty in calls of higher-order operators
  Argument value;
};

struct Node {
  std::string target;  ///< "torch.ops.aten.add.Tensor"
  std::string name;    ///< of the node, or of its first result
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  bool gives_view = false;  ///< the file has `view`, which was changed to `reshape`
  std::string module;       ///< path of the innermost module: "features.3.conv"
  std::string stack_trace;  ///< as Python prints it

  /// The first result and the target, for messages.
  std::string describe() const;
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensor_values;
  /// The integers, booleans and reals among the values: a number, or the text of an expression.
  std::map<std::string, std::variant<int64_t, double, bool, std::string>, std::less<>> numbers;
};

/// An argument of the user that is a constant of the program.
using ConstantValue = std::variant<std::monostate, int64_t, double, bool, std::string>;

struct InputSpec {
  enum class Kind : uint8_t {
    user_input,
    parameter,
    buffer,
    tensor_constant,
    custom_obj,
    token,
    constant_input
  };
  Kind kind = Kind::user_input;
  Argument value;      ///< except for constant_input
  std::string target;  ///< path of the parameter, buffer or constant; for constant_input, its name
  bool persistent = true;
  ConstantValue constant;
};
inline bool is_weight(const InputSpec& spec) {
  return spec.kind == InputSpec::Kind::parameter || spec.kind == InputSpec::Kind::buffer ||
         spec.kind == InputSpec::Kind::tensor_constant;
}

struct OutputSpec {
  enum class Kind : uint8_t {
    user_output,
    loss_output,
    buffer_mutation,
    parameter_mutation,
    user_input_mutation,
    gradient_to_parameter,
    gradient_to_user_input,
    token
  };
  Kind kind = Kind::user_output;
  Argument value;
  std::string target;
};

/// Bounds of a symbol or an expression. nullopt: unbounded.
struct Range {
  std::optional<int64_t> minimum, maximum;
};

struct ExportedProgram {
  Graph graph;
  std::vector<InputSpec> inputs;    ///< one for each graph.inputs
  std::vector<OutputSpec> outputs;  ///< one for each graph.outputs
  std::map<std::string, Range> ranges;
  std::vector<std::string> guards;  ///< Python's text, see guards.h
  std::string in_spec, out_spec;    ///< how arguments and results nest: JSON of torch's pytree
  std::map<std::string, std::vector<std::string>> namedtuple_fields;  ///< by the type's name
  std::vector<std::string> argument_names;
  std::string torch_version;
  int schema_minor = 0;
  bool functional = false;  ///< after run_decompositions()
};

/// Reads the JSON of a model and checks that its parts fit each other: every name is defined once
/// and before it is used, signatures are as long as the lists that they describe, tensors have
/// types. Messages begin with `name`. Throws io::FileError, which says where in the JSON the fault
/// is.
ExportedProgram parse_program(std::string_view json, const std::string& name);

/// A payload config: says which record holds a tensor.
struct PayloadMeta {
  std::string path_name;
  bool use_pickle = false;
  std::optional<TensorMeta> tensor_meta;
};
std::map<std::string, PayloadMeta> parse_payloads(std::string_view json, const std::string& name);

}  // namespace taper::pt2
