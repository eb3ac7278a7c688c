// Elementwise functions: the files below, each on one topic. What holds for all of them:
//
// Shapes: tensors are broadcast over each other, sizes from the last dimension on, where a size of
// 1 repeats; the result has the sizes of the broadcast.
//
// Dtypes: tensors are brought to a common dtype, as in PyTorch. A number never widens a tensor of
// its own kind (i32 + 1 is i32, f32 * 2.0 is f32), and a tensor without dimensions only one of a
// lower kind. Where the result is not whole, integers and bool become f32. f16 and bf16 are
// computed in f32. NaN goes in and comes out unless a line says otherwise.
//
// Names ending in `_` write the result into `self`, and give it back.
//
// Errors, thrown as EagerError with the line of the call: sizes that do not broadcast, a dtype that
// the function does not have (arithmetic of bool, bits of reals), and in place sizes or a kind of
// dtype that `self` cannot hold.
#pragma once
#include "taper/exporter/eager/ops/activation.h"
#include "taper/exporter/eager/ops/arithmetic.h"
#include "taper/exporter/eager/ops/bitwise.h"
#include "taper/exporter/eager/ops/comparison.h"
#include "taper/exporter/eager/ops/elementary.h"
#include "taper/exporter/eager/ops/rounding.h"
#include "taper/exporter/eager/ops/special.h"
