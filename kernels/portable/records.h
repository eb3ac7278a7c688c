// Records of kernels that are templates over their element type: one for every dtype, or for every
// element size. f16 and bf16 have no arithmetic of their own. If a kernel has no record for them,
// the host casts them to f32.
#pragma once
#include "taper/kernels/kernel.h"

/// Writes record(variant, type, …) for every numeric dtype, and for every element size.
#define TAPER_NUMBERS(record, ...)                                          \
  record(f32, float, __VA_ARGS__) record(f64, double, __VA_ARGS__)          \
      record(i64, int64_t, __VA_ARGS__) record(i32, int32_t, __VA_ARGS__)   \
          record(i16, int16_t, __VA_ARGS__) record(i8, int8_t, __VA_ARGS__) \
              record(u8, uint8_t, __VA_ARGS__)
#define TAPER_SIZES(record, ...)                                      \
  record(b1, Bytes<1>, __VA_ARGS__) record(b2, Bytes<2>, __VA_ARGS__) \
      record(b4, Bytes<4>, __VA_ARGS__) record(b8, Bytes<8>, __VA_ARGS__)

#define TAPER_RUN_OF(variant, T, op, run) TAPER_KERNEL(op, variant, run<T>)
#define TAPER_PREPARE_AND_RUN_OF(variant, T, op, prepare, run) \
  TAPER_KERNEL(op, variant, prepare<T>, run<T>)

/// The records of a kernel that computes numbers; of one that also takes bool; of one that moves
/// elements, with and without `prepare`.
#define TAPER_BY_NUMBER(op, run) TAPER_NUMBERS(TAPER_RUN_OF, op, run)
#define TAPER_BY_DTYPE(op, prepare, run)                    \
  TAPER_NUMBERS(TAPER_PREPARE_AND_RUN_OF, op, prepare, run) \
  TAPER_PREPARE_AND_RUN_OF(bool, bool, op, prepare, run)
#define TAPER_BY_SIZE(op, prepare, run) TAPER_SIZES(TAPER_PREPARE_AND_RUN_OF, op, prepare, run)
#define TAPER_BYTES(op, run) TAPER_SIZES(TAPER_RUN_OF, op, run)
