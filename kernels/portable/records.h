// Records of kernels that are templates over their element, for every dtype or every size of one.
// f16 and bf16 have no arithmetic of their own: the host computes them in f32.
#pragma once
#include "taper/kernels/portable/portable.h"

#define TAPER_BY_SIZE(op, prepare, run)                  \
  TAPER_KERNEL(op, b1, prepare<Bytes<1>>, run<Bytes<1>>) \
  TAPER_KERNEL(op, b2, prepare<Bytes<2>>, run<Bytes<2>>) \
  TAPER_KERNEL(op, b4, prepare<Bytes<4>>, run<Bytes<4>>) \
  TAPER_KERNEL(op, b8, prepare<Bytes<8>>, run<Bytes<8>>)

#define TAPER_BY_DTYPE(op, prepare, run)                \
  TAPER_KERNEL(op, f32, prepare<float>, run<float>)     \
  TAPER_KERNEL(op, f64, prepare<double>, run<double>)   \
  TAPER_KERNEL(op, i64, prepare<int64_t>, run<int64_t>) \
  TAPER_KERNEL(op, i32, prepare<int32_t>, run<int32_t>) \
  TAPER_KERNEL(op, i16, prepare<int16_t>, run<int16_t>) \
  TAPER_KERNEL(op, i8, prepare<int8_t>, run<int8_t>)    \
  TAPER_KERNEL(op, u8, prepare<uint8_t>, run<uint8_t>)  \
  TAPER_KERNEL(op, boolean, prepare<bool>, run<bool>)
