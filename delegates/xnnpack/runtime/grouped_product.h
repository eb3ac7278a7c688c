// The products of a mixture of experts.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/kernels/kernel.h"

namespace taper::delegates::xnnpack {

/// Multiplies ranges of rows, each with a matrix of its own. How many rows a range has is known
/// only when it runs, and sizes in the library's graphs follow from those of inputs. So each matrix
/// is an operator of its own, which gets its number of rows in each run.
class GroupedProduct {
 public:
  /// `filters` (groups, outputs, inputs) with their elements. `packed` has what the library packs
  /// of them, and outlives the object. nullptr: there is no memory, or the library refuses.
  static GroupedProduct* create(Memory& memory, const Shape& filters, const void* elements,
                                xnn_weights_cache_t packed, pthreadpool_t threads);
  static void destroy(Memory& memory, GroupedProduct* product);

  /// x (rows, inputs), y (rows, outputs). Group g is the rows from ends[g - 1] up to ends[g]. Rows
  /// behind the last group become 0. Allocates nothing.
  /// Errors: invalid_argument if the ends, i32 or i64, descend or lie outside the rows.
  Error run(const TensorRef& x, const TensorRef& ends, const TensorRef& y, Context& context);

 private:
  GroupedProduct(index_t groups, pthreadpool_t threads) : groups_(groups), threads_(threads) {}
  // behind the object
  xnn_operator_t* operators() { return reinterpret_cast<xnn_operator_t*>(this + 1); }
  bool multiply(index_t group, index_t rows, const float* x, float* y);

  index_t groups_;
  pthreadpool_t threads_;
};

}  // namespace taper::delegates::xnnpack
