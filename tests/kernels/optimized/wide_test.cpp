// Records that are portable loops compiled for wider vectors: the same bits, but for elementary
// functions, which use fused multiply-adds.
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>

#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

using optimized::CpuLevel;
using optimized::features_of;

/// The portable record with the dtypes of `kernel`.
const Kernel* portable_twin(const Kernel& kernel) {
  const std::string_view name(kernel.name);
  const std::string_view own = name.substr(0, name.rfind("_avx"));
  for (const Kernel* k : portable::all)
    if (k->op == kernel.op && own == k->name) return k;
  return nullptr;
}

/// Ordinary numbers, and at the front those that formulas stumble over.
Array arguments(index_t n, uint32_t seed) {
  Array a = Array::random({n}, seed);
  const float special[] = {0.0f,   -0.0f, 1e-40f, -1e-40f, INFINITY, -INFINITY, NAN,  1e30f,
                           -1e30f, 88.5f, -88.5f, 700.0f,  1e6f,     -1e6f,     0.5f, 600000.0f};
  for (index_t i = 0; i < n; ++i) a[i] = i < 16 && n > 40 ? special[i] : a[i] * 20;
  return a;
}

bool is_elementary(const Kernel& kernel) {
  for (const Operator* op :
       {&ops::exp,          &ops::log,     &ops::sin,       &ops::cos,           &ops::erf,
        &ops::tanh,         &ops::sigmoid, &ops::silu,      &ops::silu_backward, &ops::_softmax,
        &ops::_log_softmax, &ops::exp2,    &ops::expm1,     &ops::log2,          &ops::log10,
        &ops::log1p,        &ops::atanh,   &ops::tan,       &ops::atan,          &ops::asin,
        &ops::acos,         &ops::erfc,    &ops::erfinv,    &ops::lgamma,        &ops::special_i1e,
        &ops::atan2,        &ops::hypot,   &ops::logaddexp, &ops::logaddexp2})
    if (kernel.op == op) return true;
  return false;
}

/// Equal, or as near as roundings in another place leave elementary functions.
bool agree(float a, float b, bool elementary) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  return elementary && std::fabs(a - b) <= 1e-6f * std::fabs(b) + 3e-8f;
}

TEST(wide_records, agree_with_the_portable_ones) {
  const CpuFeatures cpu = cpu_features();
  int unary = 0, binary = 0;
  for (const Kernel* kernel : optimized::all) {
    const Kernel* twin = portable_twin(*kernel);
    if (kernel->needs == CpuFeatures() || !cpu.has(kernel->needs) || twin == nullptr) continue;
    // those that take one or two f32 tensors and nothing else
    int tensors = 0;
    bool plain = true;
    for (int i = 0; i + 1 < kernel->expected_count; ++i) {
      const Expected& e = kernel->expected[i];
      plain =
          plain && e.kind == Kind::tensor && !e.list && !e.optional && e.dtypes == one(DType::f32);
      ++tensors;
    }
    if (!plain || tensors < 1 || tensors > 2 || kernel->result_count != 1 ||
        kernel->expected[tensors].dtypes != one(DType::f32) || kernel->op == &ops::mm ||
        kernel->op == &ops::bmm || kernel->op == &ops::linalg_matrix_exp ||
        kernel->op == &ops::max || kernel->op == &ops::min)
      continue;
    (tensors == 1 ? unary : binary) += 1;
    for (const index_t n : {0, 1, 15, 16, 17, 63, 300, 1001}) {
      const Array a = arguments(n, 1), b = arguments(n, 2);
      Array wide({n}, 7), narrow({n}, 8);
      std::vector<Slot> slots = {slot(a)};
      if (tensors == 2) slots.push_back(slot(b));
      slots.push_back(slot(wide));
      call(*kernel, slots);
      slots.back() = slot(narrow);
      call(*twin, slots);
      for (index_t i = 0; i < n; ++i)
        ASSERT_TRUE(agree(wide[i], narrow[i], is_elementary(*kernel)))
            << kernel->name << " of " << a[i] << ": " << wide[i] << ", not " << narrow[i];
    }
  }
  if (cpu.has(CpuFeature::avx2)) {
    EXPECT_GE(unary, 15);
    EXPECT_GE(binary, 5);
  }
}

TEST(wide_records, of_softmax_and_reductions_agree_with_the_portable_ones) {
  const CpuFeatures cpu = cpu_features();
  int found = 0;
  for (const Kernel* kernel : optimized::all) {
    const Kernel* twin = portable_twin(*kernel);
    if (kernel->needs == CpuFeatures() || !cpu.has(kernel->needs) || twin == nullptr) continue;
    const bool softmax = kernel->op == &ops::_softmax || kernel->op == &ops::_log_softmax;
    const bool extreme = kernel->op == &ops::amax || kernel->op == &ops::amin;
    if ((!softmax && !extreme) || kernel->expected[0].dtypes == one(DType::i64)) continue;
    ++found;
    for (const index_t width : {1, 5, 16, 197, 530})
      for (const int64_t dim : {0, 1}) {
        const Array x = Array::random({37, width}, 3);
        const std::vector<int64_t> dims = {dim};
        const std::vector<index_t> sizes = softmax    ? std::vector<index_t>{37, width}
                                           : dim == 0 ? std::vector<index_t>{width}
                                                      : std::vector<index_t>{37};
        Array wide(sizes, 7), narrow(sizes, 8);
        const auto run = [&](const Kernel& k, const Array& out) {
          if (softmax)
            call(k, {slot(x), slot(dim), slot(false), slot(out)});
          else
            call(k, {slot(x), slot(dims), slot(false), slot(out)});
        };
        run(*kernel, wide), run(*twin, narrow);
        for (index_t i = 0; i < wide.numel(); ++i)
          ASSERT_TRUE(agree(wide[i], narrow[i], softmax))
              << kernel->name << " " << width << " " << dim << " at " << i;
      }
  }
  if (cpu.has(CpuFeature::avx2)) {
    EXPECT_GE(found, 4);
  }
}

TEST(wide_records, of_casts_have_the_portable_bits) {
  const CpuFeatures cpu = cpu_features();
  // every f16, f32 of all exponents, and integers around what f32 holds
  constexpr index_t n = 65536 + 13;
  const Shape shape = Shape::dense(std::vector<index_t>{n});
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::mt19937_64 engine(5);
  int found = 0;
  for (const Kernel* kernel : optimized::all) {
    if (kernel->op != &ops::_to_copy || !cpu.has(kernel->needs)) continue;
    ++found;
    const auto dtype_of = [](DTypeSet set) {
      int d = 0;
      while (one(static_cast<DType>(d)) != set) ++d;
      return static_cast<DType>(d);
    };
    const DType from = dtype_of(kernel->expected[0].dtypes),
                to = dtype_of(kernel->expected[kernel->expected_count - 1].dtypes);
    uint32_t pattern = 0;
    for (index_t i = 0; i < n; ++i, pattern += 65519) {
      std::byte* at = reinterpret_cast<std::byte*>(values.data()) + i * size_bytes(from);
      const int64_t integer = static_cast<int64_t>(engine()) >> (i % 64);
      const double real = std::ldexp(static_cast<double>(integer), static_cast<int>(i % 100) - 80);
      if (from == DType::boolean)
        *at = static_cast<std::byte>(i % 3 == 0);
      else if (from == DType::f64)
        std::memcpy(at, &real, 8);
      else if (from == DType::f32)
        std::memcpy(at, &pattern, 4);
      else if (size_bytes(from) == 2)
        std::memcpy(at, &i, 2);
      else
        std::memcpy(at, &integer, static_cast<size_t>(size_bytes(from)));
    }
    std::vector<int64_t> wide(values.size()), narrow(values.size());
    const TensorRef x{values.data(), &shape, from}, y{wide.data(), &shape, to},
        z{narrow.data(), &shape, to};
    Slot dtype = slot(static_cast<int64_t>(to));
    dtype.kind = Kind::dtype;
    call(*kernel, {slot(&x), dtype, slot(&y)});
    call(portable::_to_copy_any, {slot(&x), dtype, slot(&z)});
    EXPECT_EQ(std::memcmp(wide.data(), narrow.data(), static_cast<size_t>(n * size_bytes(to))), 0)
        << kernel->name;
  }
  if (cpu.has(CpuFeature::avx2)) {
    EXPECT_GE(found, 16);
  }
}

TEST(wide_records, of_layer_norm_have_the_portable_bits) {
  for (const Kernel* kernel : kernels_of(ops::native_layer_norm))
    for (const index_t width : {1, 7, 16, 100, 771}) {
      const Array x = Array::random({9, width}, 3), w = Array::random({width}, 4),
                  b = Array::random({width}, 5);
      Array results[2][3];
      const Kernel* const records[] = {kernel, portable_twin(*kernel)};
      for (int k : {0, 1}) {
        auto& [y, mean, rstd] = results[k];
        y = Array({9, width}), mean = Array({9, 1}), rstd = Array({9, 1});
        call(*records[k], {slot(x), slot(std::vector<int64_t>{width}), slot(w), slot(b), slot(1e-5),
                           slot(y), slot(mean), slot(rstd)});
      }
      for (int r = 0; r < 3; ++r)
        EXPECT_EQ(results[0][r].values(), results[1][r].values()) << kernel->name << " " << width;
    }
}

TEST(wide_records, of_rms_norm_have_the_portable_bits_with_any_threads) {
  const ThreadPool pool(3);
  for (const Kernel* kernel : kernels_of(ops::_fused_rms_norm))
    for (const index_t width : {1, 7, 16, 100, 128, 129, 771, 2048})
      for (const bool weighted : {false, true}) {
        const Array x = Array::random({37, width}, 3), w = Array::random({width}, 4);
        Array y[2], rstd[2];
        const Kernel* const records[] = {kernel, portable_twin(*kernel)};
        for (int k : {0, 1}) {
          y[k] = Array({37, width}), rstd[k] = Array({37, 1});
          call(*records[k],
               {slot(x), slot(std::vector<int64_t>{width}), weighted ? slot(w) : absent(),
                slot(1e-6), slot(y[k]), slot(rstd[k])},
               k == 0 ? pool.threads() : nullptr);
        }
        EXPECT_EQ(y[0].values(), y[1].values()) << kernel->name << " " << width;
        EXPECT_EQ(rstd[0].values(), rstd[1].values()) << kernel->name << " " << width;
      }
}

TEST(wide_records, of_group_norm_have_the_portable_bits) {
  for (const Kernel* kernel : kernels_of(ops::native_group_norm))
    for (const index_t plane : {1, 7, 16, 131}) {
      const Array x = Array::random({2, 6, plane}, 3), w = Array::random({6}, 4),
                  b = Array::random({6}, 5);
      Array results[2][3];
      const Kernel* const records[] = {kernel, portable_twin(*kernel)};
      for (int k : {0, 1}) {
        auto& [y, mean, rstd] = results[k];
        y = Array({2, 6, plane}), mean = Array({2, 3}), rstd = Array({2, 3});
        call(*records[k],
             {slot(x), slot(w), slot(b), slot(int64_t{2}), slot(int64_t{6}), slot(int64_t{plane}),
              slot(int64_t{3}), slot(1e-5), slot(y), slot(mean), slot(rstd)});
      }
      for (int r = 0; r < 3; ++r)
        EXPECT_EQ(results[0][r].values(), results[1][r].values()) << kernel->name << " " << plane;
    }
}

// ---- chains of pointwise operators ----

/// The record that a machine of this level takes for f32.
const Kernel* record_at(const Operator& op, CpuLevel level) {
  const CpuFeatures wanted = features_of(level);
  const Kernel* found = nullptr;
  for (const Kernel* const* all : {std::begin(optimized::all), std::begin(portable::all)})
    for (const Kernel* const* k = all; found == nullptr || found->needs != wanted; ++k) {
      if (k == std::end(optimized::all) || k == std::end(portable::all)) break;
      if ((*k)->op == &op && (*k)->expected[0].dtypes == one(DType::f32) &&
          ((*k)->needs == wanted || (found == nullptr && (*k)->needs == CpuFeatures())))
        found = *k;
    }
  return found;
}

Slot text(const char* value) {
  Slot s{};
  s.text = value, s.size = static_cast<uint32_t>(std::strlen(value)), s.kind = Kind::string,
  s.present = true;
  return s;
}

TEST(fused_chains, have_the_bits_of_the_single_operators_of_their_level) {
  const CpuFeatures cpu = cpu_features();
  const index_t n = 1001;
  const Array a = arguments(n, 1), b = arguments(n, 2);
  struct Step {
    PointwiseOp code;
    const Operator& op;
    std::vector<Slot> arguments;
  };
  const std::vector<Step> steps = {
      {PointwiseOp::add, ops::add_Tensor, {slot(a), slot(b), slot(int64_t{1})}},
      {PointwiseOp::sub, ops::sub_Tensor, {slot(a), slot(b), slot(int64_t{1})}},
      {PointwiseOp::mul, ops::mul_Tensor, {slot(a), slot(b)}},
      {PointwiseOp::div, ops::div_Tensor, {slot(a), slot(b)}},
      {PointwiseOp::maximum, ops::maximum, {slot(a), slot(b)}},
      {PointwiseOp::minimum, ops::minimum, {slot(a), slot(b)}},
      {PointwiseOp::neg, ops::neg, {slot(a)}},
      {PointwiseOp::abs, ops::abs, {slot(a)}},
      {PointwiseOp::relu, ops::relu, {slot(a)}},
      {PointwiseOp::sqrt, ops::sqrt, {slot(a)}},
      {PointwiseOp::rsqrt, ops::rsqrt, {slot(a)}},
      {PointwiseOp::reciprocal, ops::reciprocal, {slot(a)}},
      {PointwiseOp::exp, ops::exp, {slot(a)}},
      {PointwiseOp::log, ops::log, {slot(a)}},
      {PointwiseOp::sin, ops::sin, {slot(a)}},
      {PointwiseOp::cos, ops::cos, {slot(a)}},
      {PointwiseOp::tanh, ops::tanh, {slot(a)}},
      {PointwiseOp::sigmoid, ops::sigmoid, {slot(a)}},
      {PointwiseOp::erf, ops::erf, {slot(a)}},
      {PointwiseOp::gelu, ops::gelu, {slot(a), text("none")}},
      {PointwiseOp::gelu_tanh, ops::gelu, {slot(a), text("tanh")}},
      {PointwiseOp::silu, ops::silu, {slot(a)}},
      {PointwiseOp::threshold_backward, ops::threshold_backward, {slot(a), slot(b), slot(0.5)}},
      {PointwiseOp::sigmoid_backward, ops::sigmoid_backward, {slot(a), slot(b)}},
      {PointwiseOp::tanh_backward, ops::tanh_backward, {slot(a), slot(b)}},
      {PointwiseOp::gelu_backward, ops::gelu_backward, {slot(a), slot(b), text("none")}},
      {PointwiseOp::gelu_tanh_backward, ops::gelu_backward, {slot(a), slot(b), text("tanh")}},
      {PointwiseOp::pow, ops::pow_Tensor_Scalar, {slot(a), slot(0.5)}},
      {PointwiseOp::hardtanh, ops::hardtanh, {slot(a), slot(0.5), slot(1.5)}},
      {PointwiseOp::leaky_relu, ops::leaky_relu, {slot(a), slot(0.5)}},
      {PointwiseOp::hardswish, ops::hardswish, {slot(a)}},
      {PointwiseOp::hardsigmoid, ops::hardsigmoid, {slot(a)}},
  };
  ASSERT_EQ(steps.size(), static_cast<size_t>(pointwise_op_count));
  for (const CpuLevel level : {CpuLevel::portable, CpuLevel::avx2, CpuLevel::avx512}) {
    if (!cpu.has(features_of(level))) continue;
    const Kernel* chain = record_at(ops::taper_pointwise, level);
    ASSERT_NE(chain, nullptr);
    EXPECT_TRUE(chain->needs == features_of(level));
    for (const Step& step : steps) {
      const Kernel* single = record_at(step.op, level);
      ASSERT_NE(single, nullptr);
      std::vector<int64_t> program = {static_cast<int64_t>(step.code), 0, 0, 1, 0};
      switch (step.code) {  // those that take numbers
        case PointwiseOp::hardtanh:
          program[3] = -1, program[4] = -2;
          break;
        case PointwiseOp::threshold_backward:
          program[4] = -1;
          break;
        case PointwiseOp::pow:
        case PointwiseOp::leaky_relu:
          program[3] = -1;
          break;
        default:
          break;
      }
      const double numbers[] = {0.5, 1.5};
      const TensorRef* const inputs[] = {a.ref(), b.ref()};
      Slot list{}, constants{};
      list.tensors = inputs, list.size = 2, list.kind = Kind::tensor, list.present = true;
      constants.reals = numbers, constants.size = 2, constants.kind = Kind::real,
      constants.present = true;
      Array fused({n}, 7), alone({n}, 8);
      call(*chain, {list, slot(program), constants, slot(fused)});
      std::vector<Slot> slots = step.arguments;
      slots.push_back(slot(alone));
      call(*single, slots);
      for (index_t i = 0; i < n; ++i)
        ASSERT_TRUE(agree(fused[i], alone[i], false))
            << chain->name << ", " << single->name << " of " << a[i] << ", " << b[i] << ": "
            << fused[i] << ", not " << alone[i];
    }
  }
}

}  // namespace
}  // namespace taper::tests
