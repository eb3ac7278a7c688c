// Which constants a program stores in the layouts that its target's kernels ask for.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "taper/exporter/emit/program_tables.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

/// A constant of a file that is not dense.
struct PackedConstant {
  Layout layout;
  std::vector<int64_t> sizes;  ///< as the kernels see them
  std::vector<std::byte> bytes;
};

/// Looks at all that reads the constants of a program. One is packed if all that reads it is
/// kernels that want the same layout of it, through the same view, on every machine of the target:
/// the rule of `find_packed` (runtime/packing/packing.h), which packs the others at load.
class ConstantLayouts {
 public:
  ConstantLayouts(const target::KernelTable& kernels, ProgramTables& tables)
      : kernels_(kernels), tables_(tables) {}

  /// A method's graph, with its bodies, as it was written.
  void add(const ir::Graph& graph);

  /// Entry `i` of the constants; nullopt: it stays dense.
  std::optional<PackedConstant> packed(uint32_t i) const;

 private:
  struct Use {
    const Packing* packing;  // nullptr: something wants it dense
    Shape shape;             // as all that read it see it
  };
  void add(uint32_t constant, const ir::Value& seen, const Packing* packing);

  const target::KernelTable& kernels_;
  ProgramTables& tables_;
  std::map<uint32_t, Use> uses_;
};

}  // namespace taper::emit
