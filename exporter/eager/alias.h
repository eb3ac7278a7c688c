// How aliases work, for eager autograd and the tracer: a view is its base and a chain of steps from
// there. After a write, `replay` computes the view again. A write through a view changes the base:
// base' = scatter_back(chain, base, value).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/eager/small_vector.h"

namespace taper::eager {

/// One step: `op` of category `view` applied to the step before, or to the base if there is none.
/// Owns its arguments.
struct ViewStep {
  ViewStep() = default;
  ~ViewStep();  ///< a loop, however long the chain
  ViewStep(const ViewStep&) = delete;
  ViewStep& operator=(const ViewStep&) = delete;

  mutable std::shared_ptr<const ViewStep> source;
  const OperatorInfo* info;
  SmallVector<Boxed, 5> arguments;  ///< argument 0 is the source and not filled
  std::vector<Dims> dims;           ///< what the lists in `arguments` point to
  std::vector<Ints> integers;
};

/// Makes `view`, which `info(arguments)` just computed from argument 0, part of the chain of
/// argument 0.
void link_view(const Tensor& view, const OperatorInfo& info, const Boxed* arguments);

/// Applies the chain to `base`, which has the sizes of the original base.
Tensor replay(const ViewStep* chain, const Tensor& base, Location here);

/// A copy of `base`, where `value` replaces the elements that the chain selects.
Tensor scatter_back(const ViewStep* chain, const Tensor& base, const Tensor& value, Location here);

/// Writes the values of `value` into `self`: in memory, on the tape and in the trace. If self is a
/// view, the write goes through its base. `value` has the same sizes, and the same dtype or one of
/// a lower category. `writer` is the operator's schema or name, in static storage.
void write(const Tensor& self, const Tensor& value, const char* writer, Location here);

/// The name of the in-place twin: "add_" for the schema "add.Tensor(…)".
std::string in_place_name(const char* writer);

/// Copies elements between tensors of equal sizes and dtype, with any strides. Neither the tape nor
/// the version counter sees it.
void copy_elements(const Tensor& destination, const Tensor& source);

}  // namespace taper::eager
