#include <array>
#include <cmath>

#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

struct Reference {
  std::vector<double> value, magnitude;
};
Reference product(const Array& a, const Array& b, index_t m, index_t k, index_t n) {
  Reference r{std::vector<double>(static_cast<size_t>(m * n)),
              std::vector<double>(static_cast<size_t>(m * n))};
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      for (index_t p = 0; p < k; ++p) {
        const double term = double(a[i * k + p]) * b[p * n + j];
        r.value[static_cast<size_t>(i * n + j)] += term,
            r.magnitude[static_cast<size_t>(i * n + j)] += std::abs(term);
      }
  return r;
}

// The same values with the two dimensions' strides exchanged.
Array transposed(const Array& a) {
  const index_t rows = a.size(0), columns = a.size(1);
  Array t({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  t.shape().strides[0] = 1, t.shape().strides[1] = rows;
  return t;
}

// The same values, every element `gap` apart and rows further apart than they are long.
Array spread(const Array& a, index_t gap) {
  const index_t rows = a.size(0), columns = a.size(1), row = columns * gap + 5;
  Array s({rows, row});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) s[i * row + j * gap] = a[i * columns + j];
  s.shape().sizes[1] = columns, s.shape().strides[0] = row, s.shape().strides[1] = gap;
  return s;
}

Array mm(const Kernel& kernel, const Array& a, const Array& b, const Threads* threads = nullptr) {
  Array out({a.size(0), b.size(1)}, 77);
  call(kernel, {slot(a), slot(b), slot(out)}, threads);
  return out;
}

TEST(mm, has_a_record_for_every_level_of_this_machine) {
  const CpuFeatures cpu = cpu_features();
  for (const Operator* op : {&ops::mm, &ops::bmm, &ops::addmm, &ops::baddbmm, &ops::linear,
                             &ops::_grouped_mm, &ops::convolution, &ops::convolution_backward}) {
    const bool pairs = op == &ops::linear && cpu.has(CpuFeature::avx512_bf16);  // of weights
    const size_t levels = 1u + cpu.has(CpuFeature::avx2) + cpu.has(CpuFeature::avx512) + pairs;
    const std::vector<const Kernel*> kernels = kernels_of(*op);
    EXPECT_EQ(kernels.size(), levels) << op->identifier;
    for (size_t i = 1; i < kernels.size(); ++i)
      EXPECT_TRUE(kernels[i - 1]->needs.has(kernels[i]->needs)) << "the fastest comes first";
  }
  // products of bf16 have one more level
  for (const Operator* op : {&ops::mm, &ops::bmm, &ops::addmm, &ops::baddbmm, &ops::linear})
    EXPECT_EQ(kernels_of(*op, DType::bf16).front()->needs.has(CpuFeature::avx512_bf16),
              cpu.has(CpuFeature::avx512_bf16))
        << op->identifier;
}

TEST(mm, is_the_product_at_every_level_and_size) {
  const index_t sizes[][3] = {{1, 1, 1},     {0, 4, 5},      {4, 0, 5},     {4, 5, 0},
                              {7, 3, 2},     {12, 16, 32},   {13, 17, 33},  {5, 256, 16},
                              {31, 257, 47}, {64, 400, 120}, {1, 700, 129}, {129, 513, 1},
                              {70, 64, 300}, {530, 40, 70}};
  for (const Kernel* kernel : kernels_of(ops::mm))
    for (const auto& [m, k, n] : sizes) {
      const Array a = Array::random({m, k}, 1), b = Array::random({k, n}, 2);
      const Reference want = product(a, b, m, k, n);
      expect_near(mm(*kernel, a, b), want.value, want.magnitude, kernel->name);
    }
}

TEST(mm, does_not_depend_on_strides) {
  for (const Kernel* kernel : kernels_of(ops::mm))
    for (const auto& [m, k, n] : {std::array<index_t, 3>{1, 300, 40},
                                  {2, 35, 7},
                                  {3, 513, 17},
                                  {4, 256, 16},
                                  {37, 270, 75},
                                  {64, 64, 64}}) {
      const Array a = Array::random({m, k}, 3), b = Array::random({k, n}, 4);
      const std::vector<float> want = mm(*kernel, a, b).values();
      EXPECT_EQ(mm(*kernel, transposed(a), b).values(), want);
      EXPECT_EQ(mm(*kernel, a, transposed(b)).values(), want);
      EXPECT_EQ(mm(*kernel, transposed(a), transposed(b)).values(), want);
      EXPECT_EQ(mm(*kernel, spread(a, 1), spread(b, 1)).values(), want);
      EXPECT_EQ(mm(*kernel, spread(a, 3), spread(b, 2)).values(), want);
    }
}

TEST(mm, does_not_depend_on_alignment) {
  const index_t m = 14, k = 50, n = 45;
  for (const Kernel* kernel : kernels_of(ops::mm)) {
    const Array a = Array::random({m, k}, 5), b = Array::random({k, n}, 6);
    const std::vector<float> want = mm(*kernel, a, b).values();
    Array storage({k * n + 1});
    for (index_t i = 0; i < k * n; ++i) storage[i + 1] = b[i];
    const TensorRef shifted{storage.data() + 1, b.ref()->shape, DType::f32};
    Array out({m, n});
    call(*kernel, {slot(a), slot(&shifted), slot(out)});
    EXPECT_EQ(out.values(), want);
  }
}

TEST(mm, gives_a_row_the_same_bits_whatever_the_number_of_rows_and_threads) {
  const index_t most = 70, k = 600, n = 300;
  const Array all = Array::random({most, k}, 7), b = Array::random({k, n}, 8);
  ThreadPool two(2), four(4);
  for (const Kernel* kernel : kernels_of(ops::mm)) {
    const std::vector<float> want = mm(*kernel, all, b).values();
    for (index_t m = 1; m <= most; ++m) {
      Array a({m, k});
      for (index_t i = 0; i < m * k; ++i) a[i] = all[i];
      const std::vector<float> got =
          mm(*kernel, a, b, m % 16 == 0 ? two.threads() : nullptr).values();
      EXPECT_EQ(got, std::vector<float>(want.begin(), want.begin() + m * n))
          << kernel->name << " with " << m << " rows";
      if (m >= 7) continue;
      EXPECT_EQ(mm(*kernel, a, transposed(b), m % 2 == 0 ? two.threads() : nullptr).values(), got)
          << kernel->name << " with " << m << " rows, columns of b dense";
    }
    for (const ThreadPool* pool : {&two, &four})
      EXPECT_EQ(mm(*kernel, all, b, pool->threads()).values(), want) << pool->count() << " threads";
  }
}

TEST(mm, gives_a_row_the_same_bits_whatever_its_neighbours) {
  const index_t m = 29, k = 90, n = 33;
  for (const Kernel* kernel : kernels_of(ops::mm)) {
    Array a = Array::random({m, k}, 9);
    const Array b = Array::random({k, n}, 10);
    const std::vector<float> want = mm(*kernel, a, b).values();
    for (index_t i = 0; i < m * k; ++i)
      if (i / k != 17) a[i] = std::numeric_limits<float>::infinity();
    const std::vector<float> got = mm(*kernel, a, b).values();
    for (size_t j = 0; j < size_t(n); ++j)
      EXPECT_EQ(got[17 * size_t(n) + j], want[17 * size_t(n) + j]);
  }
}

TEST(mm, keeps_bits_when_prepared_for_other_threads) {
  const index_t m = 200, k = 300, n = 260;
  const Array a = Array::random({m, k}, 11), b = Array::random({k, n}, 12);
  ThreadPool four(4);
  for (const Kernel* kernel : kernels_of(ops::mm)) {
    const std::vector<float> want = mm(*kernel, a, b).values();
    Array out({m, n});
    const std::vector<Slot> slots{slot(a), slot(b), slot(out)};
    alignas(8) std::byte plan[max_plan_bytes];
    Context context;
    ASSERT_EQ(kernel->prepare(context, plan, slots.data()), Error::ok);  // for one
    std::vector<std::byte> memory(context.scratch_bytes + 64);
    context.scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    context.threads = four.threads();
    ASSERT_EQ(kernel->run(context, plan, slots.data()), Error::ok);
    EXPECT_EQ(out.values(), want);
  }
}

TEST(bmm, is_mm_of_each_matrix) {
  const index_t batch = 6, m = 19, k = 64, n = 40;
  ThreadPool pool(2);
  const std::vector<const Kernel*> mms = kernels_of(ops::mm), bmms = kernels_of(ops::bmm);
  for (size_t level = 0; level < bmms.size(); ++level) {
    const Array a = Array::random({batch, m, k}, 13), b = Array::random({batch, k, n}, 14);
    Array out({batch, m, n});
    call(*bmms[level], {slot(a), slot(b), slot(out)}, pool.threads());
    for (index_t i = 0; i < batch; ++i) {
      Array ai({m, k}), bi({k, n});
      for (index_t e = 0; e < m * k; ++e) ai[e] = a[i * m * k + e];
      for (index_t e = 0; e < k * n; ++e) bi[e] = b[i * k * n + e];
      const std::vector<float> want = mm(*mms[level], ai, bi).values();
      EXPECT_TRUE(std::equal(want.begin(), want.end(), out.data() + i * m * n));
    }
  }
}

TEST(addmm, adds_what_broadcasts_to_the_product) {
  const index_t m = 23, k = 31, n = 37;
  const Array a = Array::random({m, k}, 15), b = Array::random({k, n}, 16);
  const Array row = Array::random({n}, 17), column = Array::random({m, 1}, 18),
              one = Array::random({1}, 19), full = Array::random({m, n}, 20);
  Reference want = product(a, b, m, k, n);
  for (const Kernel* kernel : kernels_of(ops::addmm)) {
    const auto check = [&](const Array& self, auto value) {
      Array out({m, n});
      call(*kernel, {slot(self), slot(a), slot(b), slot(0.5), slot(-2.0), slot(out)});
      std::vector<double> sums;
      for (index_t i = 0; i < m * n; ++i)
        sums.push_back(-2 * want.value[size_t(i)] + 0.5 * value(i));
      std::vector<double> magnitude = want.magnitude;
      for (double& x : magnitude) x = 2 * x + 1;
      expect_near(out, sums, magnitude, kernel->name);
    };
    check(row, [&](index_t i) { return row[i % n]; });
    check(column, [&](index_t i) { return column[i / n]; });
    check(one, [&](index_t) { return one[0]; });
    check(full, [&](index_t i) { return full[i]; });
    check(transposed(full), [&](index_t i) { return full[i]; });
  }
}

TEST(addmm, ignores_self_where_beta_is_zero) {
  const Array a = Array::random({3, 4}, 21), b = Array::random({4, 5}, 22);
  const Array self({3, 5}, std::numeric_limits<float>::quiet_NaN());
  for (const Kernel* kernel : kernels_of(ops::addmm)) {
    Array out({3, 5});
    call(*kernel, {slot(self), slot(a), slot(b), slot(int64_t{0}), slot(int64_t{1}), slot(out)});
    for (float x : out.values()) EXPECT_FALSE(std::isnan(x));
  }
}

TEST(baddbmm, adds_a_matrix_that_all_share) {
  const index_t batch = 3, m = 8, k = 20, n = 18;
  const Array a = Array::random({batch, m, k}, 23), b = Array::random({batch, k, n}, 24),
              self = Array::random({m, n}, 25);
  for (const Kernel* kernel : kernels_of(ops::baddbmm)) {
    Array out({batch, m, n}), plain({batch, m, n});
    call(*kernel, {slot(self), slot(a), slot(b), slot(int64_t{1}), slot(int64_t{1}), slot(out)});
    call(*kernel, {slot(self), slot(a), slot(b), slot(int64_t{0}), slot(int64_t{1}), slot(plain)});
    for (index_t i = 0; i < out.numel(); ++i) EXPECT_EQ(out[i], plain[i] + self[i % (m * n)]);
  }
}

TEST(linear, is_the_input_times_the_transposed_weight_plus_bias) {
  const index_t k = 75, n = 41;
  const Array x = Array::random({2, 5, k}, 26), w = Array::random({n, k}, 27),
              bias = Array::random({n}, 28);
  Array rows = Array::random({10, k}, 26);
  const Array wt = transposed(w);
  Array w_as_b({k, n});
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < n; ++j) w_as_b[i * n + j] = w[j * k + i];
  const std::vector<const Kernel*> mms = kernels_of(ops::mm);
  std::vector<const Kernel*> linears = kernels_of(ops::linear);
  if (linears.size() > mms.size()) linears.erase(linears.begin());  // for weights in bf16
  for (size_t level = 0; level < linears.size(); ++level) {
    Array out({2, 5, n}), without({2, 5, n}), with_strided({2, 5, n});
    call(*linears[level], {slot(x), slot(w), slot(bias), slot(out)});
    call(*linears[level], {slot(x), slot(w), absent(), slot(without)});
    call(*linears[level], {slot(x), slot(wt), slot(bias), slot(with_strided)});
    const std::vector<float> want = mm(*mms[level], rows, w_as_b).values();
    EXPECT_EQ(without.values(), want);
    EXPECT_EQ(with_strided.values(), out.values());
    for (index_t i = 0; i < out.numel(); ++i) EXPECT_EQ(out[i], want[size_t(i)] + bias[i % n]);
  }
}

TEST(linear, takes_a_weight_of_one_dimension) {
  const Array x = Array::random({3, 9}, 29), w = Array::random({9}, 30), bias({}, 2);
  for (const Kernel* kernel : kernels_of(ops::linear)) {
    Array out({3});
    call(*kernel, {slot(x), slot(w), slot(bias), slot(out)});
    for (index_t i = 0; i < 3; ++i) {
      double want = 2;
      for (index_t j = 0; j < 9; ++j) want += double(x[i * 9 + j]) * w[j];
      EXPECT_NEAR(out[i], want, 1e-5);
    }
  }
}

}  // namespace
}  // namespace taper::tests
