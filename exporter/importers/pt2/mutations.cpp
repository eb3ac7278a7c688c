#include "taper/exporter/importers/pt2/mutations.h"

#include <map>
#include <string_view>

#include "taper/exporter/importers/pt2/targets.h"
#include "taper/kernels/operators.h"

namespace taper::pt2 {
namespace {

/// Whether the row says that the result may be a view of the first argument.
bool gives_view(const eager::OperatorInfo& info) {
  const Parameter& result = info.schema.results[0];
  return info.op->category == Category::view || (result.alias && !result.mutated);
}

const std::string* first_tensor(const Node& node) {
  for (const NamedArgument& input : node.inputs)
    if (const auto* tensor = std::get_if<TensorName>(&input.value)) return &tensor->name;
  return nullptr;
}

}  // namespace

std::set<std::string> written_inputs(const ExportedProgram& program) {
  std::set<std::string> written;
  std::map<std::string, std::string> root;  // for each value, the input that it looks into
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (const auto* tensor = std::get_if<TensorName>(&program.inputs[i].value);
        tensor != nullptr && program.inputs[i].kind == InputSpec::Kind::user_input)
      root[tensor->name] = tensor->name;
  for (const OutputSpec& spec : program.outputs)
    if (spec.kind == OutputSpec::Kind::user_input_mutation) written.insert(spec.target);
  for (const Node& node : program.graph.nodes) {
    const auto name = operator_name(node.target);
    const std::string* self = first_tensor(node);
    if (!name || self == nullptr || !root.contains(*self)) continue;
    const eager::Overload overload = find_runnable(*name);
    if (overload.info == nullptr) continue;
    if (overload.in_place) written.insert(root[*self]);
    if (!overload.in_place && !gives_view(*overload.info)) continue;
    for (const Argument& output : node.outputs) {
      if (const auto* one = std::get_if<TensorName>(&output)) root[one->name] = root[*self];
      if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
        for (const TensorName& t : *many) root[t.name] = root[*self];
    }
  }
  return written;
}

}  // namespace taper::pt2
