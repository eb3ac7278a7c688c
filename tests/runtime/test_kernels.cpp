#include "test_kernels.h"

#include <cstring>

namespace taper {

using namespace test;

template <>
struct Rule<test::ops::add> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b,
                    TensorType<D>& out) {
    if (!facts.require(a.rank == b.rank, "ranks {} and {} differ", a.rank, b.rank)) return false;
    for (int i = 0; i < a.rank; ++i)
      if (!facts.equal(a[i], b[i], "extents {} and {} differ")) return false;
    out.like(a);
    return true;
  }
};

template <>
struct Rule<test::ops::sum_rows> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    if (!facts.require(self.rank == 2, "needs two dimensions, not {}", self.rank)) return false;
    out.dtype = self.dtype, out.rank = 1, out[0] = self[0];
    return true;
  }
};

template <>
struct Rule<test::ops::take> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& index,
                    TensorType<D>& out) {
    if (!facts.require(self.rank == 1 && index.rank == 1, "needs one dimension")) return false;
    out.like(index, self.dtype);
    return true;
  }
};

template <>
struct Rule<test::ops::join> {
  template <class D>
  static bool shape(Facts<D>& facts, const TypeList<D>& list, TensorType<D>& out) {
    if (!facts.require(list.count > 0, "needs a tensor")) return false;
    out.dtype = list[0].dtype, out.rank = 1, out[0] = D(0);
    for (index_t i = 0; i < list.count; ++i) {
      if (!facts.require(list[i].rank == 1, "needs one dimension")) return false;
      out[0] = out[0] + list[i][0];
    }
    return true;
  }
};

template <>
struct Rule<test::ops::truncate> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, TensorType<D>& out) {
    out.like(self, DType::i32);
    return true;
  }
};
template <>
struct Rule<test::ops::negate> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    if (!facts.require(self.rank == 2, "needs two dimensions, not {}", self.rank)) return false;
    out.like(self);
    return true;
  }
};

template <>
struct Rule<test::ops::fill> {
  template <class D>
  static bool shape(Facts<D>& facts, const DimList<D>& size, Scalar, Maybe<std::string_view>,
                    TensorType<D>& out) {
    if (!facts.require(size.size() <= max_rank, "too many dimensions")) return false;
    out.dtype = DType::f32, out.rank = static_cast<int>(size.size());
    for (int i = 0; i < out.rank; ++i) out[i] = size[i];
    return true;
  }
};

namespace test {

thread_local int prepared = 0, held = 0, ended = 0;
thread_local index_t refused_size = -1;
thread_local size_t bound_floats = 100;

namespace {

struct AddPlan {
  static constexpr uint32_t overwrites = 0b11;
  index_t count;
};
Error prepare_add(Context&, AddPlan& plan, View<const float> a, View<const float>, View<float>) {
  ++prepared;
  plan.count = a.numel();
  return Error::ok;
}
Error run_add(Context&, const AddPlan& plan, View<const float> a, View<const float> b,
              View<float> out) {
  for (index_t i = 0; i < plan.count; ++i) out.data()[i] = a.data()[i] + b.data()[i];
  return Error::ok;
}

struct HoldingPlan {
  static constexpr uint32_t overwrites = 0b11;
  bool holds;
  AddPlan add;
};
Error prepare_holding(Context& context, HoldingPlan& plan, View<const float> a, View<const float> b,
                      View<float> out) {
  if (a.size(0) == refused_size) return Error::not_supported;
  if (!plan.holds) ++held;
  plan.holds = true;
  return prepare_add(context, plan.add, a, b, out);
}
Error run_holding(Context& context, const HoldingPlan& plan, View<const float> a,
                  View<const float> b, View<float> out) {
  return run_add(context, plan.add, a, b, out);
}
void end_holding(HoldingPlan& plan) { plan.holds = false, --held, ++ended; }

struct RowsPlan {
  index_t rows, columns, stride;
};
Error prepare_rows(Context& context, RowsPlan& plan, RowsView<const float> self, View<float>) {
  ++prepared;
  plan = {self.size(0), self.size(1), self.stride(0)};
  context.need_scratch(static_cast<size_t>(plan.columns) * sizeof(float));
  return Error::ok;
}
Error run_rows(Context& context, const RowsPlan& plan, RowsView<const float> self,
               View<float> out) {
  float* row = static_cast<float*>(context.scratch);
  for (index_t r = 0; r < plan.rows; ++r) {
    std::memcpy(row, self.data() + r * plan.stride,
                static_cast<size_t>(plan.columns) * sizeof(float));
    float sum = 0;
    for (index_t c = 0; c < plan.columns; ++c) sum += row[c];
    out.data()[r] = sum;
  }
  return Error::ok;
}

Error prepare_middle(Context& context, RowsPlan& plan, RowsView<const float> self,
                     View<float> out) {
  context.need_scratch((self.size(0) == middle_rows ? 100 : 1) * sizeof(float));
  return prepare_rows(context, plan, self, out);
}
void bound_of_middle(Context& context, RowsView<const float>, View<float>) {
  context.need_scratch(bound_floats * sizeof(float));
}

Error run_take(Context& context, View<const float> self, View<const int64_t> index,
               View<float> out) {
  for (index_t i = 0; i < index.numel(); ++i) {
    const int64_t k = index.data()[i];
    if (k < 0 || k >= self.numel())
      return context.fail(Error::invalid_argument, TAPER_TEXT("index {} is outside [0, {})"), k,
                          self.numel());
    out.data()[i] = self.data()[k];
  }
  return Error::ok;
}

Error run_join(Context&, ViewList<const float, Strides::any> list, View<float> out) {
  float* to = out.data();
  for (index_t i = 0; i < list.count; ++i)
    for (index_t k = 0; k < list[i].numel(); ++k) *to++ = list[i].data()[k * list[i].stride(0)];
  return Error::ok;
}

Error run_fill(Context&, Span<const int64_t>, Scalar value, Maybe<std::string_view>,
               View<float> out) {
  for (index_t i = 0; i < out.numel(); ++i) out.data()[i] = value.to<float>();
  return Error::ok;
}

struct NegatePlan {
  static constexpr uint32_t overwrites = 0b1;
};
Error prepare_negate(Context&, NegatePlan&, AnyView<const float>, AnyView<float>) {
  return Error::ok;
}
Error run_negate(Context&, const NegatePlan&, AnyView<const float> self, AnyView<float> out) {
  for (index_t i = 0; i < self.size(0); ++i)
    for (index_t k = 0; k < self.size(1); ++k)
      out.data()[i * out.stride(0) + k * out.stride(1)] =
          -self.data()[i * self.stride(0) + k * self.stride(1)];
  return Error::ok;
}

// On one dtype it could write onto its argument.
struct TruncatePlan {
  static constexpr uint32_t overwrites = 0b1;
};
Error prepare_truncate(Context&, TruncatePlan&, View<const float>, View<int32_t>) {
  return Error::ok;
}
Error run_truncate(Context&, const TruncatePlan&, View<const float> self, View<int32_t> out) {
  for (index_t i = 0; i < self.numel(); ++i) out.data()[i] = static_cast<int32_t>(self.data()[i]);
  return Error::ok;
}

}  // namespace

constexpr Kernel add_f32 = make_kernel<ops::add, prepare_add, run_add>("add_f32");
constexpr Kernel sum_rows_f32 = make_kernel<ops::sum_rows, prepare_rows, run_rows>("sum_rows_f32");
constexpr Kernel take_f32 = make_kernel<ops::take, run_take>("take_f32");
constexpr Kernel join_f32 = make_kernel<ops::join, run_join>("join_f32");
constexpr Kernel fill_f32 = make_kernel<ops::fill, run_fill>("fill_f32");
constexpr Kernel negate_f32 = make_kernel<ops::negate, prepare_negate, run_negate>("negate_f32");
constexpr Kernel truncate_f32 =
    make_kernel<ops::truncate, prepare_truncate, run_truncate>("truncate_f32");
constexpr Kernel holding_add_f32 =
    make_kernel<ops::add, prepare_holding, run_holding, end_holding>("holding_add_f32");
constexpr Kernel middle_sum_rows_f32 =
    make_kernel<ops::sum_rows, prepare_middle, run_rows, bound_of_middle>("middle_sum_rows_f32");

namespace {
constexpr const Kernel* list[] = {&add_f32,  &sum_rows_f32, &take_f32,    &join_f32,
                                  &fill_f32, &negate_f32,   &truncate_f32};
}
constexpr KernelSet all(list);
const KernelSet kernels = all;

}  // namespace test
}  // namespace taper
