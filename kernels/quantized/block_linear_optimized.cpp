// block_linear with the matrix product of kernels/optimized.
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/quantized/block_linear.h"
#include "taper/kernels/quantized/packings.h"
#include "taper/kernels/shapes/blocks.h"

namespace taper::quantized {
namespace {

using optimized::CpuLevel;
using optimized::microkernels;

constexpr index_t strip = 4 * panel_width;  // rows of weights that a task de-quantizes

struct Plan {
  optimized::GemmPlan gemm;
  index_t decoded_bytes, bytes_of_slot;
};

// Columns [first, first + count) of the result. `rows` are their weights.
optimized::Gemm product(const BlockLinear& g, const float* input, const float* rows, index_t count,
                        const Maybe<View<const float>>& bias, float* out, index_t first) {
  optimized::Gemm p;
  p.m = g.rows, p.n = count, p.k = g.depth;
  p.a = input, p.a_row = g.depth;
  p.b = rows, p.b_row = 1, p.b_column = g.depth;
  p.c = out + first, p.c_row = g.columns;
  if (bias) {
    p.addend_column = bias->numel() == 1 ? 0 : 1;
    p.addend = bias->data() + first * p.addend_column;
  }
  return p;
}

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, View<const float> input, View<const float> weight,
              Maybe<View<const float>>, View<float>) {
  const BlockLinear g(input, weight);
  if (g.columns == 0) return Error::ok;  // without elements, the depth may be anything
  plan.gemm = optimized::plan_gemm(microkernels<level>(), 1, g.rows, strip, g.depth, 1);
  plan.decoded_bytes =
      optimized::round_up(strip * g.depth * index_t{sizeof(float)}, optimized::scratch_alignment);
  plan.bytes_of_slot =
      optimized::round_up(plan.decoded_bytes + static_cast<index_t>(plan.gemm.scratch_bytes()),
                          optimized::scratch_alignment);
  context.need_scratch(
      static_cast<size_t>(plan.bytes_of_slot * optimized::thread_count(context.threads)));
  return Error::ok;
}

template <CpuLevel level>
Error run(Context& context, const Plan& plan, View<const float> input, View<const float> weight,
          Maybe<View<const float>> bias, View<float> out) {
  const BlockLinear g(input, weight);
  const bool is_dense = weight.layout() == Layout::dense;
  parallel_for_threads(
      context.threads, optimized::ceil_div(g.columns, strip), [&](index_t s, int slot) {
        const index_t first = s * strip, count = optimized::smaller(strip, g.columns - first);
        std::byte* memory = static_cast<std::byte*>(context.scratch) + slot * plan.bytes_of_slot;
        const float* rows = weight.data() + first * g.depth;
        if (!is_dense) {
          auto* decoded = reinterpret_cast<float*>(memory);
          for (index_t i = 0; i < count; ++i)
            blocks_of(weight).row(first + i, decoded + i * g.depth);
          rows = decoded;
        }
        optimized::run_gemm(microkernels<level>(), plan.gemm,
                            product(g, input.data(), rows, count, bias, out.data(), first),
                            memory + plan.decoded_bytes, nullptr);
      });
  return Error::ok;
}

}  // namespace

#define TAPER_BLOCK_LINEAR(name, level)                                           \
  TAPER_RECORD(taper_block_linear, name, optimized::features_of(CpuLevel::level), \
               (block_packings<1, false>), prepare<CpuLevel::level>, run<CpuLevel::level>)
TAPER_BLOCK_LINEAR(taper_block_linear_f32_wide, portable)
#if TAPER_X86_LEVELS
TAPER_BLOCK_LINEAR(taper_block_linear_f32_avx2, avx2)
TAPER_BLOCK_LINEAR(taper_block_linear_f32_avx512, avx512)
#endif

}  // namespace taper::quantized
