// Tensor subclasses, such as torchao's quantized weights: a graph reads the plain tensors inside.
#pragma once
#include <map>
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// A plain tensor inside of a parameter or buffer.
struct InnerTensor {
  std::string path;       ///< of the parameter: "fc.weight"
  std::string attribute;  ///< "qdata"; "outer.inner" inside of a subclass that is inside
};

/// Makes inputs of what `access_subclass_inner_tensor` reads from weights: the graph then takes
/// "fc.weight.qdata", and no such node is left. Gives the new inputs by their paths.
std::map<std::string, InnerTensor> take_out_inner_tensors(ExportedProgram& program);

}  // namespace taper::pt2
