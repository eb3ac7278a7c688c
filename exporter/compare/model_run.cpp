// Runs a PyTorch model in eager.
#include <algorithm>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::compare {
namespace {

using eager::Tensor;

/// In a program, arguments that the model changes are further outputs, called "NAME_mutated". These
/// names are at the end of `names`.
std::vector<Output> changed_inputs(const pt2::Model& model, const std::vector<Tensor>& inputs,
                                   const std::vector<std::string>& names) {
  std::map<std::string, Output> by_name;
  size_t next = 0;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const pt2::Input& input = model.inputs()[i];
    if (input.kind == pt2::Input::Kind::constant) continue;
    const Tensor& tensor = inputs.at(next++);
    const std::string name = input.name + "_mutated";
    if (std::ranges::find(names, name) != names.end())
      by_name[name] = {name, "input " + std::to_string(i) + " afterwards", eager::array_of(tensor)};
  }
  std::vector<Output> outputs;
  for (const std::string& name : names)
    if (const auto at = by_name.find(name); at != by_name.end()) outputs.push_back(at->second);
  return outputs;
}

}  // namespace

Run run_model(pt2::Model& model, const std::vector<io::Array>& inputs) {
  const eager::NoGrad guard;
  std::vector<Tensor> tensors;
  for (const io::Array& array : inputs) tensors.push_back(eager::tensor_of(array.clone()));

  Run run;
  const std::vector<Tensor> results = model.forward(tensors, [&](const pt2::Computed& c) {
    const bool is_view = c.value.impl()->base.defined();
    run.nodes.push_back({c.name, c.index, c.op, c.input, c.module,
                         c.location.known() ? c.location.to_string() : "", eager::array_of(c.value),
                         is_view, false});
  });
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined())
      run.outputs.push_back(
          {model.outputs()[i].name, "output " + std::to_string(i), eager::array_of(results[i])});
  for (Output& output : changed_inputs(model, tensors, model.output_names()))
    run.outputs.push_back(std::move(output));
  return run;
}

}  // namespace taper::compare
