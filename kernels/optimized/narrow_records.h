// Records that run some of the calls of another record, with the same bits, and link less code.
// Only tables that `taper export --kernels` writes name them: for a program that needs no more.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::optimized {

struct NarrowRecord {
  const Kernel* any;
  const Kernel* narrow;
  /// Whether `narrow` runs a call of `any`. Of the arguments, the layouts of constants, the sizes
  /// of tensors (unknown_size if they may change) and the literals count. A call that does not fit
  /// fails in `prepare`.
  bool (*fits)(const Slot* arguments);

  static constexpr index_t unknown_size = -1;
};

// The smallest of the records that run calls of the same record comes first.

/// Products whose weights are all in panels of f32: of one row, and of any rows.
extern const Span<const NarrowRecord> narrow_products;
/// Convolutions behind which the arithmetic of residual blocks stands, and no elementary function:
/// with small depthwise windows, and with any.
extern const Span<const NarrowRecord> narrow_convolutions;

/// Defines a narrow record. Its name is that of the record whose calls it runs, and what it runs:
/// _panels, _panels_row, _plain or _plain_threes. It is in no list of records.
#define TAPER_NARROW_RECORD(op, name, level, packings, prepare, run) \
  extern const ::taper::Kernel name;                                 \
  constexpr ::taper::Kernel name =                                   \
      ::taper::make_kernel<::taper::ops::op, prepare, run>(#name, features_of(level), packings);

}  // namespace taper::optimized
