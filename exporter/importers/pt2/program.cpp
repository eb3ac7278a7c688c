#include "taper/exporter/importers/pt2/program.h"

#include "taper/exporter/importers/pt2/aliases.h"
#include "taper/exporter/importers/pt2/check_program.h"
#include "taper/exporter/importers/pt2/json.h"
#include "taper/exporter/io/array.h"

namespace taper::pt2 {
namespace {

constexpr int schema_major = 8;
constexpr int strided_layout = 7;

struct NamedScalarType {
  int number;
  const char* name;
  std::optional<DType> dtype;
};
constexpr NamedScalarType scalar_types[] = {
    {1, "uint8", DType::u8},
    {2, "int8", DType::i8},
    {3, "int16", DType::i16},
    {4, "int32", DType::i32},
    {5, "int64", DType::i64},
    {6, "float16", DType::f16},
    {7, "float32", DType::f32},
    {8, "float64", DType::f64},
    {9, "complex32", {}},
    {10, "complex64", DType::c64},
    {11, "complex128", DType::c64},
    {12, "bool", DType::boolean},
    {13, "bfloat16", DType::bf16},
    {28, "uint16", DType::u16},
    {29, "float8_e4m3fn", DType::f8_e4m3fn},
    {30, "float8_e5m2", DType::f8_e5m2},
    {31, "float8_e4m3fnuz", {}},
    {32, "float8_e5m2fnuz", {}},
    {33, "float8_e8m0fnu", {}},
    {34, "uint32", DType::u32},
    {35, "uint64", DType::u64},
};

const NamedScalarType* find_scalar_type(int number) {
  for (const NamedScalarType& t : scalar_types)
    if (t.number == number) return &t;
  return nullptr;
}

template <class T>
std::vector<T> list_of(const Json& json, T (*read)(const Json&)) {
  std::vector<T> list;
  json.each([&](const Json& element) { list.push_back(read(element)); });
  return list;
}

int small_number(const Json& json) {
  const int64_t number = json.integer();
  if (number < 0 || number > 1000) json.fail("must be an enumerator's number");
  return static_cast<int>(number);
}

ScalarType scalar_type(const Json& json) {
  const int number = small_number(json);
  if (find_scalar_type(number) == nullptr)
    json.fail("is dtype " + std::to_string(number) + ", which is not known");
  return {number};
}

SymInt sym_int(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> SymInt {
    if (tag == "as_int") return v.integer();
    if (tag == "as_expr") return v.at("expr_str").text();
    v.fail("is no integer");
  });
}

TensorMeta tensor_meta(const Json& json) {
  if (const int layout = small_number(json.at("layout")); layout != strided_layout)
    json.at("layout").fail("must be strided (" + std::to_string(strided_layout) +
                           "): sparse tensors are not supported");
  TensorMeta meta{scalar_type(json.at("dtype")), list_of(json.at("sizes"), sym_int),
                  list_of(json.at("strides"), sym_int), sym_int(json.at("storage_offset"))};
  if (meta.sizes.size() != meta.strides.size())
    json.fail("has " + std::to_string(meta.sizes.size()) + " sizes and " +
              std::to_string(meta.strides.size()) + " strides");
  for (const SymInt& size : meta.sizes)
    if (const auto* n = std::get_if<int64_t>(&size); n != nullptr && *n < 0)
      json.at("sizes").fail("a size is " + std::to_string(*n));
  return meta;
}

// ---- arguments

TensorName tensor_name(const Json& json) { return {json.at("name").text()}; }

TensorName optional_tensor_name(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> TensorName {
    if (tag == "as_tensor") return tensor_name(v);
    if (tag == "as_none") return {};
    v.fail("is no tensor");
  });
}

/// SymIntArgument, SymFloatArgument, SymBoolArgument: a name, or the value itself.
Argument number_argument(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> Argument {
    if (tag == "as_name") return NumberName{v.text()};
    if (tag == "as_int") return v.integer();
    if (tag == "as_float") return v.real();
    if (tag == "as_bool") return v.boolean();
    v.fail("is no number");
  });
}

std::variant<int64_t, NumberName> integer_element(const Json& json) {
  const Argument argument = number_argument(json);
  if (const auto* n = std::get_if<int64_t>(&argument)) return *n;
  if (const auto* name = std::get_if<NumberName>(&argument)) return *name;
  json.fail("must be an integer");
}

int64_t integer_of(const Json& json) { return json.integer(); }
double real_of(const Json& json) { return json.real(); }
std::string text_of(const Json& json) { return json.text(); }

Graph graph_of(const Json& json);

Argument argument_of(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> Argument {
    if (tag == "as_none") return std::monostate();
    if (tag == "as_tensor") return tensor_name(v);
    if (tag == "as_tensors") return list_of(v, tensor_name);
    if (tag == "as_optional_tensor") {
      const TensorName name = optional_tensor_name(v);
      return name.name.empty() ? Argument() : Argument(name);
    }
    if (tag == "as_optional_tensors") return list_of(v, optional_tensor_name);
    if (tag == "as_int") return v.integer();
    if (tag == "as_ints") {
      const std::vector<int64_t> numbers = list_of(v, integer_of);
      return IntegerList(numbers.begin(), numbers.end());
    }
    if (tag == "as_float") return v.real();
    if (tag == "as_complex") return std::complex<double>(v.at("real").real(), v.at("imag").real());
    if (tag == "as_floats") return list_of(v, real_of);
    if (tag == "as_bool") return v.boolean();
    if (tag == "as_bools")
      return list_of(
          v, +[](const Json& b) { return b.boolean(); });
    if (tag == "as_string" || tag == "as_operator") return v.text();
    if (tag == "as_strings") return list_of(v, text_of);
    if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool")
      return number_argument(v);
    if (tag == "as_sym_ints") return list_of(v, integer_element);
    if (tag == "as_scalar_type") return scalar_type(v);
    if (tag == "as_memory_format") return MemoryFormat{small_number(v)};
    if (tag == "as_layout") return Layout{small_number(v)};
    if (tag == "as_device") return Device{v.at("type").text()};
    if (tag == "as_graph")
      return GraphArgument{v.at("name").text(), std::make_shared<Graph>(graph_of(v.at("graph")))};
    return OtherArgument{tag};
  });
}

// ---- graphs

/// The last path in "key,path,type;key,path,type". If a module is called twice, the paths of later
/// calls end in "@1".
std::string innermost_module(const std::string& stack) {
  const size_t last = stack.rfind(';');
  const std::string entry = last == stack.npos ? stack : stack.substr(last + 1);
  const size_t first = entry.find(','), second = entry.find(',', first + 1);
  if (first == entry.npos || second == entry.npos) return "";
  std::string path = entry.substr(first + 1, second - first - 1);
  if (const size_t at = path.find('@'); at != path.npos) path.resize(at);
  return path;
}

NamedArgument named_argument(const Json& json) {
  return {json.at("name").text(), argument_of(json.at("arg"))};
}

Node node_of(const Json& json) {
  Node node;
  node.target = json.at("target").text();
  node.inputs = list_of(json.at("inputs"), named_argument);
  node.outputs = list_of(json.at("outputs"), argument_of);
  resolve_alias(node);
  if (json.has("name") && !json.at("name").is_null()) node.name = json.at("name").text();
  for (size_t i = 0; node.name.empty() && i < node.outputs.size(); ++i)
    node.name = name_of(node.outputs[i]);
  if (const Json metadata = json.at("metadata"); !metadata.is_null()) {
    if (metadata.has("nn_module_stack"))
      node.module = innermost_module(metadata.at("nn_module_stack").text());
    if (metadata.has("stack_trace")) node.stack_trace = metadata.at("stack_trace").text();
  }
  return node;
}

Graph graph_of(const Json& json) {
  Graph graph;
  graph.inputs = list_of(json.at("inputs"), argument_of);
  graph.outputs = list_of(json.at("outputs"), argument_of);
  graph.nodes = list_of(json.at("nodes"), node_of);
  json.at("tensor_values").members([&](const std::string& name, const Json& v) {
    graph.tensor_values[name] = tensor_meta(v);
  });
  for (const char* table : {"sym_int_values", "sym_bool_values", "sym_float_values"}) {
    if (!json.has(table)) continue;
    json.at(table).members([&](const std::string& name, const Json& v) {
      v.choice([&](const std::string& tag, const Json& value) {
        auto& number = graph.numbers[name];
        if (tag == "as_int")
          number = value.integer();
        else if (tag == "as_float")
          number = value.real();
        else if (tag == "as_bool")
          number = value.boolean();
        else if (tag == "as_expr")
          number = value.at("expr_str").text();
        else
          value.fail("is no number");
      });
    });
  }
  return graph;
}

// ---- the signature

InputSpec input_spec(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> InputSpec {
    using Kind = InputSpec::Kind;
    InputSpec spec;
    if (tag == "constant_input") {
      spec.kind = Kind::constant_input;
      spec.target = v.at("name").text();
      v.at("value").choice([&](const std::string& type, const Json& value) {
        if (type == "as_int")
          spec.constant = value.integer();
        else if (type == "as_float")
          spec.constant = value.real();
        else if (type == "as_bool")
          spec.constant = value.boolean();
        else if (type == "as_string")
          spec.constant = value.text();
        else if (type != "as_none")
          value.fail("is no constant");
      });
      return spec;
    }
    if (tag == "user_input") {
      spec.value = argument_of(v.at("arg"));
      return spec;
    }
    spec.value = TensorName{v.at("arg").at("name").text()};
    struct Entry {
      const char* tag;
      Kind kind;
      const char* target;
    };
    for (const Entry& e : {Entry{"parameter", Kind::parameter, "parameter_name"},
                           Entry{"buffer", Kind::buffer, "buffer_name"},
                           Entry{"tensor_constant", Kind::tensor_constant, "tensor_constant_name"},
                           Entry{"custom_obj", Kind::custom_obj, "custom_obj_name"}}) {
      if (tag != e.tag) continue;
      spec.kind = e.kind;
      spec.target = v.at(e.target).text();
      if (v.has("persistent")) spec.persistent = v.at("persistent").boolean();
      return spec;
    }
    if (tag != "token") v.fail("is an input of unknown kind");
    spec.kind = Kind::token;
    return spec;
  });
}

/// A tensor or None: a parameter on which the loss does not depend has no gradient.
Argument given_tensor(const Json& json) {
  if (json.is_null() || json.has("as_none") || json.at("name").is_null()) return {};
  return tensor_name(json);
}

OutputSpec output_spec(const Json& json) {
  return json.choice([](const std::string& tag, const Json& v) -> OutputSpec {
    using Kind = OutputSpec::Kind;
    if (tag == "user_output") return {Kind::user_output, argument_of(v.at("arg")), ""};
    struct Entry {
      const char* tag;
      Kind kind;
      const char* target;
    };
    for (const Entry& e :
         {Entry{"loss_output", Kind::loss_output, nullptr}, Entry{"token", Kind::token, nullptr},
          Entry{"buffer_mutation", Kind::buffer_mutation, "buffer_name"},
          Entry{"parameter_mutation", Kind::parameter_mutation, "parameter_name"},
          Entry{"user_input_mutation", Kind::user_input_mutation, "user_input_name"},
          Entry{"gradient_to_parameter", Kind::gradient_to_parameter, "parameter_name"},
          Entry{"gradient_to_user_input", Kind::gradient_to_user_input, "user_input_name"}})
      if (tag == e.tag)
        return {e.kind, given_tensor(v.at("arg")),
                e.target == nullptr ? "" : v.at(e.target).text()};
    v.fail("is an output of unknown kind");
  });
}

Range range_of(const Json& json) {
  Range range;
  if (const Json low = json.at("min_val"); !low.is_null()) range.minimum = low.integer();
  if (const Json high = json.at("max_val"); !high.is_null()) range.maximum = high.integer();
  if (range.minimum && range.maximum && *range.minimum > *range.maximum)
    json.fail("its minimum " + std::to_string(*range.minimum) + " is above its maximum " +
              std::to_string(*range.maximum));
  return range;
}

void check_version(const Json& root, ExportedProgram& program) {
  const Json version = root.at("schema_version");
  const int64_t major = version.at("major").integer(), minor = version.at("minor").integer();
  if (root.has("torch_version")) program.torch_version = root.at("torch_version").text();
  if (major != schema_major)
    root.fail("export schema " + std::to_string(major) + "." + std::to_string(minor) +
              (program.torch_version.empty() ? "" : " (torch " + program.torch_version + ")") +
              " is not supported, only " + std::to_string(schema_major) +
              ".x; export again with PyTorch 2.9 or later");
  program.schema_minor = static_cast<int>(minor);
}

}  // namespace

std::optional<DType> ScalarType::dtype() const {
  const NamedScalarType* type = find_scalar_type(number);
  return type == nullptr ? std::nullopt : type->dtype;
}

bool ScalarType::is_complex128() const { return number == 11; }

std::string ScalarType::name() const {
  const NamedScalarType* type = find_scalar_type(number);
  return type == nullptr ? "dtype " + std::to_string(number) : type->name;
}

std::vector<TensorName> tensors_in(const Argument& argument) {
  if (const auto* one = std::get_if<TensorName>(&argument)) return {*one};
  if (const auto* many = std::get_if<std::vector<TensorName>>(&argument)) return *many;
  return {};
}

std::string name_of(const Argument& argument) {
  if (const auto* t = std::get_if<TensorName>(&argument)) return t->name;
  if (const auto* n = std::get_if<NumberName>(&argument)) return n->name;
  if (const auto* l = std::get_if<std::vector<TensorName>>(&argument); l != nullptr && !l->empty())
    return l->front().name;
  return "";
}

std::string Node::describe() const { return name.empty() ? target : name + ": " + target; }

ExportedProgram parse_program(std::string_view json, const std::string& name) {
  const nlohmann::json parsed =
      parse_json(json, name, {"from_node", "source_fn_stack", "torch_fn", "custom"});
  const Json root(parsed, name);
  ExportedProgram program;
  check_version(root, program);
  const Json module = root.at("graph_module");
  program.graph = graph_of(module.at("graph"));
  program.inputs = list_of(module.at("signature").at("input_specs"), input_spec);
  program.outputs = list_of(module.at("signature").at("output_specs"), output_spec);
  if (root.has("guards_code"))
    root.at("guards_code").each([&](const Json& guard) { program.guards.push_back(guard.text()); });
  root.at("range_constraints").members([&](const std::string& symbol, const Json& v) {
    program.ranges[symbol] = range_of(v);
  });
  if (root.has("verifiers"))
    for (const std::string& verifier : list_of(root.at("verifiers"), text_of))
      program.functional |= verifier == "ATEN";
  module.at("module_call_graph").each([&](const Json& entry) {
    if (!entry.at("fqn").text().empty() || entry.at("signature").is_null()) return;
    const Json signature = entry.at("signature");
    program.in_spec = signature.at("in_spec").text();
    program.out_spec = signature.at("out_spec").text();
    if (signature.has("forward_arg_names") && !signature.at("forward_arg_names").is_null())
      program.argument_names = list_of(signature.at("forward_arg_names"), text_of);
  });
  if (module.has("treespec_namedtuple_fields"))
    module.at("treespec_namedtuple_fields").members([&](const std::string& type, const Json& v) {
      program.namedtuple_fields[type] = list_of(v.at("field_names"), text_of);
    });
  check_program(program, name);
  return program;
}

std::map<std::string, PayloadMeta> parse_payloads(std::string_view json, const std::string& name) {
  const nlohmann::json parsed = parse_json(json, name);
  std::map<std::string, PayloadMeta> payloads;
  Json(parsed, name).at("config").members([&](const std::string& path, const Json& v) {
    PayloadMeta& meta = payloads[path];
    meta.path_name = v.at("path_name").text();
    meta.use_pickle = v.at("use_pickle").boolean();
    if (!v.at("tensor_meta").is_null()) meta.tensor_meta = tensor_meta(v.at("tensor_meta"));
  });
  return payloads;
}

}  // namespace taper::pt2
