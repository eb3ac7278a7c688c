// Which kernel records can run a node, and what they ask of its arguments.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/ir/control_flow.h"
#include "taper/kernels/kernel.h"

namespace taper::emit {

/// What a program stores of a kernel: operator and the dtype of each tensor argument and result,
/// `no_dtype` for an absent one.
struct Signature {
  static constexpr uint8_t no_dtype = 255;
  const Operator* op;
  std::vector<uint8_t> dtypes;
  auto operator<=>(const Signature&) const = default;
};
Signature signature_of(const ir::Node& node);
/// "mm(f32, f32) -> f32"
std::string to_string(const Signature& signature);

/// The records that a loader may take for a node, whatever CPU the device has. A node must meet the
/// requirements of all of them.
struct Candidates {
  std::vector<const Kernel*> records;  ///< in the order of preference; empty: no kernel

  /// The strictest contract on argument `i`.
  Strides strides(int i) const;
  /// Bit i: every record lets result 0 lie on argument i.
  uint32_t overwrites() const;
};
Candidates find_candidates(const ir::Node& node, std::span<const Kernel* const> kernels);

/// Whether a node is an instruction. Views are values, branches and loops are jumps; every other
/// node is an instruction and must have a kernel.
inline bool is_instruction(const ir::Node& node) {
  return node.op->category != Category::view && !ir::is_control(node);
}

/// The candidates of every instruction, those in bodies too. Throws ExportError with all that lack
/// one, their places and the remedy.
std::map<const ir::Node*, Candidates> find_all_candidates(const ir::Graph& graph,
                                                          std::span<const Kernel* const> kernels);

}  // namespace taper::emit
