// mm, bmm, addmm, baddbmm and linear of f32, f16 and bf16, with the matrix product of gemm.h.
#include "taper/kernels/shapes/matmul.h"

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/narrow_records.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/portable/widened.h"

namespace taper::optimized {
namespace {

template <class E>
using Matrix = AnyView<const E>;

// Operands may be matrices or batches of matrices. The last two dimensions are the matrix; the
// dimension before them, if any, is the batch.
template <class E>
Gemm product(Matrix<E> a, Matrix<E> b, View<E> out) {
  Gemm g;
  g.dtype = g.b_dtype = dtypes_of<E>::dtype;
  g.m = a.size(-2), g.k = a.size(-1), g.n = b.size(-1);
  g.a = a.data(), g.a_row = a.stride(-2), g.a_column = a.stride(-1);
  g.b = b.data(), g.b_row = b.stride(-2), g.b_column = b.stride(-1);
  g.b_layout = b.layout();
  g.c = out.data(), g.c_row = g.n;
  if (a.rank() == 3)
    g.batch = a.size(0), g.a_batch = a.stride(0), g.b_batch = b.stride(0), g.c_batch = g.m * g.n;
  return g;
}

// beta self + alpha product, where self broadcasts to the result. As in PyTorch, beta = 0 ignores
// self, even if it holds NaN.
template <class E>
Gemm product_plus(Matrix<E> self, Matrix<E> a, Matrix<E> b, Scalar beta, Scalar alpha,
                  View<E> out) {
  Gemm g = product<E>(a, b, out);
  g.alpha = alpha.to<float>(), g.beta = beta.to<float>();
  if (g.beta == 0) return g;
  const auto stride = [&](int from_right) {
    const int i = self.rank() - from_right;
    return i < 0 || self.size(i) == 1 ? 0 : self.stride(i);
  };
  g.addend = self.data();
  g.addend_column = stride(1), g.addend_row = stride(2), g.addend_batch = stride(3);
  return g;
}

// input (*, k) weight (n, k) or (k), bias (n) -> (*, n)
template <class E>
Gemm linear(View<const E> input, Matrix<E> weight, Maybe<Matrix<E>> bias, View<E> out) {
  Gemm g;
  g.dtype = g.b_dtype = dtypes_of<E>::dtype;
  g.k = input.size(-1), g.n = weight.rank() == 2 ? weight.size(0) : 1, g.m = 1;
  for (int i = 0; i + 1 < input.rank(); ++i) g.m *= input.size(i);
  g.a = input.data(), g.a_row = g.k;
  g.b = weight.data(), g.b_row = weight.stride(-1),
  g.b_column = weight.rank() == 2 ? weight.stride(0) : 1;
  if (is_in_halves(weight.layout()))
    g.b_dtype = is_in_f16(weight.layout()) ? DType::f16 : DType::bf16;
  // dense halves have strides like any other operand
  if (!has_strides(weight.layout())) g.b_layout = weight.layout();
  g.c = out.data(), g.c_row = g.n;
  if (bias)
    g.addend = bias->data(),
    g.addend_column = bias->rank() == 1 && bias->size(0) != 1 ? bias->stride(0) : 0;
  return g;
}

// Which calls a record runs.
enum class Calls : uint8_t {
  all,
  panels,      // b is in panels of f32
  panels_row,  // and a is one row
};

template <CpuLevel level, Calls calls>
constexpr const Microkernels& loops() {
  if constexpr (calls == Calls::panels_row)
    return row_microkernels<level>();
  else if constexpr (calls == Calls::panels)
    return panel_microkernels<level>();
  else
    return microkernels<level>();
}
template <CpuLevel level, Calls calls>
Error prepare(Context& context, GemmPlan& plan, const Gemm& g) {
  if (calls != Calls::all && (has_strides(g.b_layout) || is_in_halves(g.b_layout)))
    return context.fail(Error::not_supported,
                        TAPER_TEXT("this table of kernels reads only packed weights; write it again"
                                   " with taper export --kernels, from this program"));
  if (calls == Calls::panels_row && g.m > 1)
    return context.fail(Error::not_supported,
                        TAPER_TEXT("this table of kernels multiplies single rows, not {}; write it "
                                   "again with taper export --kernels, from this program"),
                        g.m);
  plan = plan_gemm(loops<level, calls>(), g, thread_count(context.threads));
  context.need_scratch(plan.scratch_bytes());
  return Error::ok;
}
template <CpuLevel level, class E, Calls calls>
Error run(Context& context, const GemmPlan& plan, Gemm g) {
  if constexpr (!std::is_same_v<E, float>) {
    g.small = &small_floats<level>, g.small_rows = &small_row_tiles<level>();
    if (g.dtype == DType::bf16) g.pairs = pair_tiles<level>();
  }
  constexpr auto* run = calls == Calls::all ? run_gemm : run_panel_gemm;
  run(loops<level, calls>(), plan, g, context.scratch, context.threads);
  return Error::ok;
}

// The kernels of one level and one element type.
template <CpuLevel level, class E, Calls calls = Calls::all>
struct Products {
  static Error prepare_product(Context& context, GemmPlan& plan, Matrix<E> self, Matrix<E> mat2,
                               View<E> out) {
    return prepare<level, calls>(context, plan, product<E>(self, mat2, out));
  }
  static Error run_product(Context& context, const GemmPlan& plan, Matrix<E> self, Matrix<E> mat2,
                           View<E> out) {
    return run<level, E, calls>(context, plan, product<E>(self, mat2, out));
  }
  static Error prepare_plus(Context& context, GemmPlan& plan, Matrix<E> self, Matrix<E> mat1,
                            Matrix<E> mat2, Scalar beta, Scalar alpha, View<E> out) {
    return prepare<level, calls>(context, plan,
                                 product_plus<E>(self, mat1, mat2, beta, alpha, out));
  }
  static Error run_plus(Context& context, const GemmPlan& plan, Matrix<E> self, Matrix<E> mat1,
                        Matrix<E> mat2, Scalar beta, Scalar alpha, View<E> out) {
    return run<level, E, calls>(context, plan, product_plus<E>(self, mat1, mat2, beta, alpha, out));
  }
  static Error prepare_linear(Context& context, GemmPlan& plan, View<const E> input,
                              Matrix<E> weight, Maybe<Matrix<E>> bias, View<E> out) {
    return prepare<level, calls>(context, plan, linear<E>(input, weight, bias, out));
  }
  static Error run_linear(Context& context, const GemmPlan& plan, View<const E> input,
                          Matrix<E> weight, Maybe<Matrix<E>> bias, View<E> out) {
    Gemm g = linear<E>(input, weight, bias, out);
    if constexpr (std::is_same_v<E, float> && calls == Calls::all) {
      g.small = &small_floats<level>, g.half_panels = &half_panel_tiles<level>();
      if (g.b_dtype == DType::bf16) g.pairs = pair_tiles<level>();
    }
    return run<level, E, calls>(context, plan, g);
  }
};

// f32 second operands that are constants are packed once. Those that a file holds in halves become
// f32 panels, but for those of `linear`: few rows read halves in half the time.
template <CpuLevel level>
constexpr Packing packs_weight[] = {
    packs<1>(Layout::dense, Layout::panels_of_first, bytes_of_panels_of_first, pack_first<level>),
    packs<1>(Layout::dense_f16, Layout::f16_panels_of_first, bytes_of_f16_panels, pack_f16_panels),
    packs<1>(Layout::dense_bf16, Layout::bf16_panels_of_first, bytes_of_bf16_panels,
             pack_bf16_panels)};

constexpr LayoutSet panels_of_halves =
    one(Layout::f16_panels_of_first) | one(Layout::bf16_panels_of_first);
// Pairs are multiplied where bf16 lies in any way, so that packing changes no bit.
template <CpuLevel level>
constexpr LayoutSet own_layouts = panels_of_halves |
                                  (pair_tiles<level>() != nullptr ? one(Layout::dense_bf16) : 0);

template <const Operator& op, CpuLevel level, class E>
constexpr Span<const Packing> packings_of = {};
template <CpuLevel level>
constexpr portable::WidenedPackings<1> packings_of<ops::mm, level, float> = {
    portable::to_f32_layout<1, Layout::panels_of_last, -1, bytes_of_panels_of_last,
                            pack_last<level>>};
template <CpuLevel level>
constexpr portable::WidenedPackings<2> packings_of<ops::addmm, level, float> = {
    portable::to_f32_layout<2, Layout::panels_of_last, -1, bytes_of_panels_of_last,
                            pack_last<level>>};
template <CpuLevel level>
constexpr portable::WidenedPackings<1, own_layouts<level>> packings_of<ops::linear, level, float> =
    {packs_weight<level>};

}  // namespace

#define TAPER_PRODUCT(op, name, level, E, prepare, run)                                            \
  TAPER_RECORD(op, name, features_of(CpuLevel::level), (packings_of<ops::op, CpuLevel::level, E>), \
               Products<CpuLevel::level, E>::prepare, Products<CpuLevel::level, E>::run)
#if TAPER_X86_LEVELS
#define TAPER_PRODUCT_LEVELS(op, variant, ...)                \
  TAPER_PRODUCT(op, op##_##variant, portable, __VA_ARGS__)    \
  TAPER_PRODUCT(op, op##_##variant##_avx2, avx2, __VA_ARGS__) \
  TAPER_PRODUCT(op, op##_##variant##_avx512, avx512, __VA_ARGS__)
#else
#define TAPER_PRODUCT_LEVELS(op, variant, ...) \
  TAPER_PRODUCT(op, op##_##variant, portable, __VA_ARGS__)
#endif
#if TAPER_X86_LEVELS
#define TAPER_PRODUCT_PAIRS(op, ...) \
  TAPER_PRODUCT(op, op##_bf16_avx512_bf16, avx512_bf16, BFloat16, __VA_ARGS__)
#else
#define TAPER_PRODUCT_PAIRS(op, ...)
#endif
#define TAPER_PRODUCT_DTYPES(op, prepare, run)           \
  TAPER_PRODUCT_LEVELS(op, f32, float, prepare, run)     \
  TAPER_PRODUCT_LEVELS(op, f16, Half, prepare, run)      \
  TAPER_PRODUCT_LEVELS(op, bf16, BFloat16, prepare, run) \
  TAPER_PRODUCT_PAIRS(op, prepare, run)
TAPER_PRODUCT_DTYPES(mm, prepare_product, run_product)
TAPER_PRODUCT_DTYPES(bmm, prepare_product, run_product)
TAPER_PRODUCT_DTYPES(addmm, prepare_plus, run_plus)
TAPER_PRODUCT_DTYPES(baddbmm, prepare_plus, run_plus)
TAPER_PRODUCT_DTYPES(linear, prepare_linear, run_linear)
#if TAPER_X86_LEVELS
TAPER_PRODUCT(linear, linear_f32_avx512_bf16, avx512_bf16, float, prepare_linear, run_linear)
#endif

// ---- records for weights in panels of f32 alone ----

namespace {
template <Layout panels>
constexpr Packing reads_panels[] = {portable::reads_from<1>(Layout::dense, panels)};
template <Layout panels>
constexpr Packing reads_panels_of_mat2[] = {portable::reads_from<2>(Layout::dense, panels)};
}  // namespace

#define TAPER_PANEL_RECORD(op, name, level, calls, packings, prepare, run)       \
  TAPER_NARROW_RECORD(op, name, CpuLevel::level, packings,                       \
                      (Products<CpuLevel::level, float, Calls::calls>::prepare), \
                      (Products<CpuLevel::level, float, Calls::calls>::run))
#if TAPER_X86_LEVELS
#define TAPER_PANEL_RECORDS(op, calls, ...)                               \
  TAPER_PANEL_RECORD(op, op##_f32_##calls, portable, calls, __VA_ARGS__)  \
  TAPER_PANEL_RECORD(op, op##_f32_avx2_##calls, avx2, calls, __VA_ARGS__) \
  TAPER_PANEL_RECORD(op, op##_f32_avx512_##calls, avx512, calls, __VA_ARGS__)
#else
#define TAPER_PANEL_RECORDS(op, calls, ...) \
  TAPER_PANEL_RECORD(op, op##_f32_##calls, portable, calls, __VA_ARGS__)
#endif
TAPER_PANEL_RECORDS(mm, panels, reads_panels<Layout::panels_of_last>, prepare_product, run_product)
TAPER_PANEL_RECORDS(addmm, panels, reads_panels_of_mat2<Layout::panels_of_last>, prepare_plus,
                    run_plus)
TAPER_PANEL_RECORDS(linear, panels, reads_panels<Layout::panels_of_first>, prepare_linear,
                    run_linear)
TAPER_PANEL_RECORDS(linear, panels_row, reads_panels<Layout::panels_of_first>, prepare_linear,
                    run_linear)

namespace {
template <int argument, Layout panels>
bool is_in_panels(const Slot* arguments) {
  return arguments[argument].tensor->layout == panels;
}
constexpr auto mm_fits = is_in_panels<1, Layout::panels_of_last>,
               addmm_fits = is_in_panels<2, Layout::panels_of_last>,
               linear_fits = is_in_panels<1, Layout::panels_of_first>;
bool row_fits(const Slot* arguments) {
  const Shape& input = *arguments[0].tensor->shape;
  for (int i = 0; i + 1 < input.rank; ++i)
    if (input.sizes[i] != 1) return false;
  return linear_fits(arguments);
}
constexpr NarrowRecord of_panels[] = {
    {&mm_f32, &mm_f32_panels, mm_fits},
    {&addmm_f32, &addmm_f32_panels, addmm_fits},
    {&linear_f32, &linear_f32_panels_row, row_fits},
    {&linear_f32, &linear_f32_panels, linear_fits},
#if TAPER_X86_LEVELS
    {&mm_f32_avx2, &mm_f32_avx2_panels, mm_fits},
    {&addmm_f32_avx2, &addmm_f32_avx2_panels, addmm_fits},
    {&linear_f32_avx2, &linear_f32_avx2_panels_row, row_fits},
    {&linear_f32_avx2, &linear_f32_avx2_panels, linear_fits},
    {&mm_f32_avx512, &mm_f32_avx512_panels, mm_fits},
    {&addmm_f32_avx512, &addmm_f32_avx512_panels, addmm_fits},
    {&linear_f32_avx512, &linear_f32_avx512_panels_row, row_fits},
    {&linear_f32_avx512, &linear_f32_avx512_panels, linear_fits},
    // its pairs are for weights in bf16
    {&linear_f32_avx512_bf16, &linear_f32_avx512_panels_row, row_fits},
    {&linear_f32_avx512_bf16, &linear_f32_avx512_panels, linear_fits},
#endif
};
constexpr Span<const NarrowRecord> all_of_panels(of_panels);
}  // namespace
const Span<const NarrowRecord> narrow_products = all_of_panels;

}  // namespace taper::optimized
