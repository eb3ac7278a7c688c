// Tensor subclasses, such as torchao's quantized weights. A graph reads the plain tensors inside
// them.
#pragma once
#include <map>
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// A plain tensor inside a parameter or buffer.
struct InnerTensor {
  std::string path;       ///< of the parameter: "fc.weight"
  std::string attribute;  ///< "qdata"; "outer.inner" for a subclass inside a subclass
};

/// Removes the nodes `access_subclass_inner_tensor` that read weights. Each of them becomes an
/// input, such as "fc.weight.qdata". Returns the new inputs by their paths.
std::map<std::string, InnerTensor> take_out_inner_tensors(ExportedProgram& program);

}  // namespace taper::pt2
