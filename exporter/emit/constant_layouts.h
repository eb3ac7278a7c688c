// Decides which constants a program stores in the layouts that its target's kernels ask for.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "taper/exporter/emit/program_tables.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

/// A constant that is stored in a layout that kernels ask for.
struct PackedConstant {
  Layout layout;
  std::vector<int64_t> sizes;                  ///< the sizes that kernels see
  size_t size_bytes;                           ///< what it takes
  std::function<void(std::byte*)> write_into;  ///< reads the dense elements, and packs them
};

/// Looks at everything that reads a program's constants. A constant is packed if only kernels read
/// it, and if on every machine of the target they want the same layout through the same view. This
/// is the rule of `find_packed` (runtime/packing/packing.h), which packs the remaining ones at
/// load.
class ConstantLayouts {
 public:
  ConstantLayouts(const target::KernelTable& kernels, ProgramTables& tables)
      : kernels_(kernels), tables_(tables) {}

  /// Adds a method's graph with its bodies, in the form in which it is written.
  void add(const ir::Graph& graph);

  /// Whether constant number `i` is worth packing.
  bool asks_for(uint32_t i) const;
  /// How constant number `i` is packed, if it is worth it. The result must not outlive this.
  std::optional<PackedConstant> packed(uint32_t i) const;

 private:
  struct Use {
    const Packing* packing;  // nullptr: something wants it dense
    Shape shape;             // the shape in which everything that reads it sees it
  };
  void add(uint32_t constant, const ir::Value& seen, const Packing* packing);

  const target::KernelTable& kernels_;
  ProgramTables& tables_;
  std::map<uint32_t, Use> uses_;
};

}  // namespace taper::emit
