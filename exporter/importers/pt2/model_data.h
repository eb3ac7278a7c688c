// The data of a `Model`.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/dim_choices.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/pt2.h"

namespace taper::pt2 {

struct Model::Data {
  std::string name;  // for messages
  ExportedProgram program;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<GraphValue> bound;  // one for each graph.inputs: weights; nothing for the user's
  std::vector<nn::Parameter> parameters;  // their paths are beside them
  std::vector<std::string> parameter_paths;
  std::vector<nn::Tensor> buffers;
  std::vector<std::string> buffer_paths;
  std::map<std::string, nn::Tensor> tensors;  // by path
  std::set<std::string> written;              // names of inputs
  std::vector<Unsupported> unsupported;       // parts of the graph
  Assumptions assumptions;
  std::map<std::string, Dim> symbols;  // symbols in the inputs' sizes, by PyTorch's name
  std::vector<std::string> unknown_dims, notes;
  std::vector<Check> guards;  // between sizes of inputs
  std::vector<std::string> unread_guards;
  std::span<const std::byte> example_inputs;  // a file of torch.save; may be empty
  std::shared_ptr<const void> file;           // the file that holds both
};

}  // namespace taper::pt2
