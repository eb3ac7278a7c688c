// Resizing, softmax and products of two activations: every record that this machine can run,
// against their definition.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/quantized/bytes.h"

namespace taper::quantized {
namespace {

using tests::slot;

int8_t rounded(float y, int64_t zero_point, const std::vector<int64_t>& range) {
  const float q = std::nearbyint(y) + static_cast<float>(zero_point);
  return static_cast<int8_t>(
      std::min(std::max(q, static_cast<float>(range[0])), static_cast<float>(range[1])));
}

// ---- bmm_q8

struct Product {
  index_t batch, rows, depth, columns;
  int64_t self_zero, mat2_zero;
  bool turned;  ///< mat2 is seen with its last two dimensions exchanged
};

void expect_product(const Product& p, const Threads* threads, int extreme = 0) {
  std::mt19937 engine(static_cast<uint32_t>(p.rows * 7 + p.depth));
  const double self_scale = 0.03, mat2_scale = 0.02, output_scale = 0.9;
  const std::vector<int64_t> range{-120, 127};
  Bytes a({p.batch, p.rows, p.depth}), b({p.batch, p.depth, p.columns});
  fill(a, engine), fill(b, engine);
  if (extreme != 0)
    for (Bytes* t : {&a, &b})
      for (index_t i = 0; i < t->numel(); ++i) (*t)[i] = static_cast<int8_t>(extreme);
  Shape shape = *b.ref()->shape;
  if (p.turned) {
    shape.strides[1] = 1, shape.strides[2] = p.depth;
    shape.strides[0] = p.depth * p.columns;
  }
  TensorRef mat2 = *b.ref();
  mat2.shape = &shape;
  std::vector<int8_t> want;
  const float scale = static_cast<float>(self_scale) * static_cast<float>(mat2_scale) /
                      static_cast<float>(output_scale);
  for (index_t i = 0; i < p.batch; ++i)
    for (index_t r = 0; r < p.rows; ++r)
      for (index_t c = 0; c < p.columns; ++c) {
        int32_t sum = 0;
        for (index_t k = 0; k < p.depth; ++k)
          sum += (a[(i * p.rows + r) * p.depth + k] - static_cast<int>(p.self_zero)) *
                 (b[i * shape.strides[0] + k * shape.strides[1] + c * shape.strides[2]] -
                  static_cast<int>(p.mat2_zero));
        want.push_back(rounded(static_cast<float>(sum) * scale, 3, range));
      }
  for (const Kernel* k : tests::kernels_of(all, ops::taper_bmm_q8)) {
    SCOPED_TRACE(k->name);
    Bytes y({p.batch, p.rows, p.columns}, 99);
    tests::call(
        *k,
        {slot(a.ref()), slot(&mat2), slot(self_scale), slot(p.self_zero), slot(mat2_scale),
         slot(p.mat2_zero), slot(output_scale), slot(int64_t{3}), slot(range), slot(y.ref())},
        threads);
    ASSERT_EQ(y.values(), want);
    ASSERT_TRUE(y.is_guarded());
  }
}

TEST(bmm_q8, gives_the_integers_of_its_definition_on_every_level) {
  ThreadPool pool(2);
  const Product cases[] = {
      {3, 5, 7, 18, 6, 0, false},     {2, 61, 8, 5, -128, -128, false},
      {1, 130, 31, 33, 3, 17, false}, {4, 7, 64, 97, 127, 127, true},
      {2, 66, 13, 70, 0, -128, true}, {1, 1, 1, 1, 5, -5, false},
      {2, 3, 0, 4, 1, 2, false},      {0, 3, 4, 4, 1, 2, false},
      {2, 0, 4, 4, 1, 2, false},
  };
  for (const Product& p : cases) {
    SCOPED_TRACE(::testing::Message() << p.rows << " x " << p.depth << " x " << p.columns);
    expect_product(p, nullptr);
    expect_product(p, pool.threads());
  }
}
TEST(bmm_q8, does_not_saturate_between_products) {
  for (const int value : {-128, 127})
    for (const int64_t zero : {-128, 0, 127})
      expect_product({1, 7, 64, 33, zero, zero, false}, nullptr, value);
}

// ---- softmax_q8

TEST(softmax_q8, divides_exponentials_by_their_sum_on_every_level) {
  ThreadPool pool(2);
  std::mt19937 engine(1);
  const double input_scale = 0.07;
  Tensor<int32_t> table({256});
  for (int d = 0; d < 256; ++d)
    table[d] = static_cast<int32_t>(std::lround(std::exp(-d * input_scale) * 0x1p30));
  const std::vector<int64_t> range{-128, 127};
  struct Case {
    std::vector<index_t> sizes;
    int64_t dim;
    index_t count, step;
  };
  for (const Case& c : {Case{{3, 1}, 1, 1, 1}, Case{{2, 17}, -1, 17, 1}, Case{{5, 300}, 1, 300, 1},
                        Case{{9, 64}, 1, 64, 1}, Case{{3, 97}, 1, 97, 1},
                        Case{{1, 270000}, 1, 270000, 1}, Case{{2, 33, 5}, 1, 33, 5},
                        Case{{40, 3}, 0, 40, 3}, Case{{0, 4}, 1, 4, 1}, Case{{4, 0}, 1, 0, 1}}) {
    Bytes x(c.sizes);
    fill(x, engine);
    const auto first_of_line = [&](index_t i) {
      return static_cast<size_t>(i / (c.count * c.step) * c.count * c.step + i % c.step);
    };
    std::vector<double> exact(static_cast<size_t>(x.numel())), sums(exact.size());
    for (index_t i = 0; i < x.numel(); ++i) sums[first_of_line(i)] += std::exp(x[i] * input_scale);
    for (index_t i = 0; i < x.numel(); ++i)
      exact[static_cast<size_t>(i)] = 256 * std::exp(x[i] * input_scale) / sums[first_of_line(i)];
    std::vector<int8_t> before;
    for (const Kernel* k : tests::kernels_of(all, ops::taper_softmax_q8)) {
      SCOPED_TRACE(::testing::Message() << k->name << " " << x.numel());
      Bytes y(c.sizes, 99);
      tests::call(*k,
                  {slot(x.ref()), slot(table.ref()), slot(c.dim), slot(1.0 / 256),
                   slot(int64_t{-128}), slot(range), slot(y.ref())},
                  pool.threads());
      EXPECT_TRUE(y.is_guarded());
      for (index_t i = 0; i < x.numel(); ++i)
        EXPECT_NEAR(y[i] + 128, std::min(exact[static_cast<size_t>(i)], 255.0), 0.5 + 1e-5) << i;
      if (before.empty()) before = y.values();
      EXPECT_EQ(y.values(), before);
    }
  }
}
TEST(softmax_q8, survives_any_table) {
  const std::vector<int64_t> range{-128, 127};
  for (const int32_t entry : {0, -1, INT32_MIN, INT32_MAX}) {
    Tensor<int32_t> table({256}, entry);
    Bytes x({2, 20}, 5);
    std::vector<int8_t> before;
    for (const Kernel* k : tests::kernels_of(all, ops::taper_softmax_q8)) {
      Bytes y({2, 20}, 99);
      tests::call(*k, {slot(x.ref()), slot(table.ref()), slot(int64_t{1}), slot(1e-30),
                       slot(int64_t{0}), slot(range), slot(y.ref())});
      if (before.empty()) before = y.values();
      EXPECT_EQ(y.values(), before) << k->name << " " << entry;
    }
  }
}

// ---- upsample_bilinear2d_q8

// The places of PyTorch: align_corners maps the first and last elements on each other, otherwise
// the edges of the elements.
float place(index_t i, index_t in, index_t out, bool align_corners) {
  if (align_corners)
    return out > 1
               ? static_cast<float>(in - 1) / static_cast<float>(out - 1) * static_cast<float>(i)
               : 0;
  const float step = static_cast<float>(in) / static_cast<float>(out);
  return std::max(0.0f, step * (static_cast<float>(i) + 0.5f) - 0.5f);
}

TEST(upsample_bilinear2d_q8, blends_four_pixels_on_every_level) {
  ThreadPool pool(2);
  std::mt19937 engine(4);
  const std::vector<int64_t> range{-100, 127};
  struct Case {
    index_t height, width, channels;
    std::vector<int64_t> to;
    bool align_corners;
  };
  for (const Case& c :
       {Case{5, 6, 7, {8, 11}, false}, Case{4, 3, 70, {2, 7}, true}, Case{3, 4, 16, {6, 8}, false},
        Case{1, 1, 3, {4, 5}, true}, Case{6, 5, 1, {1, 5}, true}}) {
    SCOPED_TRACE(::testing::Message() << c.channels << " channels");
    Bytes x({2, c.height, c.width, c.channels});
    fill(x, engine);
    std::vector<int8_t> want;
    for (index_t n = 0; n < 2; ++n)
      for (index_t i = 0; i < c.to[0]; ++i)
        for (index_t j = 0; j < c.to[1]; ++j)
          for (index_t k = 0; k < c.channels; ++k) {
            const float y = place(i, c.height, c.to[0], c.align_corners),
                        z = place(j, c.width, c.to[1], c.align_corners);
            const auto row = static_cast<index_t>(y), column = static_cast<index_t>(z);
            const auto real = [&](index_t r, index_t s) {
              r = std::min(r, c.height - 1), s = std::min(s, c.width - 1);
              return static_cast<float>(x[((n * c.height + r) * c.width + s) * c.channels + k] -
                                        6) *
                     0.05f;
            };
            const float down = y - static_cast<float>(row), right = z - static_cast<float>(column);
            const auto along = [&](index_t r) {
              return (1 - right) * real(r, column) + right * real(r, column + 1);
            };
            want.push_back(rounded(
                ((1 - down) * along(row) + down * along(row + 1)) * static_cast<float>(1 / 0.04), 2,
                range));
          }
    for (const Kernel* k : tests::kernels_of(all, ops::taper_upsample_bilinear2d_q8)) {
      SCOPED_TRACE(k->name);
      Bytes y({2, c.to[0], c.to[1], c.channels}, 99);
      tests::call(*k,
                  {slot(x.ref()), slot(c.to), slot(c.align_corners), tests::absent_list(),
                   tests::absent_list(), slot(0.05), slot(int64_t{6}), slot(0.04), slot(int64_t{2}),
                   slot(range), slot(y.ref())},
                  pool.threads());
      EXPECT_EQ(y.values(), want);
      EXPECT_TRUE(y.is_guarded());
    }
  }
}

// The taps of these columns take 2^64 bytes and a few more.
TEST(upsample_bilinear2d_q8, needs_nothing_for_no_images) {
  constexpr int64_t columns = 768614336404564651;
  const std::vector<int64_t> to{1, columns}, range{-128, 127};
  for (const Kernel* k : tests::kernels_of(all, ops::taper_upsample_bilinear2d_q8)) {
    SCOPED_TRACE(k->name);
    Bytes x({0, 1, 1, 1}), y({0, 1, columns, 1});
    tests::call(*k, {slot(x.ref()), slot(to), slot(false), tests::absent_list(),
                     tests::absent_list(), slot(0.05), slot(int64_t{6}), slot(0.04),
                     slot(int64_t{2}), slot(range), slot(y.ref())});
  }
}

}  // namespace
}  // namespace taper::quantized
