// Static 8-bit operators: every record that this machine can run, against their definition.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "taper/kernels/quantized/byte_panels.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/quantized/bytes.h"

namespace taper::quantized {
namespace {

using tests::slot;

struct Numbers {
  double input_scale = 0.03, output_scale = 1.7;
  int64_t input_zero = -9, output_zero = 5;
  std::vector<int64_t> range{-120, 119};

  int8_t rounded(int32_t sum, float weight_scale) const {
    const float scale =
        static_cast<float>(input_scale) * weight_scale / static_cast<float>(output_scale);
    const float y =
        std::nearbyint(static_cast<float>(sum) * scale) + static_cast<float>(output_zero);
    return static_cast<int8_t>(
        std::min(std::max(y, static_cast<float>(range[0])), static_cast<float>(range[1])));
  }
};

/// Weights (channels, depth), and the same in panels, which begin anew in each group.
struct Weights {
  index_t channels, depth;
  Bytes plain, panels;
  Tensor<float> scales;
  Tensor<int32_t> offsets;

  Weights(index_t channels, index_t depth, index_t groups, std::mt19937& engine)
      : channels(channels),
        depth(depth),
        plain({channels, depth}),
        panels({groups * ((channels / groups + 15) / 16), (depth + 3) / 4, 16, 4}),
        scales({channels}),
        offsets({2, channels}) {
    fill(plain, engine);
    const index_t of_group = channels / groups, each = (of_group + 15) / 16;
    for (index_t c = 0; c < channels; ++c) {
      scales[c] = 0.001f * static_cast<float>(1 + engine() % 40);
      offsets[c] = static_cast<int32_t>(engine() % 4000) - 2000;
      for (index_t k = 0; k < depth; ++k) {
        const index_t panel = c / of_group * each + c % of_group / 16;
        panels[((panel * ((depth + 3) / 4) + k / 4) * 16 + c % of_group % 16) * 4 + k % 4] =
            plain[c * depth + k];
        offsets[channels + c] += plain[c * depth + k];
      }
    }
  }
};

struct Convolution {
  index_t batch, height, width, inputs, outputs, groups;  // channels of a group
  std::vector<int64_t> kernel, stride, padding, dilation;

  index_t extent(size_t d) const {
    const index_t in = d == 0 ? height : width;
    return (in + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  bool is_depthwise() const { return inputs == 1 && outputs == 1; }
};

std::vector<int8_t> definition(const Convolution& v, const Bytes& x, const Weights& w,
                               const Numbers& n) {
  std::vector<int8_t> y;
  const index_t all = v.groups * v.inputs;
  for (index_t b = 0; b < v.batch; ++b)
    for (index_t i = 0; i < v.extent(0); ++i)
      for (index_t j = 0; j < v.extent(1); ++j)
        for (index_t o = 0; o < v.groups * v.outputs; ++o) {
          int32_t sum = w.offsets[o];
          for (index_t ky = 0, k = 0; ky < v.kernel[0]; ++ky)
            for (index_t kx = 0; kx < v.kernel[1]; ++kx)
              for (index_t c = 0; c < v.inputs; ++c, ++k) {
                const index_t row = i * v.stride[0] - v.padding[0] + ky * v.dilation[0],
                              column = j * v.stride[1] - v.padding[1] + kx * v.dilation[1];
                if (row < 0 || row >= v.height || column < 0 || column >= v.width) continue;
                const int q = x[((b * v.height + row) * v.width + column) * all +
                                o / v.outputs * v.inputs + c];
                sum += (q - static_cast<int>(n.input_zero)) * w.plain[o * w.depth + k];
              }
          y.push_back(n.rounded(sum, w.scales[o]));
        }
  return y;
}

void expect_convolution(const Convolution& v, const Threads* threads, uint32_t seed) {
  std::mt19937 engine(seed);
  const Numbers n;
  Bytes x({v.batch, v.height, v.width, v.groups * v.inputs});
  fill(x, engine);
  const Weights w(v.groups * v.outputs, v.kernel[0] * v.kernel[1] * v.inputs,
                  v.is_depthwise() ? 1 : v.groups, engine);
  const std::vector<int8_t> want = definition(v, x, w, n);
  for (const Kernel* k : tests::kernels_of(all, ops::taper_conv2d_q8)) {
    SCOPED_TRACE(k->name);
    Bytes y({v.batch, v.extent(0), v.extent(1), v.groups * v.outputs}, 99);
    tests::call(*k,
                {slot(x.ref()), slot(w.panels.ref()), slot(w.scales.ref()), slot(w.offsets.ref()),
                 slot(v.kernel), slot(v.stride), slot(v.padding), slot(v.dilation),
                 slot(int64_t{v.groups}), slot(n.input_scale), slot(n.input_zero),
                 slot(n.output_scale), slot(n.output_zero), slot(n.range), slot(y.ref())},
                threads);
    ASSERT_EQ(y.values(), want);
    ASSERT_TRUE(y.is_guarded());
  }
}

TEST(conv2d_q8, gives_the_integers_of_its_definition_on_every_level) {
  ThreadPool pool(2);
  const Convolution cases[] = {
      {1, 9, 7, 3, 20, 1, {3, 3}, {2, 1}, {1, 1}, {1, 1}},     // few channels: copied windows
      {2, 12, 11, 8, 70, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   // all tiles
      {1, 13, 13, 12, 33, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}},  // one tap
      {1, 5, 5, 7, 17, 1, {1, 1}, {3, 3}, {0, 0}, {1, 1}},     // one tap of odd channels
      {1, 8, 9, 4, 6, 2, {3, 2}, {1, 2}, {2, 0}, {2, 1}},      // groups, dilated
      {1, 6, 6, 5, 3, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1}},      // groups of odd channels
      {1, 6, 6, 1, 2, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}},      // two filters for each channel
      {2, 10, 9, 1, 1, 37, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // depthwise
      {1, 9, 10, 1, 1, 150, {5, 5}, {2, 2}, {2, 2}, {1, 1}},   // several blocks of channels
      {1, 7, 9, 1, 1, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}},     // neighbours share their taps
      {1, 6, 9, 1, 1, 96, {3, 3}, {1, 1}, {2, 2}, {1, 1}},     // and some have none inside
      {1, 11, 12, 1, 1, 96, {3, 3}, {2, 2}, {2, 2}, {2, 2}},   // as far apart as pixels
      {1, 12, 12, 1, 1, 30, {1, 9}, {1, 1}, {0, 4}, {1, 1}},   // nine taps of a line
      {1, 9, 9, 1, 1, 64, {2, 3}, {1, 1}, {1, 2}, {3, 2}},     // dilated
      {1, 12, 12, 1, 1, 20, {9, 9}, {1, 1}, {4, 4}, {1, 1}},   // more taps than are fast
      {1, 1, 40, 6, 18, 1, {1, 5}, {1, 2}, {0, 2}, {1, 1}},    // a line
      {1, 3, 3, 16, 16, 1, {3, 3}, {1, 1}, {5, 5}, {1, 1}},    // much padding
      {1, 7, 6, 76, 40, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // many channels
      {1, 9, 8, 64, 70, 1, {1, 1}, {2, 2}, {0, 0}, {1, 1}},    // and some of the pixels
      {1, 1, 1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}},      // one product
      {0, 4, 4, 4, 4, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}},      // nothing
  };
  uint32_t seed = 0;
  for (const Convolution& v : cases) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    expect_convolution(v, nullptr, seed);
    expect_convolution(v, pool.threads(), seed + 100);
    ++seed;
  }
}

TEST(conv2d_q8, agrees_on_shapes_drawn_at_random) {
  ThreadPool pool(3);
  std::mt19937 engine(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint32_t>(high - low + 1));
  };
  for (uint32_t i = 0; i < 60; ++i) {
    Convolution v{draw(1, 2),
                  draw(1, 14),
                  draw(1, 14),
                  draw(1, 9),
                  draw(1, 40),
                  draw(1, 3),
                  {draw(1, 4), draw(1, 4)},
                  {draw(1, 3), draw(1, 3)},
                  {draw(0, 3), draw(0, 3)},
                  {draw(1, 2), draw(1, 2)}};
    if (i % 3 == 0) v.inputs = v.outputs = 1, v.groups = draw(1, 90);
    if (v.extent(0) < 1 || v.extent(1) < 1 ||
        v.height + 2 * v.padding[0] <= v.dilation[0] * (v.kernel[0] - 1) ||
        v.width + 2 * v.padding[1] <= v.dilation[1] * (v.kernel[1] - 1))
      continue;
    SCOPED_TRACE(::testing::Message() << "draw " << i);
    expect_convolution(v, i % 2 == 0 ? pool.threads() : nullptr, i);
  }
}

void expect_linear(index_t rows, index_t depth, index_t columns, const Threads* threads,
                   int extreme = 0) {
  std::mt19937 engine(3);
  const Numbers n;
  Bytes x({rows, depth});
  fill(x, engine);
  Weights w(columns, depth, 1, engine);
  if (extreme != 0) {
    for (index_t i = 0; i < x.numel(); ++i) x[i] = static_cast<int8_t>(-128);
    for (index_t i = 0; i < w.panels.numel(); ++i) w.panels[i] = static_cast<int8_t>(extreme);
    for (index_t i = 0; i < w.plain.numel(); ++i) w.plain[i] = static_cast<int8_t>(extreme);
    for (index_t c = 0; c < columns; ++c)
      w.offsets[columns + c] = static_cast<int32_t>(depth) * extreme, w.scales[c] = 0.0001f;
  }
  std::vector<int8_t> want;
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < columns; ++c) {
      int32_t sum = w.offsets[c];
      for (index_t k = 0; k < depth; ++k)
        sum += (x[r * depth + k] - static_cast<int>(n.input_zero)) * w.plain[c * depth + k];
      want.push_back(n.rounded(sum, w.scales[c]));
    }
  for (const Kernel* k : tests::kernels_of(all, ops::taper_linear_q8)) {
    SCOPED_TRACE(::testing::Message() << k->name << " " << rows << " rows, depth " << depth);
    Bytes y({rows, columns}, 99);
    tests::call(*k,
                {slot(x.ref()), slot(w.panels.ref()), slot(w.scales.ref()), slot(w.offsets.ref()),
                 slot(n.input_scale), slot(n.input_zero), slot(n.output_scale), slot(n.output_zero),
                 slot(n.range), slot(y.ref())},
                threads);
    ASSERT_EQ(y.values(), want);
    ASSERT_TRUE(y.is_guarded());
  }
}

TEST(linear_q8, gives_the_integers_of_its_definition_on_every_level) {
  ThreadPool pool(2);
  for (const index_t rows : {1, 2, 5, 7, 13, 65})
    for (const index_t depth : {1, 3, 4, 31, 64})
      for (const index_t columns : {1, 15, 16, 17, 64, 90}) {
        expect_linear(rows, depth, columns, nullptr);
        expect_linear(rows, depth, columns, pool.threads());
      }
  expect_linear(130, 300, 200, pool.threads());
}
TEST(linear_q8, does_not_saturate_between_products) {
  for (const int weight : {-128, -127, 127}) expect_linear(7, 64, 33, nullptr, weight);
}

std::vector<int8_t> run_binary(const Kernel& k, const Bytes& a, const Bytes& b,
                               std::vector<index_t> sizes, const Threads* threads) {
  Bytes y(std::move(sizes), 99);
  const std::vector<int64_t> range{-128, 100};
  tests::call(k,
              {slot(a.ref()), slot(b.ref()), slot(0.05), slot(int64_t{3}), slot(0.031),
               slot(int64_t{-20}), slot(0.073), slot(int64_t{1}), slot(range), slot(y.ref())},
              threads);
  EXPECT_TRUE(y.is_guarded());
  return y.values();
}

TEST(binary_q8, is_the_same_on_every_level_and_broadcasts) {
  ThreadPool pool(2);
  std::mt19937 engine(9);
  Bytes a({3, 40, 70}), same({3, 40, 70}), row({70}), column({3, 40, 1}), one({1}),
      edge({3, 1, 70}), middle({1, 40, 1});
  for (Bytes* t : {&a, &same, &row, &column, &one, &middle, &edge}) fill(*t, engine);
  const auto at = [](const Bytes& t, index_t i) {
    const index_t n = t.numel();
    return n == 3 * 40 * 70 ? t[i]
           : n == 70        ? t[i % 70]
           : n == 120       ? t[i / 70]
           : n == 210       ? t[i / 2800 * 70 + i % 70]
           : n == 40        ? t[i / 70 % 40]
                            : t[0];
  };
  const auto want = [&](const Operator& op, const Bytes& x, const Bytes& y) {
    std::vector<int8_t> values;
    for (index_t i = 0; i < a.numel(); ++i) {
      const float left = static_cast<float>(at(x, i) - 3) * 0.05f,
                  right = static_cast<float>(at(y, i) + 20) * 0.031f;
      const float z = &op == &ops::taper_add_q8   ? left + right
                      : &op == &ops::taper_sub_q8 ? left - right
                                                  : left * right;
      const float q = std::nearbyint(z * static_cast<float>(1 / 0.073)) + 1;
      values.push_back(static_cast<int8_t>(std::min(std::max(q, -128.0f), 100.0f)));
    }
    return values;
  };
  for (const Operator* op : {&ops::taper_add_q8, &ops::taper_sub_q8, &ops::taper_mul_q8})
    for (const Kernel* k : tests::kernels_of(all, *op))
      for (const Bytes* other : {&same, &row, &column, &one, &middle, &edge}) {
        SCOPED_TRACE(::testing::Message() << k->name << " " << other->numel());
        EXPECT_EQ(run_binary(*k, a, *other, {3, 40, 70}, nullptr), want(*op, a, *other));
        EXPECT_EQ(run_binary(*k, *other, a, {3, 40, 70}, pool.threads()), want(*op, *other, a));
      }
}

TEST(lookup_q8, finds_every_entry_on_every_level) {
  std::mt19937 engine(13);
  ThreadPool pool(2);
  Bytes table({256});
  fill(table, engine);
  for (const index_t n : {0, 1, 31, 32, 33, 65, 256, 40000}) {
    Bytes x({n});
    for (index_t i = 0; i < n; ++i) x[i] = static_cast<int8_t>(i * 7);
    std::vector<int8_t> want;
    for (index_t i = 0; i < n; ++i) want.push_back(table[x[i] + 128]);
    for (const Kernel* k : tests::kernels_of(all, ops::taper_lookup_q8)) {
      SCOPED_TRACE(::testing::Message() << k->name << " " << n);
      Bytes y({n}, 99);
      tests::call(*k, {slot(x.ref()), slot(table.ref()), slot(y.ref())}, pool.threads());
      EXPECT_EQ(y.values(), want);
      EXPECT_TRUE(y.is_guarded());
      tests::call(*k, {slot(x.ref()), slot(table.ref()), slot(x.ref())});  // in place
      EXPECT_EQ(x.values(), want);
      for (index_t i = 0; i < n; ++i) x[i] = static_cast<int8_t>(i * 7);
    }
  }
}

TEST(avg_pool2d_q8, is_the_same_on_every_level) {
  std::mt19937 engine(11);
  ThreadPool pool(2);
  for (const index_t channels : {1, 17, 56, 64, 130}) {
    Bytes x({2, 9, 8, channels});
    fill(x, engine);
    const std::vector<int64_t> kernel{3, 2}, stride{2, 2}, padding{1, 1}, range{-128, 127};
    std::vector<int8_t> first;
    for (const Kernel* k : tests::kernels_of(all, ops::taper_avg_pool2d_q8)) {
      Bytes y({2, 5, 5, channels}, 99);
      tests::call(*k,
                  {slot(x.ref()), slot(kernel), slot(stride), slot(padding), slot(false),
                   slot(true), tests::absent_list(), slot(0.05), slot(int64_t{6}), slot(0.04),
                   slot(int64_t{2}), slot(range), slot(y.ref())},
                  pool.threads());
      EXPECT_TRUE(y.is_guarded());
      if (first.empty()) first = y.values();
      EXPECT_EQ(y.values(), first) << k->name;
    }
  }
}

}  // namespace
}  // namespace taper::quantized
