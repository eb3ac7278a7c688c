// mm, bmm, addmm, baddbmm and linear over the matrix product of gemm.h.
#include "taper/kernels/shapes/matmul.h"

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {
namespace {

using Matrix = AnyView<const float>;
using Out = View<float>;

// Operands may be matrices or batches of them: the last two dimensions, and the one before if there
// is one.
Gemm product(Matrix a, Matrix b, Out out) {
  Gemm g;
  g.m = a.size(-2), g.k = a.size(-1), g.n = b.size(-1);
  g.a = a.data(), g.a_row = a.stride(-2), g.a_column = a.stride(-1);
  g.b = b.data(), g.b_row = b.stride(-2), g.b_column = b.stride(-1);
  g.c = out.data(), g.c_row = g.n;
  if (a.rank() == 3)
    g.batch = a.size(0), g.a_batch = a.stride(0), g.b_batch = b.stride(0), g.c_batch = g.m * g.n;
  return g;
}

// beta self + alpha product, where self broadcasts to the result. As in PyTorch, beta = 0 ignores
// self, even its NaN.
Gemm product_plus(Matrix self, Matrix a, Matrix b, Scalar beta, Scalar alpha, Out out) {
  Gemm g = product(a, b, out);
  g.epilogue.alpha = alpha.to<float>(), g.epilogue.beta = beta.to<float>();
  if (g.epilogue.beta == 0) return g;
  const auto stride = [&](int from_right) {
    const int i = self.rank() - from_right;
    return i < 0 || self.size(i) == 1 ? 0 : self.stride(i);
  };
  g.epilogue.addend = self.data();
  g.epilogue.addend_column = stride(1), g.epilogue.addend_row = stride(2),
  g.addend_batch = stride(3);
  return g;
}

template <CpuLevel level>
Error prepare(Context& context, GemmPlan& plan, const Gemm& g) {
  plan = plan_gemm(microkernels<level>(), g.batch, g.m, g.n, g.k, thread_count(context.threads));
  context.need_scratch(plan.scratch_bytes());
  return Error::ok;
}
template <CpuLevel level>
Error run(Context& context, const GemmPlan& plan, const Gemm& g) {
  run_gemm(microkernels<level>(), plan, g, context.scratch, context.threads);
  return Error::ok;
}

template <CpuLevel level>
Error prepare_product(Context& context, GemmPlan& plan, Matrix self, Matrix mat2, Out out) {
  return prepare<level>(context, plan, product(self, mat2, out));
}
template <CpuLevel level>
Error run_product(Context& context, const GemmPlan& plan, Matrix self, Matrix mat2, Out out) {
  return run<level>(context, plan, product(self, mat2, out));
}

template <CpuLevel level>
Error prepare_plus(Context& context, GemmPlan& plan, Matrix self, Matrix mat1, Matrix mat2,
                   Scalar beta, Scalar alpha, Out out) {
  return prepare<level>(context, plan, product_plus(self, mat1, mat2, beta, alpha, out));
}
template <CpuLevel level>
Error run_plus(Context& context, const GemmPlan& plan, Matrix self, Matrix mat1, Matrix mat2,
               Scalar beta, Scalar alpha, Out out) {
  return run<level>(context, plan, product_plus(self, mat1, mat2, beta, alpha, out));
}

// ---- linear: input (*, k) weight (n, k) or (k), bias (n) -> (*, n) ----

using Input = View<const float>;

Gemm linear(Input input, Matrix weight, Maybe<Matrix> bias, Out out) {
  Gemm g;
  g.k = input.size(-1), g.n = weight.rank() == 2 ? weight.size(0) : 1, g.m = 1;
  for (int i = 0; i + 1 < input.rank(); ++i) g.m *= input.size(i);
  g.a = input.data(), g.a_row = g.k;
  g.b = weight.data(), g.b_row = weight.stride(-1),
  g.b_column = weight.rank() == 2 ? weight.stride(0) : 1;
  g.c = out.data(), g.c_row = g.n;
  if (bias)
    g.epilogue.addend = bias->data(),
    g.epilogue.addend_column = bias->rank() == 1 && bias->size(0) != 1 ? bias->stride(0) : 0;
  return g;
}

template <CpuLevel level>
Error prepare_linear(Context& context, GemmPlan& plan, Input input, Matrix weight,
                     Maybe<Matrix> bias, Out out) {
  return prepare<level>(context, plan, linear(input, weight, bias, out));
}
template <CpuLevel level>
Error run_linear(Context& context, const GemmPlan& plan, Input input, Matrix weight,
                 Maybe<Matrix> bias, Out out) {
  return run<level>(context, plan, linear(input, weight, bias, out));
}

}  // namespace

TAPER_KERNEL_LEVELS(mm, prepare_product, run_product)
TAPER_KERNEL_LEVELS(bmm, prepare_product, run_product)
TAPER_KERNEL_LEVELS(addmm, prepare_plus, run_plus)
TAPER_KERNEL_LEVELS(baddbmm, prepare_plus, run_plus)
TAPER_KERNEL_LEVELS(linear, prepare_linear, run_linear)

}  // namespace taper::optimized
