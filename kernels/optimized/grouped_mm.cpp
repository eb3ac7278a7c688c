// Grouped matrix products with the matrix product of gemm.h.
#include "taper/kernels/portable/grouped_mm.h"

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper::optimized {
namespace {

using Matrix = AnyView<const float>;
using portable::GroupEnds;
using portable::GroupProduct;

// Scratch for a group that has all rows. The plan of a smaller group needs no more.
template <CpuLevel level>
Error prepare(Context& context, GemmPlan& plan, Matrix self, Matrix mat2, GroupEnds, Maybe<Matrix>,
              Maybe<DType>, View<float>) {
  plan = plan_gemm(microkernels<level>(), 1, self.size(-2), mat2.size(-1), self.size(-1),
                   thread_count(context.threads));
  context.need_scratch(plan.scratch_bytes());
  return Error::ok;
}

template <CpuLevel level>
Error run(Context& context, const GemmPlan& plan, Matrix self, Matrix mat2, GroupEnds offs,
          Maybe<Matrix>, Maybe<DType>, View<float> out) {
  const Microkernels& kernels = microkernels<level>();
  return portable::for_each_group(context, self, mat2, offs, out, [&](const GroupProduct& p) {
    Gemm g;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.a = self.data() + p.self, g.a_row = self.stride(-2), g.a_column = self.stride(-1);
    g.b = mat2.data() + p.mat2, g.b_row = mat2.stride(-2), g.b_column = mat2.stride(-1);
    g.c = out.data() + p.out, g.c_row = out.size(-1);
    // the number of rows of a group is known only from the data
    const GemmPlan part = plan_gemm(kernels, 1, p.m, p.n, p.k, static_cast<int>(plan.slots));
    run_gemm(kernels, part, g, context.scratch, context.threads);
  });
}

}  // namespace

TAPER_KERNEL_LEVELS(_grouped_mm, prepare, run)

}  // namespace taper::optimized
