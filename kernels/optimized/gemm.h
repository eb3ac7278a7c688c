// The matrix product of mm, bmm, addmm, baddbmm and linear: of f32, and of f16 and bf16, which are
// widened when they are packed.
#pragma once
#include "taper/kernels/optimized/half_panel_tiles.h"
#include "taper/kernels/optimized/pair_tiles.h"
#include "taper/kernels/optimized/small_row_tiles.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::optimized {

/// c[i] = activation(alpha a[i] b[i] + beta addend[i]) for i in [0, batch), with
///
///   a       (m, k)  any strides
///   b       (k, n)  any strides, so that a transposed operand costs nothing extra
///   c       (m, n)  dense rows
///   addend          any strides; a bias has a row or column stride of 0
///
/// Extents may be 0; k = 0 gives a zero product. c overlaps no operand.
///
/// The sum over k is cut into blocks of `gemm_depth_block`. Each block is one chain of
/// multiply-adds, and the blocks are added in order. So an element depends only on its row of a,
/// its column of b and the CPU level: not on m, n, batch, strides, scratch or threads. Small floats
/// are multiplied and summed as f32, and rounded once, after the epilogue. All levels with fused
/// multiply-adds have the same order, and so the same bits. Only `pairs` differ: their own
/// instruction sums two products at a time.
struct Gemm {
  index_t batch = 1, m = 0, n = 0, k = 0;
  DType dtype = DType::f32;                      ///< that of a, c and addend
  DType b_dtype = DType::f32;                    ///< that of b: `dtype`, or halves beside f32
  const portable::SmallFloats* small = nullptr;  ///< how f16 and bf16 are converted
  const SmallRowTiles* small_rows = nullptr;     ///< if dtype is f16 or bf16
  const HalfPanelTiles* half_panels = nullptr;   ///< if b_layout is panels of halves
  const PairTiles* pairs = nullptr;  ///< for a b of bf16, beside which a is rounded to bf16;
                                     ///< nullptr: multiplied as f32
  const void* a = nullptr;
  const void* b = nullptr;
  /// Not dense: b is one matrix in panels of columns (panels.h), of f32 or of halves, and has no
  /// strides.
  Layout b_layout = Layout::dense;
  void* c = nullptr;
  index_t a_batch = 0, a_row = 0, a_column = 1;
  index_t b_batch = 0, b_row = 0, b_column = 1;
  index_t c_batch = 0, c_row = 0;
  const void* addend = nullptr;  ///< nullptr: none
  index_t addend_batch = 0, addend_row = 0, addend_column = 0;
  float alpha = 1, beta = 1;
};

inline constexpr index_t gemm_depth_block = 256;

/// How the work is cut, chosen once for each shape. A task is (row_block, column_block) elements of
/// c.
struct GemmPlan {
  index_t row_block, column_block;
  index_t slots;  ///< tasks that run at the same time, each with its own part of the scratch
  index_t bytes_per_slot;

  size_t scratch_bytes() const { return static_cast<size_t>(slots * bytes_per_slot); }
};

/// The plan for the extents, dtypes and layout of a product. `thread_count` is only a wish: a plan
/// runs with any `Threads`.
GemmPlan plan_gemm(const Microkernels& kernels, const Gemm& gemm, int thread_count);
/// The same for dense f32.
GemmPlan plan_gemm(const Microkernels& kernels, index_t batch, index_t m, index_t n, index_t k,
                   int thread_count);

/// `scratch`: plan.scratch_bytes() bytes, 64-byte aligned.
void run_gemm(const Microkernels& kernels, const GemmPlan& plan, const Gemm& gemm, void* scratch,
              const Threads* threads);
/// The same for f32 and a b in panels of f32. It links no other loops.
void run_panel_gemm(const Microkernels& kernels, const GemmPlan& plan, const Gemm& gemm,
                    void* scratch, const Threads* threads);

}  // namespace taper::optimized
