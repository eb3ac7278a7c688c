#include "taper/exporter/importers/pt2/check_program.h"

#include <set>

#include "taper/exporter/io/array.h"

namespace taper::pt2 {
namespace {

class Checker {
 public:
  explicit Checker(const std::string& file) : file_(file) {}

  void check_graph(const Graph& graph, const std::string& where) const {
    std::set<std::string, std::less<>> defined;
    for (const Argument& input : graph.inputs)
      define(graph, input, "an input of " + where, defined);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const std::string at = where + ", node " + std::to_string(i) + " (" + node.describe() + ")";
      for (const NamedArgument& input : node.inputs) {
        use(input.value, at, defined);
        if (const auto* sub = std::get_if<GraphArgument>(&input.value))
          check_graph(*sub->graph, at + ", " + sub->name);
      }
      for (const Argument& output : node.outputs) define(graph, output, at, defined);
    }
    for (const Argument& output : graph.outputs) use(output, "an output of " + where, defined);
  }

  void check_signature(const ExportedProgram& program) const {
    same_length("inputs", program.graph.inputs.size(), program.inputs.size());
    same_length("outputs", program.graph.outputs.size(), program.outputs.size());
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].kind == InputSpec::Kind::constant_input) continue;
      const std::string of_graph = name_of(program.graph.inputs[i]),
                        of_spec = name_of(program.inputs[i].value);
      if (of_graph != of_spec)
        fail("input " + std::to_string(i) + " is called \"" + of_graph + "\" in the graph and \"" +
             of_spec + "\" in the signature");
    }
  }

 private:
  using Names = std::set<std::string, std::less<>>;
  [[noreturn]] void fail(const std::string& what) const {
    throw io::FileError(file_ + ": " + what);
  }

  void same_length(const char* what, size_t values, size_t specs) const {
    if (values != specs)
      fail("the graph has " + std::to_string(values) + " " + what + ", its signature " +
           std::to_string(specs));
  }

  void define_name(const std::string& name, const std::string& at, Names& defined) const {
    if (!defined.insert(name).second) fail(at + " defines \"" + name + "\" again");
  }

  void define(const Graph& graph, const Argument& argument, const std::string& at,
              Names& defined) const {
    const auto tensor = [&](const TensorName& t) {
      define_name(t.name, at, defined);
      if (!graph.tensor_values.contains(t.name))
        fail(at + ": \"" + t.name + "\" has no entry in tensor_values");
    };
    if (const auto* one = std::get_if<TensorName>(&argument)) tensor(*one);
    if (const auto* many = std::get_if<std::vector<TensorName>>(&argument))
      for (const TensorName& t : *many) tensor(t);
    if (const auto* number = std::get_if<NumberName>(&argument))
      define_name(number->name, at, defined);
  }

  void use(const Argument& argument, const std::string& at, const Names& defined) const {
    const auto name = [&](const std::string& n) {
      if (!n.empty() && !defined.contains(n))
        fail(at + " uses \"" + n + "\", which nothing before it defines");
    };
    if (const auto* one = std::get_if<TensorName>(&argument)) name(one->name);
    if (const auto* many = std::get_if<std::vector<TensorName>>(&argument))
      for (const TensorName& t : *many) name(t.name);
    if (const auto* number = std::get_if<NumberName>(&argument)) name(number->name);
    if (const auto* list = std::get_if<IntegerList>(&argument))
      for (const auto& element : *list)
        if (const auto* n = std::get_if<NumberName>(&element)) name(n->name);
  }

  const std::string& file_;
};

}  // namespace

void check_program(const ExportedProgram& program, const std::string& file) {
  const Checker checker(file);
  checker.check_signature(program);
  checker.check_graph(program.graph, "the graph");
}

}  // namespace taper::pt2
