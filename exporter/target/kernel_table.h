// Which kernel records of a target can run a node, and what they ask of its arguments.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/target/target.h"
#include "taper/kernels/kernel.h"

namespace taper::target {

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

/// How a record reads argument `i` of a call, if it is a constant in the layout `from`. nullptr: it
/// has no Packing for that.
const Packing* packing_of(const Kernel& kernel, const ir::Node& call, size_t i, Layout from);

/// The records that a loader may take for a node, on some machine of the target. A node must meet
/// the requirements of all of them.
struct Candidates {
  std::vector<const Kernel*> records;  ///< in the order of preference; empty: no kernel

  /// The strictest contract on argument `i`.
  Strides strides(int i) const;
  /// Bit i: every record lets result 0 lie on argument i.
  uint32_t overwrites() const;
  /// Whether every record reads argument `i` of the call in another layout than dense f32.
  bool read(const ir::Node& call, size_t i, Layout layout) const;
};

/// The kernels of a target, by operator.
class KernelTable {
 public:
  explicit KernelTable(const Target& target);

  Candidates candidates(const ir::Node& call) const;
  /// How argument `i` of a call is packed for records of a foreign target, which are not linked
  /// here. Layouts depend on no processor, so those records ask for what the records of this
  /// architecture ask for. `read`: how the linked records of the target read the argument. nullptr:
  /// the target is not foreign, or nothing asks.
  const Packing* asked_elsewhere(const ir::Node& call, size_t i, const Packing& read) const;
  /// Whether every machine of the target has a kernel for a call.
  bool runs(const ir::Node& call) const;
  /// All that calls may take, in the order of preference.
  const std::vector<const Kernel*>& all() const { return all_; }

 private:
  Target target_;
  std::vector<const Kernel*> all_;
  std::unordered_map<const Operator*, std::vector<const Kernel*>> of_operator_;
};

/// Whether a node is an instruction. Views are values, branches and loops are jumps; every other
/// node is an instruction and must have a kernel.
inline bool is_instruction(const ir::Node& node) {
  return node.op->category != Category::view && !ir::is_control(node);
}

/// The candidates of every instruction, those in bodies too. Throws ExportError with all that lack
/// one, their places and the remedy.
std::map<const ir::Node*, Candidates> find_all_candidates(const ir::Graph& graph,
                                                          const KernelTable& kernels);

}  // namespace taper::target
