// The portable activation functions, compiled for AVX2 and AVX-512. Every element goes through the
// same IEEE 754 operations in the same order, so a record gives the portable one's bits, and
// `taper::pointwise` may hold the same functions.
#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {
namespace {

using portable::Elementwise, portable::Pointwise, portable::Source;

// `flatten`: a function that is called, not inlined, would stay narrow.
#define TAPER_WIDE(level, instructions)                                                         \
  template <class F>                                                                            \
  struct Wide_##level {                                                                         \
    __attribute__((target(instructions), flatten)) static void unary(const void*, index_t n,    \
                                                                     const void* const* in,     \
                                                                     void* out) {               \
      const float* x = static_cast<const float*>(in[0]);                                        \
      float* y = static_cast<float*>(out);                                                      \
      TAPER_INDEPENDENT_ITERATIONS                                                              \
      for (index_t i = 0; i < n; ++i) y[i] = F()(x[i]);                                         \
    }                                                                                           \
    __attribute__((target(instructions), flatten)) static void binary(const void*, index_t n,   \
                                                                      const void* const* in,    \
                                                                      void* out) {              \
      const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]); \
      float* y = static_cast<float*>(out);                                                      \
      TAPER_INDEPENDENT_ITERATIONS                                                              \
      for (index_t i = 0; i < n; ++i) y[i] = F()(a[i], b[i]);                                   \
    }                                                                                           \
  };
TAPER_WIDE(avx2, "avx2")
#ifdef __clang__
TAPER_WIDE(avx512, "avx512f,avx512vl,avx512dq,avx512bw")
#else
TAPER_WIDE(avx512, "avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512")
#endif
#undef TAPER_WIDE

template <portable::BlockFunction loop>
Error unary(Context& context, const Pointwise<1>& plan, AnyView<const float> self,
            View<float> out) {
  const Source sources[] = {Source(*self.ref, plan.walks[0], DType::f32)};
  portable::run_pointwise(context, plan.count, sources, *out.ref, DType::f32, loop, nullptr);
  return Error::ok;
}
template <portable::BlockFunction exact, portable::BlockFunction tanh_form>
Error gelu(Context& context, const Pointwise<1>& plan, AnyView<const float> self,
           std::string_view approximate, View<float> out) {
  const Source sources[] = {Source(*self.ref, plan.walks[0], DType::f32)};
  portable::run_pointwise(context, plan.count, sources, *out.ref, DType::f32,
                          approximate == "tanh" ? tanh_form : exact, nullptr);
  return Error::ok;
}
template <portable::BlockFunction exact, portable::BlockFunction tanh_form>
Error gelu_backward(Context& context, const Pointwise<2>& plan, AnyView<const float> grad_output,
                    AnyView<const float> self, std::string_view approximate, View<float> out) {
  const Source sources[] = {Source(*grad_output.ref, plan.walks[0], DType::f32),
                            Source(*self.ref, plan.walks[1], DType::f32)};
  portable::run_pointwise(context, plan.count, sources, *out.ref, DType::f32,
                          approximate == "tanh" ? tanh_form : exact, nullptr);
  return Error::ok;
}

}  // namespace

#define TAPER_WIDE_RECORD(op, level, prepare, ...)        \
  constexpr decltype(op##_f32_##level) op##_f32_##level = \
      make_kernel<ops::op, prepare, __VA_ARGS__>(#op "_f32_" #level, CpuLevel::level);
#define TAPER_WIDE_UNARY(op, F, level)                                                    \
  TAPER_WIDE_RECORD(op, level, (&Elementwise<portable::F<float>, float, float>::prepare), \
                    unary<Wide_##level<portable::F<float>>::unary>)
#define TAPER_WIDE_LEVEL(level)                                                                  \
  TAPER_WIDE_UNARY(exp, Exp, level)                                                              \
  TAPER_WIDE_UNARY(tanh, Tanh, level)                                                            \
  TAPER_WIDE_UNARY(sigmoid, Sigmoid, level)                                                      \
  TAPER_WIDE_UNARY(silu, Silu, level)                                                            \
  TAPER_WIDE_RECORD(gelu, level, (&Elementwise<portable::Gelu<float>, float, float>::prepare),   \
                    gelu<Wide_##level<portable::GeluErf<float>>::unary,                          \
                         Wide_##level<portable::GeluTanh<float>>::unary>)                        \
  TAPER_WIDE_RECORD(gelu_backward, level,                                                        \
                    (&Elementwise<portable::GeluBackward<float>, float, float, float>::prepare), \
                    gelu_backward<Wide_##level<portable::GeluErfBackward<float>>::binary,        \
                                  Wide_##level<portable::GeluTanhBackward<float>>::binary>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
