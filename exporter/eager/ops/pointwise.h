// Elementwise functions: the files below, each on one topic. These rules hold for all of them:
//
// Shapes: tensors broadcast, as in PyTorch. Sizes are matched from the last dimension on, and a
// size of 1 repeats. The result has the broadcast sizes.
//
// Dtypes: tensors are cast to a common dtype, as in PyTorch. A number never widens a tensor of its
// own kind (i32 + 1 is i32, f32 * 2.0 is f32). A 0-dim tensor widens only a tensor of a lower kind.
// Functions whose results are not whole numbers turn integers and bool into f32. f16 and bf16 are
// computed in f32. NaN gives NaN unless a line says otherwise.
//
// Names that end in `_` write the result into `self` and return it.
//
// Errors are thrown as EagerError with the line of the call: sizes that do not broadcast; a dtype
// that the function does not take (arithmetic of bool, bits of reals); in place, sizes or a kind of
// dtype that `self` cannot hold.
#pragma once
#include "taper/exporter/eager/ops/activation.h"
#include "taper/exporter/eager/ops/arithmetic.h"
#include "taper/exporter/eager/ops/bitwise.h"
#include "taper/exporter/eager/ops/comparison.h"
#include "taper/exporter/eager/ops/elementary.h"
#include "taper/exporter/eager/ops/rounding.h"
#include "taper/exporter/eager/ops/special.h"
