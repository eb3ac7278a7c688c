#pragma once
#include <iosfwd>
#include <string>
#include <vector>

namespace taper::quantize {

/// What happens to a node, and why.
struct Decision {
  std::string name;  ///< of the node's first result: "conv2d_3"
  std::string node;  ///< "convolution at net.py:14 (conv1)"
  bool quantized = false;
  std::string why;  ///< of a node that stays float; of others a remark, or empty
};

/// A table of the nodes that stay float, and how many do not.
void print(std::ostream& out, const std::vector<Decision>& decisions);

}  // namespace taper::quantize
