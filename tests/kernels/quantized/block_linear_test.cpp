// linear with weights in blocks: every record that this machine can run, on buffers of exact size.
#include "taper/kernels/quantized/block_linear.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/kernels/quantized/rounded_rows.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/quantized/block_weights.h"
#include "taper/tests/support/guarded_memory.h"

namespace taper::quantized {
namespace {

using tests::all_layouts, tests::Array, tests::Weights;
using tests::slot;

/// The sum of a unit without integers.
float with_floats(const float* w, const int8_t* q, float scale, float sum) {
  for (int k = 0; k < unit_elements; ++k)
    sum = std::fma(w[k], scale * static_cast<float>(q[k]), sum);
  return sum;
}

/// The definition of block_linear_q8, with fused multiply-adds (block_tiles.h).
std::vector<float> rounded_product(const BlockMatrix& w, const Array& x, const Array* bias) {
  const index_t rows = x.size(0), depth = x.size(1);
  const BlockTraits traits = traits_of(w.layout);
  std::vector<float> y(static_cast<size_t>(rows * w.rows)), row(static_cast<size_t>(depth));
  for (index_t r = 0; r < rows; ++r)
    for (index_t j = 0; j < w.rows; ++j) {
      w.row(j, row.data());
      float sum = 0;
      for (index_t u = 0; u < depth / unit_elements; ++u) {
        int8_t q[unit_elements];
        RoundedUnit of_x;
        round_unit(x.data() + r * depth + u * unit_elements, q, of_x);
        if (!holds_integers(w.layout)) {
          sum = with_floats(row.data() + u * unit_elements, q, of_x.scale, sum);
          continue;
        }
        Unit unit;
        w.decode(j, u, unit);
        for (int part = 0; part < (traits.has_halves ? 2 : 1); ++part) {
          const int first = traits.has_halves ? 16 * part : 0,
                    end = traits.has_halves ? first + 16 : 32;
          int32_t products = 0;
          for (int k = first; k < end; ++k) products += unit.value[k] * q[k];
          sum = std::fma(unit.scale[part] * of_x.scale, static_cast<float>(products), sum);
          if (traits.has_offset)
            sum = std::fma(unit.offset[part], of_x.weighted[traits.has_halves ? part : 2], sum);
        }
      }
      y[static_cast<size_t>(r * w.rows + j)] = bias != nullptr ? sum + (*bias)[j] : sum;
    }
  return y;
}

void expect_product(const Weights& w, index_t rows, bool with_bias, const Threads* threads) {
  const BlockMatrix m = w.matrix();
  const Array x = Array::random({rows, m.depth}, 7), bias = Array::random({m.rows}, 8);
  const std::vector<float> want = rounded_product(m, x, with_bias ? &bias : nullptr);
  for (const Kernel* k : tests::kernels_of(all, ops::taper_block_linear_q8))
    for (const TensorRef* weight : w.refs()) {
      SCOPED_TRACE(::testing::Message()
                   << k->name << ", layout " << static_cast<int>(weight->layout) << ", " << rows
                   << " rows");
      Array y({rows, m.rows}, NAN);
      tests::call(*k, {slot(x), slot(weight), with_bias ? slot(bias) : tests::absent(), slot(y)},
                  threads);
      const bool fused = !std::string_view(k->name).ends_with("_f32") &&
                         (has_panels(m.layout) || (TAPER_TILES_X86 && holds_integers(m.layout)));
      for (index_t i = 0; i < y.numel(); ++i) {
        const float right = want[static_cast<size_t>(i)];
        if (fused)
          ASSERT_EQ(y[i], right) << i;
        else  // without fused multiply-adds
          ASSERT_NEAR(y[i], right, 1e-4 * std::fabs(right) + 1e-4) << i;
      }
    }
}

TEST(block_linear_q8, sums_integers_exactly_in_all_formats) {
  for (const Layout layout : all_layouts) {
    const Weights w(layout, 37, 512);
    for (const index_t rows : {1, 3}) expect_product(w, rows, rows == 3, nullptr);
  }
}

TEST(block_linear_q8, gives_a_row_the_same_bits_in_any_company) {
  ThreadPool pool(3);
  for (const Layout layout :
       {Layout::q4_0, Layout::q4_1, Layout::q8_0, Layout::q4_k, Layout::q6_k, Layout::q5_0,
        Layout::q5_1, Layout::q5_k, Layout::q3_k, Layout::iq4_nl, Layout::mxfp4}) {
    const Weights w(layout, 50, 256);
    for (index_t rows = 1; rows <= 13; ++rows) expect_product(w, rows, false, pool.threads());
    expect_product(w, 200, true, pool.threads());
  }
}

#if TAPER_TILES_X86
TEST(rounded_rows, have_the_same_bits_with_avx2) {
  if (!cpu_features().has(with_implied(CpuFeature::avx2))) GTEST_SKIP();
  constexpr index_t units = 39;
  Array x = Array::random({units, unit_elements}, 9);
  const auto fill = [&](index_t unit, float value) {
    for (index_t k = 0; k < unit_elements; ++k) x[unit * unit_elements + k] = value;
  };
  fill(0, 0), fill(5, -0.0f), fill(6, 1e-38f), fill(7, 3e38f), fill(37, 0);
  x[9 * unit_elements + 31] = NAN, x[14 * unit_elements] = -INFINITY, x[38 * unit_elements] = NAN;
  for (index_t count = 0; count <= units; ++count) {
    std::vector<int8_t> want(units * unit_elements, 77), values = want;
    std::vector<RoundedUnit> want_units(units), of_x(units);
    round_units(x.data(), count, want.data(), want_units.data());
    round_units_avx2(x.data(), count, values.data(), of_x.data());
    EXPECT_EQ(values, want);
    EXPECT_EQ(std::memcmp(of_x.data(), want_units.data(), units * sizeof(RoundedUnit)), 0) << count;
  }
}
#endif

TEST(block_linear_q8, takes_any_number_of_units) {
  for (const Layout layout : {Layout::q4_0, Layout::q4_1, Layout::q8_0})
    for (const index_t units : {1, 2, 3, 5}) {
      const Weights w(layout, 40, units * unit_elements);
      for (const index_t rows : {1, 2, 3, 4, 6, 8, 21}) expect_product(w, rows, false, nullptr);
    }
  for (const Layout layout : {Layout::q4_k, Layout::q6_k})
    for (const index_t blocks : {1, 3})
      expect_product(Weights(layout, 40, blocks * 256), 20, false, nullptr);
}

// An infinite scale meets the sum of its own unit alone: zero times infinity would be NaN.
TEST(block_linear_q8, multiplies_an_infinite_scale_with_nothing_else) {
  constexpr index_t columns = 16, depth = 96, block = 18;
  const Shape shape = Shape::dense(std::vector<index_t>{columns, depth});
  for (index_t infinite = 0; infinite < 3; ++infinite) {
    std::vector<std::byte> blocks(static_cast<size_t>(columns * 3 * block), std::byte{0x99});
    for (index_t b = 0; b < columns * 3; ++b) {
      const uint16_t scale = b % 3 == infinite ? 0x7c00 : 0x3c00;  // infinity, 1
      std::memcpy(blocks.data() + b * block, &scale, sizeof scale);
    }
    const TensorRef source{blocks.data(), &shape, DType::f32, Layout::q4_0};
    std::vector<std::byte> panels(bytes_of_panels(source));
    pack_panels(source, panels.data());
    const TensorRef packed{panels.data(), &shape, DType::f32, Layout::q4_0_panels};
    const Array x({20, depth}, 1);
    for (const Kernel* k : tests::kernels_of(all, ops::taper_block_linear_q8))
      for (const TensorRef* weight : {&source, &packed}) {
        SCOPED_TRACE(::testing::Message() << k->name << ", unit " << infinite);
        Array y({20, columns});
        tests::call(*k, {slot(x), slot(weight), tests::absent(), slot(y)});
        for (index_t i = 0; i < y.numel(); ++i) ASSERT_EQ(y[i], HUGE_VALF) << i;
      }
  }
}

TEST(block_linear_q8, keeps_zeros_and_spreads_no_nan_to_other_rows) {
  const Weights w(Layout::q4_1, 16, 64);
  Array x({4, 64}, 0);
  x[64] = NAN, x[128 + 3] = INFINITY, x[192 + 40] = 1e-38f;
  for (const Kernel* k : tests::kernels_of(all, ops::taper_block_linear_q8))
    for (const TensorRef* weight : w.refs()) {
      SCOPED_TRACE(k->name);
      Array y({4, 16}, 1);
      tests::call(*k, {slot(x), slot(weight), tests::absent(), slot(y)});
      for (index_t i = 0; i < 16; ++i) {
        EXPECT_EQ(y[i], 0);
        EXPECT_TRUE(std::isnan(y[16 + i]));
        EXPECT_TRUE(std::isnan(y[32 + i]));
        EXPECT_EQ(y[48 + i], 0) << "too small to be rounded";
      }
    }
}

TEST(block_linear_q8, takes_extents_of_zero) {
  struct Case {
    index_t rows, columns, depth;
  };
  for (const Operator* op : {&ops::taper_block_linear, &ops::taper_block_linear_q8})
    for (const Kernel* k : tests::kernels_of(all, *op))
      for (const Case c : {Case{0, 20, 64}, Case{3, 0, 64}, Case{3, 20, 0}, Case{0, 0, 0}}) {
        SCOPED_TRACE(k->name);
        const Weights w(Layout::q4_0, c.columns, c.depth);
        const Array x({c.rows, c.depth}), bias({c.columns}, 2);
        Array y({c.rows, c.columns}, 1);
        for (const TensorRef* weight : w.refs())
          tests::call(*k, {slot(x), slot(weight), slot(bias), slot(y)});
        for (index_t i = 0; i < y.numel(); ++i) EXPECT_EQ(y[i], 2) << "the bias alone";
      }
}

TEST(block_linear_q8, is_near_the_product_of_the_elements) {
  for (const Layout layout : all_layouts) {
    SCOPED_TRACE(static_cast<int>(layout));
    const Weights w(layout, 16, 256);
    const Array x = Array::random({2, 256}, 3);
    std::vector<float> row(256);
    Array y({2, 16});
    tests::call(*tests::kernels_of(all, ops::taper_block_linear_q8).front(),
                {slot(x), slot(w.refs().back()), tests::absent(), slot(y)});
    for (index_t j = 0; j < 16; ++j) {
      w.matrix().row(j, row.data());
      for (index_t r = 0; r < 2; ++r) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < 256; ++k) {
          sum += double{row[k]} * x[r * 256 + static_cast<index_t>(k)];
          size += double{row[k]} * row[k];
        }
        // a rounded element is off by at most 1 / 254, with the deviation of a uniform error
        ASSERT_NEAR(y[r * 16 + j], sum, 6 * std::sqrt(size) / 254);
      }
    }
  }
}

TEST(block_linear, has_the_bits_of_linear_on_the_elements) {
  ThreadPool pool(2);
  for (const Layout layout : all_layouts) {
    const index_t depth = 512;  // two sums that are added
    const Weights w(layout, 83, depth);
    Array dense({83, depth});
    for (index_t r = 0; r < 83; ++r) w.matrix().row(r, dense.data() + r * depth);
    for (const index_t rows : {1, 2, 3, 4, 7, 9, 70}) {
      const Array x = Array::random({rows, depth}, 5), bias = Array::random({83}, 6);
      for (const Kernel* k : tests::kernels_of(all, ops::taper_block_linear)) {
        Array want({rows, 83});
        tests::call(*k, {slot(x), slot(dense), slot(bias), slot(want)});
        for (const TensorRef* weight : w.refs()) {
          SCOPED_TRACE(::testing::Message() << k->name << ", layout " << static_cast<int>(layout));
          Array y({rows, 83});
          tests::call(*k, {slot(x), slot(weight), slot(bias), slot(y)}, pool.threads());
          ASSERT_EQ(std::memcmp(y.data(), want.data(), static_cast<size_t>(y.numel()) * 4), 0);
        }
      }
    }
  }
}

// What lies there may be a result that another thread writes.
TEST(block_linear, touches_nothing_behind_its_result) {
  constexpr index_t depth = 512;
  for (const index_t columns : {1, 3, 18, 67})
    for (const index_t rows : {1, 3, 40}) {
      const Weights w(Layout::q8_0, columns, depth);
      const Array x = Array::random({rows, depth}, 5);
      const Shape shape = Shape::dense(std::vector<index_t>{rows, columns});
      for (const Operator* op : {&ops::taper_block_linear, &ops::taper_block_linear_q8})
        for (const Kernel* k : tests::kernels_of(all, *op))
          for (const TensorRef* weight : w.refs()) {
            SCOPED_TRACE(k->name);
            const tests::GuardedMemory y(static_cast<size_t>(rows * columns) * sizeof(float));
            const TensorRef result{y.data(), &shape, DType::f32};
            tests::call(*k, {slot(x), slot(weight), tests::absent(), slot(&result)});
          }
    }
}

/// Blocks with all bytes, negative numbers and NaN among them. `set_scale` writes the scale of a
/// block.
template <class F>
void expect_bits_of_linear(Layout layout, const F& set_scale) {
  constexpr index_t columns = 37, depth = 320;  // a sum of 256, and one of 64
  const BlockSize block = block_of(layout);
  std::vector<std::byte> blocks(
      static_cast<size_t>(columns * depth / block.elements * block.bytes));
  std::mt19937 engine(3);
  for (std::byte& b : blocks) b = static_cast<std::byte>(engine());
  for (size_t i = 0; i < blocks.size(); i += static_cast<size_t>(block.bytes))
    set_scale(&blocks[i], engine());
  const Shape shape = Shape::dense(std::vector<index_t>{columns, depth});
  const TensorRef weight{blocks.data(), &shape, DType::f32, layout};
  Array dense({columns, depth});
  for (index_t r = 0; r < columns; ++r) BlockMatrix(weight).row(r, dense.data() + r * depth);
  for (const index_t rows : {1, 2, 3, 4, 5}) {
    const Array x = Array::random({rows, depth}, 5);
    for (const Kernel* k : tests::kernels_of(all, ops::taper_block_linear)) {
      SCOPED_TRACE(::testing::Message() << k->name << ", layout " << static_cast<int>(layout));
      Array want({rows, columns}), y({rows, columns});
      tests::call(*k, {slot(x), slot(dense), tests::absent(), slot(want)});
      tests::call(*k, {slot(x), slot(&weight), tests::absent(), slot(y)});
      for (index_t i = 0; i < y.numel(); ++i) {
        ASSERT_EQ(std::isnan(y[i]), std::isnan(want[i])) << i;
        ASSERT_TRUE(std::isnan(y[i]) || y[i] == want[i]) << i;
      }
    }
  }
}

TEST(block_linear, has_the_bits_of_linear_on_all_levels_and_small_floats) {
  // near 1; and one block of 200 has the least scale, the greatest one, or NaN
  const auto exponent = [](std::byte* block, uint32_t random) {
    constexpr int rare[] = {0, 1, 254, 255};
    block[0] = static_cast<std::byte>(random % 200 < 4 ? rare[random % 200] : 120 + random % 12);
  };
  for (const Layout layout : {Layout::mxfp4, Layout::mxfp6_e2m3, Layout::mxfp6_e3m2,
                              Layout::mxfp8_e4m3, Layout::mxfp8_e5m2})
    expect_bits_of_linear(layout, exponent);
  expect_bits_of_linear(Layout::nf4, [](std::byte* block, uint32_t random) {
    block[1] = static_cast<std::byte>(0x20 + random % 0x20);  // of f16, from 2^-7 to 1.99
  });
}
TEST(block_linear, has_the_bits_of_linear_on_finite_small_floats) {
  // without the NaN and infinities, of which most sums of 320 random floats of 8 bits have one
  for (const Layout layout : {Layout::mxfp8_e4m3, Layout::mxfp8_e5m2})
    expect_bits_of_linear(layout, [](std::byte* block, uint32_t random) {
      block[0] = static_cast<std::byte>(120 + random % 12);
      for (int k = 1; k <= 32; ++k)
        if ((block[k] & std::byte{0x7c}) == std::byte{0x7c}) block[k] &= std::byte{0x83};
    });
}

TEST(block_embedding, looks_up_rows_and_refuses_others) {
  for (const Layout layout : all_layouts) {
    const Weights w(layout, 20, 256);
    std::vector<float> row(256);
    const Kernel& k = taper_block_embedding_f32_i64;
    for (const TensorRef* weight : w.refs()) {
      std::vector<int64_t> indices{19, 0, 7};
      const Shape shape = Shape::dense(std::vector<index_t>{3});
      const TensorRef ref{indices.data(), &shape, DType::i64};
      Array y({3, 256});
      tests::call(k, {slot(weight), slot(&ref), slot(y)});
      for (index_t i = 0; i < 3; ++i) {
        w.matrix().row(static_cast<index_t>(indices[static_cast<size_t>(i)]), row.data());
        ASSERT_EQ(std::memcmp(row.data(), y.data() + i * 256, 1024), 0);
      }
      indices[1] = 20;
      Context context;
      const Slot slots[] = {slot(weight), slot(&ref), slot(y)};
      EXPECT_EQ(k.run(context, nullptr, slots), Error::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace taper::quantized
