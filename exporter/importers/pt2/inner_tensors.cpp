#include "taper/exporter/importers/pt2/inner_tensors.h"

#include <utility>

namespace taper::pt2 {
namespace {

constexpr const char* access = "torch.ops.export.access_subclass_inner_tensor.default";

/// Gives the tensor and the attribute that a node reads, and its result. Returns false for other
/// nodes.
bool reads_part(const Node& node, std::string& tensor, std::string& attribute,
                std::string& result) {
  if (node.target != access || node.inputs.size() != 2 || node.outputs.size() != 1) return false;
  const auto* from = std::get_if<TensorName>(&node.inputs[0].value);
  const auto* part = std::get_if<std::string>(&node.inputs[1].value);
  const auto* to = std::get_if<TensorName>(&node.outputs[0]);
  if (from == nullptr || part == nullptr || to == nullptr) return false;
  tensor = from->name, attribute = *part, result = to->name;
  return true;
}

}  // namespace

std::map<std::string, InnerTensor> take_out_inner_tensors(ExportedProgram& program) {
  std::map<std::string, InnerTensor> by_value;  // the tensor of which a value is a part
  for (const InputSpec& spec : program.inputs)
    if (is_weight(spec)) by_value[name_of(spec.value)] = {spec.target, ""};

  std::map<std::string, InnerTensor> inner;
  std::vector<Node> kept;
  for (Node& node : program.graph.nodes) {
    std::string tensor, attribute, result;
    const bool reads = reads_part(node, tensor, attribute, result);
    const auto whole = reads ? by_value.find(tensor) : by_value.end();
    if (whole == by_value.end()) {
      kept.push_back(std::move(node));
      continue;
    }
    InnerTensor part = whole->second;
    part.attribute += (part.attribute.empty() ? "" : ".") + attribute;
    const std::string path = part.path + "." + part.attribute;
    by_value[result] = part;
    InputSpec spec;
    spec.kind = InputSpec::Kind::tensor_constant;
    spec.value = TensorName{result};
    spec.target = path;
    program.graph.inputs.emplace_back(TensorName{result});
    program.inputs.push_back(std::move(spec));
    inner[path] = std::move(part);
  }
  program.graph.nodes = std::move(kept);
  return inner;
}

}  // namespace taper::pt2
