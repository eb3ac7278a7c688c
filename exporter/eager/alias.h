// The one alias algorithm: a view is a base and a chain of steps from it. Eager autograd and the
// tracer use it to give views of a written base their new values, and to write through views: base'
// = scatter_back(chain, base, value).
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

/// Makes `view`, just computed by `info(arguments)` from argument 0, part of its source's chain.
void link_view(const Tensor& view, const OperatorInfo& info, const Boxed* arguments);

/// The chain applied to `base` (of the sizes of the original base).
Tensor replay(const ViewStep* chain, const Tensor& base, Location here);

/// `base` with the elements that the chain sees replaced by `value`.
Tensor scatter_back(const ViewStep* chain, const Tensor& base, const Tensor& value, Location here);

/// Gives `self` the values of `value` (same sizes, dtype of the same or a lower category), in
/// memory, on the tape, and in the trace; through its base if it is a view. `writer`: the
/// operator's schema or name, static storage.
void write(const Tensor& self, const Tensor& value, const char* writer, Location here);

/// "add_" of the schema "add.Tensor(…)".
std::string in_place_name(const char* writer);

/// Copies elements between tensors of equal sizes and dtype, any strides. No tape, no version.
void copy_elements(const Tensor& destination, const Tensor& source);

}  // namespace taper::eager
