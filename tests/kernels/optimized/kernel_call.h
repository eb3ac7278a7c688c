// Calls a kernel record as eager and the runtime do: rule, prepare, scratch, run.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "taper/kernels/optimized/optimized.h"
#include "taper/runtime/platform/cpu_request.h"

namespace taper::tests {

/// A dense f32 tensor with the 64 readable bytes behind it that kernels may count on. `view` gives
/// other strides.
class Array {
 public:
  Array() = default;
  explicit Array(std::vector<index_t> sizes, float value = 0)
      : values_(size_of(sizes) + 16, value) {
    shape_ = std::make_unique<Shape>(Shape::dense(sizes));
    ref_ = std::make_unique<TensorRef>(TensorRef{values_.data(), shape_.get(), DType::f32});
  }
  static Array random(std::vector<index_t> sizes, uint32_t seed) {
    Array a(std::move(sizes));
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> distribution(-1, 1);
    for (index_t i = 0; i < a.numel(); ++i) a[i] = distribution(engine);
    return a;
  }
  index_t numel() const { return shape_->numel(); }
  index_t size(int i) const { return shape_->sizes[i]; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  float& operator[](index_t i) { return values_[static_cast<size_t>(i)]; }
  float operator[](index_t i) const { return values_[static_cast<size_t>(i)]; }
  Shape& shape() { return *shape_; }
  const TensorRef* ref() const { return ref_.get(); }
  std::vector<float> values() const { return {values_.begin(), values_.begin() + numel()}; }

 private:
  static size_t size_of(const std::vector<index_t>& sizes) {
    index_t n = 1;
    for (index_t s : sizes) n *= s;
    return static_cast<size_t>(n);
  }
  std::vector<float> values_;
  std::unique_ptr<Shape> shape_;
  std::unique_ptr<TensorRef> ref_;
};

inline Slot slot(const TensorRef* ref) {
  Slot s{};
  s.tensor = ref, s.kind = Kind::tensor, s.present = ref != nullptr;
  return s;
}
inline Slot slot(const Array& a) { return slot(a.ref()); }
inline Slot absent() { return slot(static_cast<const TensorRef*>(nullptr)); }
inline Slot slot(int64_t value) {
  Slot s{};
  s.integer = value, s.kind = Kind::integer, s.present = true;
  return s;
}
inline Slot slot(bool value) {
  Slot s = slot(int64_t{value});
  s.kind = Kind::boolean;
  return s;
}
inline Slot slot(double value) {
  Slot s{};
  s.real = value, s.kind = Kind::real, s.present = true;
  return s;
}
inline Slot slot(const std::vector<int64_t>& values) {
  Slot s{};
  s.integers = values.data(), s.size = static_cast<uint32_t>(values.size()), s.kind = Kind::integer,
  s.present = true;
  return s;
}

inline Slot absent_list() {
  Slot s{};
  s.kind = Kind::integer;
  return s;
}

/// Runs `kernel`; scratch is full of NaN, so that nobody relies on its content.
inline void call(const Kernel& kernel, const std::vector<Slot>& slots,
                 const Threads* threads = nullptr) {
  ASSERT_EQ(slots.size(), kernel.expected_count);
  Facts<Extent> facts;
  TensorType<Extent> results[5];
  ASSERT_TRUE(kernel.shape(facts, slots.data(), results)) << kernel.name << ": " << facts.message;
  alignas(8) std::byte plan[max_plan_bytes];
  Context context;
  context.threads = threads;
  if (kernel.prepare != nullptr) {
    ASSERT_EQ(kernel.prepare(context, plan, slots.data()), Error::ok);
  }
  const size_t bytes = (context.scratch_bytes + 63) / 64 * 64 + 64;
  const std::unique_ptr<void, decltype(&std::free)> scratch(std::aligned_alloc(64, bytes),
                                                            &std::free);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    static_cast<float*>(scratch.get())[i] = std::numeric_limits<float>::quiet_NaN();
  context.scratch = scratch.get();
  ASSERT_EQ(kernel.run(context, plan, slots.data()), Error::ok);
}

/// The features whose kernels this program can run: the processor's, and tiles if they are
/// emulated.
inline CpuFeatures features_to_run() {
  const CpuFeatures cpu = request_cpu_features();
#ifdef TAPER_TILE_REGISTERS
  if (cpu.has(CpuFeature::avx512)) return cpu | CpuFeature::amx_int8;
#endif
  return cpu;
}

/// The records of an operator over a dtype that this machine can run, one for each set of features.
inline std::vector<const Kernel*> kernels_of(const Operator& op, DType dtype = DType::f32) {
  const CpuFeatures cpu = features_to_run();
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : optimized::all)
    if (kernel->op == &op && cpu.has(kernel->needs) &&
        (kernel->expected[0].dtypes & one(dtype)) != 0)
      found.push_back(kernel);
  return found;
}

/// The same of any library, whatever the dtype.
inline std::vector<const Kernel*> kernels_of(KernelSet library, const Operator& op) {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : library)
    if (kernel->op == &op && features_to_run().has(kernel->needs)) found.push_back(kernel);
  return found;
}

inline bool same_bits(const Array& a, const Array& b) {
  return a.numel() == b.numel() &&
         (a.numel() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<size_t>(a.numel()) * sizeof(float)) == 0);
}

/// Every element within `tolerance` times the sum of the magnitudes that went into it.
inline void expect_near(const Array& got, const std::vector<double>& want,
                        const std::vector<double>& magnitude, const char* name,
                        double tolerance = 2e-6) {
  ASSERT_EQ(static_cast<size_t>(got.numel()), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[static_cast<index_t>(i)], want[i], tolerance * magnitude[i] + 1e-30)
        << name << " at " << i;
}

}  // namespace taper::tests
