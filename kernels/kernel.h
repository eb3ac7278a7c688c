// A kernel: ordinary typed functions, and the record that a program links. Device code.
#pragma once
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "taper/kernels/operators.h"
#include "taper/kernels/rule.h"
#include "taper/runtime/core/error.h"
#include "taper/runtime/core/tensor_ref.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/runtime/platform/threads.h"

namespace taper {

/// One argument as an instruction holds it: 16 bytes on a 64-bit machine, no decoding at run time.
struct Slot {
  union {
    const TensorRef* tensor;  ///< nullptr: absent
    const TensorRef* const* tensors;
    int64_t integer;  ///< also bool (0, 1) and ScalarType (the DType's value)
    double real;
    const int64_t* integers;
    const double* reals;
    const char* text;
  };
  uint32_t size;  ///< elements of a list, bytes of a string
  Kind kind;      ///< of a Scalar: integer, real or boolean
  bool present;
};
static_assert(sizeof(Slot) == 16);

/// The things that a kernel may use besides its arguments.
struct Context {
  void* scratch =
      nullptr;  ///< in `run`: what `prepare` asked for, 64-byte aligned, content undefined
  size_t scratch_bytes = 0;  ///< in `prepare`: what is asked for so far
  const Threads* threads = nullptr;
  ErrorInfo* info = nullptr;

  /// For `prepare`: asks for at least this many bytes at `scratch` in `run`. The number must not
  /// shrink when extents grow, unless the record has a `scratch_bound`, which calls this as well.
  void need_scratch(size_t bytes) {
    if (bytes > scratch_bytes) scratch_bytes = bytes;
  }
  /// Reports what is wrong with the data of an argument, and returns the error: `return
  /// context.fail(invalid_argument, …)`.
  Error fail(Error error, const char* message, int64_t a = 0, int64_t b = 0, int64_t c = 0) {
    if (info != nullptr) {
      info->error = error, info->message = message;
      info->values[0] = a, info->values[1] = b, info->values[2] = c;
    }
    return error;
  }
};

/// The loader and eager compare an argument with this.
struct Expected {
  Kind kind;
  bool list, optional, written;
  Strides strides;
  DTypeSet dtypes;
};

/// An argument that a kernel can read in other layouts, too: in `from`, in which a file may have
/// it, and in `layout`, which the kernel reads faster. `prepare` and `run` look at the argument's
/// `layout`. Results have the same bits in both. A constant is packed once, at export or at load,
/// if all that reads it asks for the same layout.
struct Packing {
  uint8_t argument;
  int8_t unless;  ///< a bool argument: only where it is the literal false. -1: none
  Layout from;    ///< one with strides, or of blocks
  Layout layout;
  /// What the packed tensor takes; 0: this one stays as it is. Of `source` only the shape, dtype
  /// and layout count. nullptr: the kernel reads the layout if a file has it, and does not ask for
  /// it.
  size_t (*bytes)(const TensorRef& source);
  void (*pack)(const TensorRef& source, void* packed);

  bool reads(Layout l) const { return l == from || l == layout; }
};

/// A kernel for one operator, one combination of dtypes and one set of CPU features. A firmware's
/// table names it, and a profile shows it.
struct Kernel {
  const Operator* op;
  const char* name;  ///< "_softmax_f32"
  CpuFeatures needs;
  uint8_t expected_count;  ///< arguments that reach kernels, then results
  uint8_t result_count;
  uint16_t plan_bytes;  ///< at most `max_plan_bytes`
  uint32_t hash;        ///< the low bits of the operator's schema_hash: `load` finds records by it
  uint32_t overwrites;  ///< bit i: result 0 may lie exactly on argument i (one element of a list)
                        ///< if shape and dtype are equal
  const Expected* expected;
  bool (*shape)(Facts<Extent>&, const Slot* arguments,
                TensorType<Extent>* results);           ///< the operator's rule
  Error (*prepare)(Context&, void* plan, const Slot*);  ///< once per shape; nullptr: nothing to do
  Error (*run)(Context&, const void* plan, const Slot*);
  /// Gives back what the plan holds outside of its own bytes; nullptr: it holds nothing.
  ///
  /// The plan of such a record is all zeros before its first `prepare`. When a shape changes,
  /// `prepare` runs again on the same plan, and keeps, replaces or gives back what the plan holds
  /// already. If any `prepare` succeeded, its caller calls `end` once, after the last `run`. So a
  /// `prepare` that fails leaves the plan as it was, or leaves another plan that `end` can take.
  void (*end)(void* plan);
  /// Asks for the most scratch that `prepare` may ask for when no extent is larger than here;
  /// nullptr: that is what `prepare` asks for here. A method calls this once, at the maximum of
  /// every symbol. So the kernel may choose another algorithm for smaller shapes.
  void (*scratch_bound)(Context&, const Slot*);
  Span<const Packing> packings = {};  ///< none: all arguments are dense

  /// Whether it asks for constants in another layout.
  bool packs() const {
    for (const Packing& p : packings)
      if (p.bytes != nullptr) return true;
    return false;
  }
};
inline constexpr int max_plan_bytes = 1024;

/// Faster records come first. The first record that fits, and whose features the machine has, is
/// taken.
using KernelSet = Span<const Kernel* const>;

// ---- from slots to typed parameters ----

namespace internal {

template <class P>
struct argument;
#define TAPER_ARGUMENT(type, kind_, list_, optional_, ...)                                     \
  template <>                                                                                  \
  struct argument<type> {                                                                      \
    static constexpr Expected expected{Kind::kind_, list_, optional_, false, Strides::any, 0}; \
    static type read(const Slot& s) { return __VA_ARGS__; }                                    \
  };
inline Scalar scalar_of(const Slot& s) {
  if (s.kind == Kind::real) return Scalar(s.real);
  if (s.kind == Kind::boolean) return Scalar(s.integer != 0);
  return Scalar(s.integer);
}
inline Span<const int64_t> integers_of(const Slot& s) {
  return {s.integers, static_cast<index_t>(s.size)};
}
TAPER_ARGUMENT(int64_t, integer, false, false, s.integer)
TAPER_ARGUMENT(double, real, false, false, s.real)
TAPER_ARGUMENT(bool, boolean, false, false, s.integer != 0)
TAPER_ARGUMENT(Scalar, scalar, false, false, scalar_of(s))
TAPER_ARGUMENT(std::string_view, string, false, false, std::string_view(s.text, s.size))
TAPER_ARGUMENT(DType, dtype, false, false, static_cast<DType>(s.integer))
TAPER_ARGUMENT(Span<const int64_t>, integer, true, false, integers_of(s))
TAPER_ARGUMENT(Span<const double>, real, true, false,
               Span<const double>(s.reals, static_cast<index_t>(s.size)))
TAPER_ARGUMENT(Maybe<int64_t>, integer, false, true, Maybe<int64_t>{s.integer, s.present})
TAPER_ARGUMENT(Maybe<double>, real, false, true, Maybe<double>{s.real, s.present})
TAPER_ARGUMENT(Maybe<bool>, boolean, false, true, Maybe<bool>{s.integer != 0, s.present})
TAPER_ARGUMENT(Maybe<Scalar>, scalar, false, true, Maybe<Scalar>{scalar_of(s), s.present})
TAPER_ARGUMENT(Maybe<DType>, dtype, false, true,
               Maybe<DType>{static_cast<DType>(s.integer), s.present})
TAPER_ARGUMENT(Maybe<std::string_view>, string, false, true,
               Maybe<std::string_view>{std::string_view(s.text, s.present ? s.size : 0), s.present})
TAPER_ARGUMENT(Maybe<Span<const int64_t>>, integer, true, true,
               Maybe<Span<const int64_t>>{integers_of(s), s.present})
TAPER_ARGUMENT(Maybe<Span<const double>>, real, true, true,
               Maybe<Span<const double>>{Span<const double>(s.reals, static_cast<index_t>(s.size)),
                                         s.present})
#undef TAPER_ARGUMENT

template <class T, Strides strides>
struct argument<View<T, strides>> {
  static constexpr Expected expected{Kind::tensor, false,
                                     false,        !std::is_const_v<T>,
                                     strides,      dtypes_of<std::remove_const_t<T>>::set};
  static View<T, strides> read(const Slot& s) { return {s.tensor}; }
};
template <class T, Strides strides>
struct argument<Maybe<View<T, strides>>> {
  static constexpr Expected expected{Kind::tensor, false,
                                     true,         !std::is_const_v<T>,
                                     strides,      dtypes_of<std::remove_const_t<T>>::set};
  static Maybe<View<T, strides>> read(const Slot& s) { return {{s.tensor}, s.tensor != nullptr}; }
};
template <class T, Strides strides>
struct argument<ViewList<T, strides>> {
  static constexpr Expected expected{Kind::tensor, true,
                                     false,        !std::is_const_v<T>,
                                     strides,      dtypes_of<std::remove_const_t<T>>::set};
  static ViewList<T, strides> read(const Slot& s) {
    return {s.tensors, static_cast<index_t>(s.size)};
  }
};
template <class T, Strides strides>
struct argument<MaybeViewList<T, strides>> {
  static constexpr Expected expected{Kind::tensor, true,
                                     true,         !std::is_const_v<T>,
                                     strides,      dtypes_of<std::remove_const_t<T>>::set};
  static MaybeViewList<T, strides> read(const Slot& s) {
    return {s.tensors, static_cast<index_t>(s.size)};
  }
};

// ---- does the function agree with the row? ----

constexpr bool agree(const Parameter& p, const Expected& e, bool result) {
  // bool[3] masks travel as integer lists; a result may be one that is not always computed
  const bool kind =
      p.kind == e.kind || (p.list && p.kind == Kind::boolean && e.kind == Kind::integer);
  return kind && p.list == e.list &&
         (result || (p.optional || p.optional_elements) == e.optional) &&
         (p.mutated || result) == e.written;
}
template <class... P>
constexpr int disagreement(const Schema& s) {  // index of the first wrong parameter, -1 if none
  const Expected given[] = {argument<P>::expected..., Expected{}};
  int n = 0;
  for (int i = 0; i < s.parameter_count; ++i) {
    if (!reaches_kernel(s.parameters[i])) continue;
    if (n == static_cast<int>(sizeof...(P)) || !agree(s.parameters[i], given[n], false)) return n;
    ++n;
  }
  for (int i = 0; i < s.result_count; ++i, ++n)
    if (n == static_cast<int>(sizeof...(P)) || !agree(s.results[i], given[n], true)) return n;
  return n == static_cast<int>(sizeof...(P)) ? -1 : n;
}
template <const Operator& op, int parameter>
struct kernel_signature_differs_from_the_row_at_parameter {
  static_assert(parameter == -1,
                "the kernel's parameters and the row in operators.def differ (operator and index "
                "stand above)");
  static constexpr bool ok = true;
};

// ---- the record ----

template <class Plan, class = void>
inline constexpr uint32_t overwrites_of = 0;
template <class Plan>
inline constexpr uint32_t overwrites_of<Plan, std::void_t<decltype(Plan::overwrites)>> =
    Plan::overwrites;

template <auto>
struct Run;  // Error run(Context&, arguments…, results…)
template <class... P, Error (*fn)(Context&, P...)>
struct Run<fn> {
  static constexpr uint16_t plan_bytes = 0;
  static constexpr uint32_t overwrites = 0;
  static constexpr Expected expected[] = {argument<P>::expected...};
  template <const Operator& op>
  static constexpr int wrong = disagreement<P...>(schema<op>);
  template <size_t... i>
  static Error call(Context& c, const Slot* s, std::index_sequence<i...>) {
    return fn(c, argument<P>::read(s[i])...);
  }
  static Error run(Context& c, const void*, const Slot* s) {
    return call(c, s, std::index_sequence_for<P...>{});
  }
};
template <auto>
struct PlannedRun;  // Error run(Context&, const Plan&, arguments…, results…)
template <class Plan, class... P, Error (*fn)(Context&, const Plan&, P...)>
struct PlannedRun<fn> {
  static_assert(std::is_trivially_copyable_v<Plan> && alignof(Plan) <= 8 &&
                sizeof(Plan) <= max_plan_bytes);
  static constexpr uint16_t plan_bytes = sizeof(Plan);
  static constexpr uint32_t overwrites = overwrites_of<Plan>;
  static constexpr Expected expected[] = {argument<P>::expected...};
  template <const Operator& op>
  static constexpr int wrong = disagreement<P...>(schema<op>);
  template <size_t... i>
  static Error call(Context& c, const void* p, const Slot* s, std::index_sequence<i...>) {
    return fn(c, *static_cast<const Plan*>(p), argument<P>::read(s[i])...);
  }
  static Error run(Context& c, const void* p, const Slot* s) {
    return call(c, p, s, std::index_sequence_for<P...>{});
  }
};
template <auto>
struct Prepare;  // Error prepare(Context&, Plan&, arguments…, results…)
template <class Plan_, class... P, Error (*fn)(Context&, Plan_&, P...)>
struct Prepare<fn> {
  using Plan = Plan_;
  template <size_t... i>
  static Error call(Context& c, void* p, const Slot* s, std::index_sequence<i...>) {
    return fn(c, *static_cast<Plan*>(p), argument<P>::read(s[i])...);
  }
  static Error run(Context& c, void* p, const Slot* s) {
    return call(c, p, s, std::index_sequence_for<P...>{});
  }
};

template <auto>
struct More;  // what a record may have beside `prepare` and `run`
template <class Plan, void (*fn)(Plan&)>
struct More<fn> {  // void end(Plan&)
  static void end(void* p) { fn(*static_cast<Plan*>(p)); }
  template <const Operator& op, class Plan_>
  static constexpr void add(Kernel& kernel) {
    static_assert(std::is_same_v<Plan, Plan_>, "`end` takes another plan than `prepare`");
    kernel.end = end;
  }
};
template <class First, class... P, void (*fn)(Context&, First, P...)>
struct More<fn> {  // void scratch_bound(Context&, arguments…, results…)
  template <size_t... i>
  static void call(Context& c, const Slot* s, std::index_sequence<i...>) {
    fn(c, argument<First>::read(s[0]), argument<P>::read(s[i + 1])...);
  }
  static void bound(Context& c, const Slot* s) { call(c, s, std::index_sequence_for<P...>{}); }
  template <const Operator& op, class>
  static constexpr void add(Kernel& kernel) {
    static_assert(kernel_signature_differs_from_the_row_at_parameter<op, disagreement<First, P...>(
                                                                             schema<op>)>::ok);
    kernel.scratch_bound = bound;
  }
};

template <const Operator& op, class S>
constexpr Kernel record(const char* name, CpuFeatures needs,
                        Error (*prepare)(Context&, void*, const Slot*),
                        Span<const Packing> packings = {}) {
  static_assert(kernel_signature_differs_from_the_row_at_parameter<op, S::template wrong<op>>::ok);
  constexpr uint32_t hash = static_cast<uint32_t>(schema_hash(op));
  return {&op,
          name,
          needs,
          static_cast<uint8_t>(sizeof(S::expected) / sizeof(Expected)),
          static_cast<uint8_t>(schema<op>.result_count),
          S::plan_bytes,
          hash,
          S::overwrites,
          S::expected,
          &run_rule<op, Extent>,
          prepare,
          S::run,
          nullptr,
          nullptr,
          packings};
}

}  // namespace internal

/// The record of a kernel that needs no preparation: `Error run(Context&, arguments…, results…)`.
template <const Operator& op, auto run>
constexpr Kernel make_kernel(const char* name, CpuFeatures needs = {},
                             Span<const Packing> packings = {}) {
  return internal::record<op, internal::Run<run>>(name, needs, nullptr, packings);
}
/// The record of a kernel with a plan: `Error prepare(Context&, Plan&, …)`, `Error run(Context&,
/// const Plan&, …)`. A Plan may say `static constexpr uint32_t overwrites`, see Kernel.
template <const Operator& op, auto prepare, auto run>
constexpr Kernel make_kernel(const char* name, CpuFeatures needs = {},
                             Span<const Packing> packings = {}) {
  return internal::record<op, internal::PlannedRun<run>>(name, needs,
                                                         internal::Prepare<prepare>::run, packings);
}
/// The same with `void end(Plan&)`, with `void scratch_bound(Context&, arguments…, results…)`, or
/// with both, see Kernel.
template <const Operator& op, auto prepare, auto run, auto first, auto... more>
constexpr Kernel make_kernel(const char* name, CpuFeatures needs = {},
                             Span<const Packing> packings = {}) {
  using Plan = typename internal::Prepare<prepare>::Plan;
  Kernel kernel = make_kernel<op, prepare, run>(name, needs, packings);
  internal::More<first>::template add<op, Plan>(kernel);
  (internal::More<more>::template add<op, Plan>(kernel), ...);
  return kernel;
}

// ---- rules over slots ----

inline TensorType<Extent> type_of(const TensorRef* ref) {
  TensorType<Extent> t;
  t.present = ref != nullptr;
  if (ref == nullptr) return t;
  t.dtype = ref->dtype, t.rank = ref->shape->rank;
  for (int i = 0; i < t.rank; ++i)
    t.sizes[i] = ref->shape->sizes[i], t.strides[i] = ref->shape->strides[i];
  return t;
}

template <>
struct RuleReader<Extent> {
  using Argument = Slot;

  /// Keeps the type of an optional tensor alive while the rule runs.
  struct OptionalType {
    TensorType<Extent> type;
    operator const TensorType<Extent>*() const { return type.present ? &type : nullptr; }
  };
  template <class P>
  static auto read(const Slot& s) {
    using List = DimList<Extent>;
    if constexpr (std::is_same_v<P, TensorType<Extent>>)
      return type_of(s.tensor);
    else if constexpr (std::is_same_v<P, const TensorType<Extent>*>)
      return OptionalType{type_of(s.tensor)};
    else if constexpr (std::is_same_v<P, TypeList<Extent>>)
      return TypeList<Extent>{s.tensors, static_cast<index_t>(s.size),
                              [](const void* source, index_t i) {
                                return type_of(static_cast<const TensorRef* const*>(source)[i]);
                              }};
    else if constexpr (std::is_same_v<P, Extent>)
      return Extent(s.integer);
    else if constexpr (std::is_same_v<P, Number<Extent>>)
      return number(internal::argument<Scalar>::read(s));
    else if constexpr (std::is_same_v<P, Maybe<Extent>>)
      return Maybe<Extent>{Extent(s.integer), s.present};
    else if constexpr (std::is_same_v<P, List>)
      return dims(s);
    else if constexpr (std::is_same_v<P, Maybe<List>>)
      return Maybe<List>{dims(s), s.present};
    else
      return internal::argument<P>::read(s);
  }

 private:
  static Number<Extent> number(const Scalar& s) {
    if (s.is_real) return {true, false, 0, s.real};
    return {false, s.is_bool, s.integer, 0};
  }
  static DimList<Extent> dims(const Slot& s) {
    return {s.integers, static_cast<index_t>(s.size), [](const void* source, index_t i) {
              return Extent(static_cast<const int64_t*>(source)[i]);
            }};
  }
};

}  // namespace taper

/// Defines the record `name` of an operator, with the features that it needs, its Packings, and its
/// functions. The build finds all uses of this macro and lists them in a library's `kernels.def`.
#define TAPER_RECORD(op, name, needs, packings, ...) \
  extern const ::taper::Kernel name;                 \
  constexpr ::taper::Kernel name =                   \
      ::taper::make_kernel<::taper::ops::op, __VA_ARGS__>(#name, needs, packings);

/// Defines the record `<op>_<variant>`, e.g. `portable::_softmax_f32`, that every machine can run.
#define TAPER_KERNEL(op, variant, ...) TAPER_RECORD(op, op##_##variant, {}, {}, __VA_ARGS__)
