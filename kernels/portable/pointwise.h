// One loop for every pointwise operator: out[i] = f(a[i], b[i], …), with broadcasting, any strides
// and any dtype.
//
// An operator is a small functor over float, double or int64_t, and a row of kernels/pointwise.def:
//
//   template <class T> struct Maximum { T operator()(T a, T b) const { … } };
//
// A record that the table cannot express has a line of its own:
//
//   TAPER_POINTWISE(maximum, f32, Elementwise<Maximum<float>, float, float, float>)
//
// The only code for each operator and type is a loop over dense blocks, which compilers vectorise.
// Dense arguments are read where they lie. Others are copied block by block to a buffer (walk.h),
// so strides, broadcasting and narrow dtypes need no code of their own. A task has a fixed number
// of elements. Elements are independent, so neither threads nor tasks change a result.
#pragma once
#include <string_view>
#include <utility>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// Elements of one task.
inline constexpr index_t pointwise_grain = 32768;

/// What `prepare` finds out about the shapes of n arguments.
template <int n>
struct Pointwise {
  static constexpr uint32_t overwrites = (1u << n) - 1;  // a block is read before it is written
  index_t count;
  Walk walks[n];
};

/// Rows of an argument. Each row is dense, or one element that repeats.
struct Rows {
  const void* data;
  bool repeats = false;
  index_t stride = 0;  ///< from one row to the next, in elements
};

/// Computes `rows` rows of `n` elements: arguments `in`, dense result `out`. `functor` is the
/// operator's functor with its parameters. If there is only one argument, it does not repeat.
using BlockFunction = void (*)(const void* functor, index_t rows, index_t n, const Rows* in,
                               void* out);

/// Runs `f` over all elements. `out` is dense. `computes` is the dtype in which `f` writes its
/// result.
void run_pointwise(const Context& context, index_t count, Span<const Source> sources,
                   const TensorRef& out, DType computes, BlockFunction f, const void* functor);

/// How a CPU level converts n elements of f16 or bf16.
struct SmallFloats {
  void (*widen)(DType dtype, index_t n, const void* from, float* to);
  void (*narrow)(DType dtype, index_t n, const float* from, void* to);
};

/// A loop over floats, for arguments or a result in f16 or bf16. It is the functor of the
/// BlockFunction `run_small_blocks`, which converts one block at a time.
struct SmallBlocks {
  BlockFunction loop;
  const void* functor;
  const SmallFloats* floats;
  DType result;
  int arguments;
  DType in[3];
};
void run_small_blocks(const void* small_blocks, index_t rows, index_t n, const Rows* in, void* out);

/// The types of an operator's parameters that are not tensors, as the constructor of its functor
/// takes them.
template <class... S>
struct Parameters {};

namespace internal {

template <class F, class = void>
struct parameters_of {
  using type = Parameters<>;
};
template <class F>
struct parameters_of<F, std::void_t<typename F::parameters>> {
  using type = typename F::parameters;
};

/// The dtype in which the functor gets a tensor's elements.
template <class E>
DType computed_dtype(const TensorRef& ref) {
  if constexpr (std::is_same_v<Compute<E>, E>)
    return ref.dtype;
  else
    return dtypes_of<Compute<E>>::dtype;
}

/// Whether a functor declares `has_easy`.
template <class F, class = void>
inline constexpr bool has_easy = false;
template <class F>
inline constexpr bool has_easy<F, std::enable_if_t<F::has_easy>> = true;

/// Elements that a loop over several element types computes at a time: a cache line, or more.
template <class... E>
constexpr int lanes_of() {
  int lanes = 64;
  ((lanes = 64 / static_cast<int>(sizeof(E)) < lanes ? 64 / static_cast<int>(sizeof(E)) : lanes),
   ...);
  return lanes < 16 ? 16 : lanes;
}

/// One row of an argument. An element that repeats is stored `lanes` times, and these copies are
/// read again and again.
template <class E, int lanes>
struct Row {
  const E* data;
  index_t mask = -1;
  alignas(64) E copies[lanes];

  Row(const Rows& rows, index_t r) : data(static_cast<const E*>(rows.data) + r * rows.stride) {
    if (!rows.repeats) return;
    const E value = *data;
    for (E& copy : copies) copy = value;
    data = copies, mask = 0;
  }
  const E* from(index_t k) const { return data + (k & mask); }
};

template <int lanes, class F, class R, class... E>
void apply_lanes(const F& f, R* y, const E*... x) {
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) y[l] = f(x[l]...);
}
/// Computes elements begin … end - 1 of a row.
template <int lanes, class F, class R, class... E>
void apply_row(const F f, index_t begin, index_t end, R* y, const Row<E, lanes>&... x) {
  index_t k = begin;
  for (; k + lanes <= end; k += lanes) apply_lanes<lanes>(f, y + k, x.from(k)...);
  for (; k < end; ++k) y[k] = f(*x.from(k)...);
}
template <int lanes, class F, class R, class E>
void apply_row(const F f, index_t begin, index_t end, R* y, const Row<E, lanes>& x) {
  const auto loop = [n = end - begin, f](R* to, const E* from) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < n; ++k) to[k] = f(from[k]);
  };
  loop(y + begin, x.data + begin);
}
template <int lanes, class F, class... E>
void mark_lanes(const F& f, int* hard, const E*... x) {
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) hard[l] |= f.is_hard(x[l]...);
}
template <int lanes, class F, class... E>
bool any_is_hard(const F f, index_t begin, index_t end, const Row<E, lanes>&... x) {
  int marks[lanes] = {}, hard = 0;
  index_t k = begin;
  for (; k + lanes <= end; k += lanes) mark_lanes<lanes>(f, marks, x.from(k)...);
  for (; k < end; ++k) hard |= f.is_hard(*x.from(k)...);
  for (const int mark : marks) hard |= mark;
  return hard != 0;
}
template <int lanes, class F, class E>
bool any_is_hard(const F f, index_t begin, index_t end, const Row<E, lanes>& x) {
  int hard = 0;
  for (index_t k = begin; k < end; ++k) hard |= f.is_hard(x.data[k]);
  return hard != 0;
}
/// Parts without a hard element use a loop without a branch.
template <int lanes, class F, class R, class... E>
void apply_easy(const F f, index_t n, R* y, const Row<E, lanes>&... x) {
  constexpr index_t part = 256;
  for (index_t at = 0; at < n; at += part) {
    const index_t end = n - at < part ? n : at + part;
    if (any_is_hard<lanes>(f, at, end, x...))
      for (index_t k = at; k < end; ++k) y[k] = f(*x.from(k)...);
    else
      apply_row<lanes>([f](E... e) { return f.easy(e...); }, at, end, y, x...);
  }
}
struct AnyVisitor {
  template <class F>
  void operator()(const F&) const {}
};
template <class F, class = void>
inline constexpr bool has_cases = false;
template <class F>
inline constexpr bool
    has_cases<F, std::void_t<decltype(std::declval<const F&>().visit(AnyVisitor()))>> = true;

/// If parameters choose between formulas, the functor has `visit`, which passes the chosen formula
/// on. So each formula has a loop of its own, without a branch for each element. If a formula
/// covers only most arguments, the functor declares `has_easy` = true. Then `easy` is the formula,
/// `is_hard` finds the other arguments, and the functor itself computes them.
template <class F, class R, class... E, size_t... i>
void block_of(const void* functor, index_t rows, index_t n, const Rows* in, void* out,
              std::index_sequence<i...>) {
  constexpr int lanes = lanes_of<R, E...>();
  const F& f = *static_cast<const F*>(functor);
  const auto run = [=](const auto& g) {
    using G = std::decay_t<decltype(g)>;
    R* y = static_cast<R*>(out);
    for (index_t r = 0; r < rows; ++r, y += n) {
      if constexpr (has_easy<G>)
        apply_easy<lanes, G, R, E...>(g, n, y, Row<E, lanes>(in[i], r)...);
      else
        apply_row<lanes, G, R, E...>(g, 0, n, y, Row<E, lanes>(in[i], r)...);
    }
  };
  if constexpr (has_cases<F>)
    f.visit(run);
  else
    run(f);
}
template <class F, class R, class... E>
void block(const void* functor, index_t rows, index_t n, const Rows* in, void* out) {
  block_of<F, R, E...>(functor, rows, n, in, out, std::index_sequence_for<E...>{});
}

/// What functors with the same argument types share. It is compiled once for all of them.
template <class R, class List, class... E>
struct ElementwiseArguments;
template <class R, class... S, class... E>
struct ElementwiseArguments<R, Parameters<S...>, E...> {
  using Plan = Pointwise<static_cast<int>(sizeof...(E))>;

  static Error prepare(Context&, Plan& plan, AnyView<const E>... in, S..., View<R> out) {
    plan.count = out.numel();
    int k = 0;
    (plan.walks[k++].repeat(in.shape(), out.shape()), ...);
    return Error::ok;
  }
  [[gnu::noinline]] static Error run_loop(BlockFunction loop, const void* functor, Context& context,
                                          const Plan& plan, AnyView<const E>... in, View<R> out) {
    int k = 0;
    const Source sources[] = {Source(*in.ref, plan.walks[k++], computed_dtype<E>(*in.ref))...};
    run_pointwise(context, plan.count, sources, *out.ref, computed_dtype<R>(*out.ref), loop,
                  functor);
    return Error::ok;
  }
  /// Runs a loop over floats, and converts f16 and bf16 by `floats`.
  [[gnu::noinline]] static Error run_small_loop(BlockFunction loop, const SmallFloats& floats,
                                                const void* functor, Context& context,
                                                const Plan& plan, AnyView<const E>... in,
                                                View<R> out) {
    const DType result = out.ref->dtype;
    const SmallBlocks blocks{
        loop, functor, &floats, result, static_cast<int>(sizeof...(E)), {in.ref->dtype...}};
    int k = 0;
    const Source sources[] = {Source(*in.ref, plan.walks[k++], in.ref->dtype)...};
    run_pointwise(context, plan.count, sources, *out.ref, result, run_small_blocks, &blocks);
    return Error::ok;
  }
};

template <class F, class R, class List, class... E>
struct ElementwiseKernel;
template <class F, class R, class... S, class... E>
struct ElementwiseKernel<F, R, Parameters<S...>, E...>
    : ElementwiseArguments<R, Parameters<S...>, E...> {
  using Shared = ElementwiseArguments<R, Parameters<S...>, E...>;
  using typename Shared::Plan;

  static constexpr BlockFunction loop = &block<F, Compute<R>, Compute<E>...>;
  /// Runs with another compilation of `loop`.
  template <BlockFunction loop_>
  static Error run_with(Context& context, const Plan& plan, AnyView<const E>... in, S... parameters,
                        View<R> out) {
    const F f{parameters...};
    return Shared::run_loop(loop_, &f, context, plan, in..., out);
  }
  /// Runs with another compilation of the loop over floats, and other conversions.
  template <BlockFunction loop_, const SmallFloats& floats>
  static Error run_small(Context& context, const Plan& plan, AnyView<const E>... in,
                         S... parameters, View<R> out) {
    const F f{parameters...};
    return Shared::run_small_loop(loop_, floats, &f, context, plan, in..., out);
  }
  static Error run(Context& context, const Plan& plan, AnyView<const E>... in, S... parameters,
                   View<R> out) {
    return run_with<loop>(context, plan, in..., parameters..., out);
  }
};

}  // namespace internal

/// The kernel of functor F with result elements R and arguments E…. A functor with parameters
/// declares their types in the row's order, as `using parameters = Parameters<Scalar, Scalar>`. Its
/// constructor takes the parameters.
template <class F, class R, class... E>
using Elementwise =
    internal::ElementwiseKernel<F, R, typename internal::parameters_of<F>::type, E...>;

/// The same for one argument E that comes after a number P in the row: pow.Scalar, polygamma. The
/// constructor of F takes the number.
template <class F, class P, class E>
struct AfterNumber {
  static Error prepare(Context&, Pointwise<1>& plan, P, AnyView<const E> in, View<E> out) {
    plan = {out.numel(), {Walk::of(in.shape())}};
    return Error::ok;
  }
  static constexpr BlockFunction loop = &internal::block<F, Compute<E>, Compute<E>>;
  template <BlockFunction loop_>
  static Error run_with(Context& context, const Pointwise<1>& plan, P number, AnyView<const E> in,
                        View<E> out) {
    const F f(number);
    const DType dtype = internal::computed_dtype<E>(*out.ref);
    const Source sources[] = {Source(*in.ref, plan.walks[0], dtype)};
    run_pointwise(context, plan.count, sources, *out.ref, dtype, loop_, &f);
    return Error::ok;
  }
  static Error run(Context& context, const Pointwise<1>& plan, P number, AnyView<const E> in,
                   View<E> out) {
    return run_with<loop>(context, plan, number, in, out);
  }
};

}  // namespace taper::portable

/// Defines the record <op>_<variant> from an Elementwise.
#define TAPER_POINTWISE(op, variant, ...) \
  TAPER_KERNEL(op, variant, __VA_ARGS__::prepare, __VA_ARGS__::run)

/// Records of an operator with one, two or three arguments of one dtype, over the floating dtypes …
#define TAPER_UNARY_FLOATING(op, F)                                \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, float, float>)    \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, double, double>) \
  TAPER_POINTWISE(op, small_float, Elementwise<F<float>, SmallFloat, SmallFloat>)
#define TAPER_BINARY_FLOATS(op, F)                                     \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, float, float, float>) \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, double, double, double>)
#define TAPER_BINARY_FLOATING(op, F) \
  TAPER_BINARY_FLOATS(op, F)         \
  TAPER_POINTWISE(op, small_float, Elementwise<F<float>, SmallFloat, SmallFloat, SmallFloat>)
#define TAPER_TERNARY_FLOATING(op, F)                                              \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, float, float, float, float>)      \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, double, double, double, double>) \
  TAPER_POINTWISE(op, small_float,                                                 \
                  Elementwise<F<float>, SmallFloat, SmallFloat, SmallFloat, SmallFloat>)
/// … over integers and bool …
#define TAPER_UNARY_INTEGER(op, F)                                    \
  TAPER_POINTWISE(op, i64, Elementwise<F<int64_t>, int64_t, int64_t>) \
  TAPER_POINTWISE(op, small_integer, Elementwise<F<int64_t>, SmallInteger, SmallInteger>)
#define TAPER_BINARY_INTEGER(op, F)                                            \
  TAPER_POINTWISE(op, i64, Elementwise<F<int64_t>, int64_t, int64_t, int64_t>) \
  TAPER_POINTWISE(op, small_integer,                                           \
                  Elementwise<F<int64_t>, SmallInteger, SmallInteger, SmallInteger>)
/// … over both.
#define TAPER_UNARY_NUMERIC(op, F) TAPER_UNARY_FLOATING(op, F) TAPER_UNARY_INTEGER(op, F)
#define TAPER_BINARY_NUMERIC(op, F) TAPER_BINARY_FLOATING(op, F) TAPER_BINARY_INTEGER(op, F)

/// The same with a bool result.
#define TAPER_UNARY_PREDICATE(op, F)                                        \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, bool, float>)              \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, bool, double>)            \
  TAPER_POINTWISE(op, small_float, Elementwise<F<float>, bool, SmallFloat>) \
  TAPER_POINTWISE(op, i64, Elementwise<F<int64_t>, bool, int64_t>)          \
  TAPER_POINTWISE(op, small_integer, Elementwise<F<int64_t>, bool, SmallInteger>)
#define TAPER_BINARY_PREDICATE(op, F)                                                   \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, bool, float, float>)                   \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, bool, double, double>)                \
  TAPER_POINTWISE(op, small_float, Elementwise<F<float>, bool, SmallFloat, SmallFloat>) \
  TAPER_POINTWISE(op, i64, Elementwise<F<int64_t>, bool, int64_t, int64_t>)             \
  TAPER_POINTWISE(op, small_integer, Elementwise<F<int64_t>, bool, SmallInteger, SmallInteger>)
