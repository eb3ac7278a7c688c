// taper::convolution at every level against convolution at the same level: the same bits.
#include <cstring>
#include <optional>

#include "taper/kernels/optimized/narrow_records.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/optimized/packed.h"

namespace taper::tests {
namespace {

using namespace optimized;

struct Case {
  std::vector<index_t> input, weight;  // (batch, channels, height, width), as in convolution
  std::vector<int64_t> stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
};

const Case cases[] = {
    {{1, 24, 9, 11}, {40, 24, 1, 1}},
    {{1, 24, 9, 11}, {23, 24, 1, 1}, {2}},
    {{2, 300, 5, 5}, {70, 300, 1, 1}},  // blocks of a sum
    {{1, 3, 19, 17}, {32, 3, 3, 3}, {2}, {1}},
    {{1, 3, 40, 40}, {16, 3, 7, 7}, {2}, {3}},
    {{2, 16, 12, 12}, {17, 16, 3, 3}, {1}, {1}},
    {{1, 64, 7, 7}, {64, 64, 3, 3}, {1}, {1}},  // more places than a block
    {{1, 8, 15, 17}, {48, 8, 3, 4}, {2, 3}, {1, 2}, {3, 2}},
    {{1, 5, 6, 6}, {7, 5, 2, 2}, {3}, {4}},  // windows that lie in the padding
    {{1, 8, 9, 9}, {12, 4, 3, 3}, {1}, {1}, {1}, 2},
    {{1, 8, 9, 9}, {64, 4, 3, 3}, {1}, {1}, {1}, 2},
    {{2, 128, 6, 5}, {32, 64, 3, 3}, {1}, {1}, {1}, 2},  // groups whose copies have gaps
    {{1, 32, 9, 9}, {32, 1, 3, 3}, {1}, {1}, {1}, 32},   // depthwise
    {{2, 45, 13, 8}, {45, 1, 3, 3}, {2}, {1}, {1}, 45},
    {{1, 19, 9, 10}, {19, 1, 5, 5}, {1}, {2}, {1}, 19},
    {{1, 16, 14, 14}, {16, 1, 3, 5}, {1}, {2}, {2}, 16},
    {{1, 20, 3, 4}, {20, 1, 7, 7}, {1}, {3}, {1}, 20},  // wider than the image
    {{1, 6, 11, 13}, {12, 1, 3, 3}, {1}, {1}, {1}, 6},
    {{1, 1, 9, 9}, {20, 1, 3, 3}},
    {{1, 96, 70, 70}, {24, 96, 3, 3}, {1}, {1}},  // bands of rows
    {{0, 3, 8, 8}, {4, 3, 3, 3}},                 // empty
    {{2, 0, 8, 8}, {4, 0, 3, 3}, {1}, {1}},
    {{1, 40, 1, 1}, {203, 40, 1, 1}},  // one pixel: wide tiles, and what they leave
    {{3, 300, 1, 1}, {150, 300, 1, 1}},
    {{1, 64, 1, 1}, {192, 32, 1, 1}, {1}, {0}, {1}, 2},
    {{1, 64, 1, 1}, {90, 32, 1, 1}, {1}, {0}, {1}, 2},  // panels cross groups
};

// And depthwise ones of each size and stride, some of whose tiles lie at edges, over fewer pixels
// than a tile and more.
std::vector<Case> all_cases() {
  std::vector<Case> all(std::begin(cases), std::end(cases));
  for (const index_t size : {2, 3, 5, 7})
    for (const int64_t stride : {1, 2, 3})
      for (const index_t width : {1, 3, 5, 7, 9, 14, 23, 28, 40})
        all.push_back({{1, 36, size, width}, {36, 1, size, size}, {stride}, {size / 2}, {1}, 36});
  return all;
}

int64_t at(const std::vector<int64_t>& list, size_t i) { return list[list.size() == 1 ? 0 : i]; }

std::vector<index_t> sizes_of(const Case& c) {
  std::vector<index_t> sizes{c.input[0], c.weight[0]};
  for (size_t i = 0; i < 2; ++i)
    sizes.push_back(
        (c.input[i + 2] + 2 * at(c.padding, i) - at(c.dilation, i) * (c.weight[i + 2] - 1) - 1) /
            at(c.stride, i) +
        1);
  return sizes;
}

Array turned(const Array& x) {
  const index_t n = x.size(0), c = x.size(1), plane = x.size(2) * x.size(3);
  Array y({n, x.size(2), x.size(3), c});
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < c; ++j)
      for (index_t k = 0; k < plane; ++k) y[(i * plane + k) * c + j] = x[(i * c + j) * plane + k];
  return y;
}

Array channels_first(const Kernel& kernel, const Case& c, const Array& x, const Array& w,
                     const Array* bias) {
  Array out(sizes_of(c), 77);
  call(kernel,
       {slot(x), slot(w), bias ? slot(*bias) : absent(), slot(c.stride), slot(c.padding),
        slot(c.dilation), slot(false), slot(std::vector<int64_t>{0}), slot(c.groups), slot(out)});
  return out;
}

struct Program {
  std::vector<int64_t> steps;
  std::vector<double> constants;
  std::vector<const TensorRef*> others;
};

Array channels_last(const Kernel& kernel, const Case& c, const Array& x, const TensorRef* w,
                    const Array* bias, const Program& program = {},
                    const Threads* threads = nullptr) {
  const std::vector<index_t> s = sizes_of(c);
  Array out({s[0], s[2], s[3], s[1]}, 78);
  Slot others{}, constants{};
  others.tensors = program.others.data(), others.size = uint32_t(program.others.size()),
  others.kind = Kind::tensor, others.present = true;
  constants.reals = program.constants.data(), constants.size = uint32_t(program.constants.size()),
  constants.kind = Kind::real, constants.present = true;
  call(kernel,
       {slot(x), slot(w), bias ? slot(*bias) : absent(), slot(c.stride), slot(c.padding),
        slot(c.dilation), slot(c.groups), others, slot(program.steps), constants, slot(out)},
       threads);
  return out;
}

// The record of another operator with the same needs.
const Kernel* twin(const Kernel& kernel, const Operator& op) {
  for (const Kernel* k : optimized::all)
    if (k->op == &op && k->needs == kernel.needs && k->expected[0].dtypes == one(DType::f32))
      return k;
  for (const Kernel* k : portable::all)
    if (k->op == &op && kernel.needs == CpuFeatures{} && k->expected[0].dtypes == one(DType::f32))
      return k;
  return nullptr;
}
const Kernel* portable_record(const Operator& op) {
  for (const Kernel* k : portable::all)
    if (k->op == &op && k->expected[0].dtypes == one(DType::f32)) return k;
  return nullptr;
}

void expect_twin_bits(const Kernel& kernel, const Kernel& twin) {
  ThreadPool pool(3);
  const std::vector<Case> all = all_cases();
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << kernel.name << ", case " << i);
    const Case& c = all[i];
    const Array x = Array::random(c.input, 1), w = Array::random(c.weight, 2),
                bias = Array::random({c.weight[0]}, 3), x_last = turned(x);
    for (const Packing& packing : kernel.packings) {
      const Stored source(*w.ref(), packing.from);
      Array wide = Array::random(c.weight, 2);  // what the source holds
      const std::vector<float> widened = source.widened();
      if (!widened.empty())
        std::memcpy(wide.data(), widened.data(), static_cast<size_t>(wide.numel()) * sizeof(float));
      std::optional<Packed> packed;
      if (bytes_of_panels_of_first(*w.ref()) > 0) packed.emplace(packing, *source.ref());
      for (const Array* b : {&bias, static_cast<const Array*>(nullptr)}) {
        const Array want = turned(channels_first(twin, c, x, wide, b));
        EXPECT_TRUE(same_bits(channels_last(kernel, c, x_last, source.ref(), b), want));
        if (!packed) continue;
        EXPECT_TRUE(same_bits(channels_last(kernel, c, x_last, packed->ref(), b), want))
            << "packed";
        EXPECT_TRUE(
            same_bits(channels_last(kernel, c, x_last, packed->ref(), b, {}, pool.threads()), want))
            << "with threads";
      }
    }
  }
}

TEST(taper_convolution, has_the_bits_of_convolution_at_every_level) {
  const std::vector<const Kernel*> kernels = kernels_of(ops::taper_convolution);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel* k : kernels) {
    const Kernel* other = twin(*k, ops::convolution);
    ASSERT_NE(other, nullptr);
    expect_twin_bits(*k, *other);
  }
}

TEST(taper_convolution, has_the_bits_of_convolution_in_its_portable_record) {
  expect_twin_bits(*portable_record(ops::taper_convolution), *portable_record(ops::convolution));
}

Error prepare_channels_last(const Kernel& kernel, const Case& c, const Array& x, const Array& w,
                            const Program& program, ErrorInfo& info) {
  const std::vector<index_t> s = sizes_of(c);
  const Array out({s[0], s[2], s[3], s[1]});
  Slot others{}, constants{};
  others.kind = Kind::tensor, others.present = true;
  constants.kind = Kind::real, constants.present = true;
  const std::vector<Slot> slots{slot(x),        slot(w),         absent(),
                                slot(c.stride), slot(c.padding), slot(c.dilation),
                                slot(c.groups), others,          slot(program.steps),
                                constants,      slot(out)};
  alignas(8) std::byte plan[max_plan_bytes];
  Context context;
  context.info = &info;
  return kernel.prepare(context, plan, slots.data());
}

// A program behind the convolution has the bits of taper::pointwise over its result.
void expect_program_bits(const Kernel& kernel, const Kernel& pointwise) {
  ThreadPool pool(3);
  const Array number({}, 0.25f);
  for (size_t i : {size_t{0}, size_t{2}, size_t{6}, size_t{12}, size_t{18}}) {
    const Case& c = cases[i];
    const Array x = turned(Array::random(c.input, 1)), w = Array::random(c.weight, 2),
                bias = Array::random({c.weight[0]}, 3);
    const Array plain = channels_last(kernel, c, x, w.ref(), &bias);
    const Array residual = turned(Array::random(sizes_of(c), 4));
    const int64_t in = 1;  // the first register's operand, with one input
    const Program programs[] = {
        {{8, 0, 0, 0, 0}, {}, {}},                               // relu
        {{28, 0, 0, -1, -2}, {-0.5, 1}, {}},                     // hardtanh
        {{28, 0, 0, -1, -2}, {0.5, -0.25}, {}},                  // its bounds exchanged
        {{30, 0, 0, 0, 0}, {}, {}},                              // hardswish
        {{29, 0, 0, -1, 0}, {0.1}, {}},                          // leaky_relu
        {{17, 0, 0, 0, 0, 2, 1, 0, in, 0}, {}, {}},              // x sigmoid(x)
        {{0, 0, 0, 1, 0, 8, 0, 2, 0, 0}, {}, {residual.ref()}},  // relu(x + residual)
        {{2, 0, 0, 2, 0, 0, 1, 3, 1, 0}, {}, {residual.ref(), number.ref()}},
    };
    for (const Program& p : programs) {
      Array want({plain.size(0), plain.size(1), plain.size(2), plain.size(3)}, 77);
      std::vector<const TensorRef*> inputs{plain.ref()};
      inputs.insert(inputs.end(), p.others.begin(), p.others.end());
      Slot list{}, constants{};
      list.tensors = inputs.data(), list.size = uint32_t(inputs.size()), list.kind = Kind::tensor,
      list.present = true;
      constants.reals = p.constants.data(), constants.size = uint32_t(p.constants.size()),
      constants.kind = Kind::real, constants.present = true;
      call(pointwise, {list, slot(p.steps), constants, slot(want)});
      EXPECT_TRUE(same_bits(channels_last(kernel, c, x, w.ref(), &bias, p), want)) << kernel.name;
      EXPECT_TRUE(same_bits(channels_last(kernel, c, x, w.ref(), &bias, p, pool.threads()), want))
          << kernel.name << " with threads";
    }
  }
}

bool fits(const NarrowRecord& r, const Case& c, const Array& w, const Program& program) {
  Slot slots[12] = {};
  slots[1] = slot(w), slots[6] = slot(c.groups), slots[8] = slot(program.steps);
  return r.fits(slots);
}
void expect_refused(const NarrowRecord& r, const Case& c, const Array& x, const Array& w,
                    const Program& program) {
  EXPECT_FALSE(fits(r, c, w, program)) << r.narrow->name;
  ErrorInfo info;
  EXPECT_EQ(prepare_channels_last(*r.narrow, c, x, w, program, info), Error::not_supported);
  EXPECT_NE(std::strstr(info.message, "taper export --kernels"), nullptr) << r.narrow->name;
}

TEST(narrow_convolutions, run_plain_programs_with_the_same_bits_and_refuse_others) {
  const Case& c = cases[0];
  const Array x = turned(Array::random(c.input, 1)), w = Array::random(c.weight, 2),
              bias = Array::random({c.weight[0]}, 3),
              residual = turned(Array::random(sizes_of(c), 4));
  const Program plain[] = {
      {{}, {}, {}},
      {{8, 0, 0, 0, 0}, {}, {}},                                              // relu
      {{28, 0, 0, -1, -2}, {0.5, -0.25}, {}},                                 // hardtanh
      {{1, 0, 0, 1, 0, 2, 1, 2, 0, 0, 0, 0, 3, 1, 0}, {}, {residual.ref()}},  // r = x - y; r + r x
  };
  const Program sigmoid{{17, 0, 0, 0, 0}, {}, {}};
  for (const NarrowRecord& r : narrow_convolutions) {
    if (!cpu_features().has(r.any->needs)) continue;
    for (const Program& p : plain)
      EXPECT_TRUE(same_bits(channels_last(*r.narrow, c, x, w.ref(), &bias, p),
                            channels_last(*r.any, c, x, w.ref(), &bias, p)))
          << r.narrow->name;

    EXPECT_TRUE(fits(r, c, w, plain[3])) << r.narrow->name;
    expect_refused(r, c, x, w, sigmoid);
  }
}

TEST(narrow_convolutions, of_threes_have_the_same_bits_and_refuse_larger_depthwise_windows) {
  const Program relu{{8, 0, 0, 0, 0}, {}, {}};
  int of_threes = 0;
  for (const NarrowRecord& r : narrow_convolutions) {
    const bool is_of_threes = std::strstr(r.narrow->name, "_threes") != nullptr;
    of_threes += is_of_threes;
    if (!cpu_features().has(r.any->needs)) continue;
    for (const index_t size : {3, 5, 7})
      for (const int64_t stride : {1, 2}) {
        const Case c{{1, 36, size, 23}, {36, 1, size, size}, {stride}, {size / 2}, {1}, 36};
        const Array x = turned(Array::random(c.input, 1)), w = Array::random(c.weight, 2),
                    bias = Array::random({c.weight[0]}, 3);
        if (is_of_threes && size > 3) {
          expect_refused(r, c, x, w, relu);
          continue;
        }
        EXPECT_TRUE(fits(r, c, w, relu)) << r.narrow->name;
        EXPECT_TRUE(same_bits(channels_last(*r.narrow, c, x, w.ref(), &bias, relu),
                              channels_last(*r.any, c, x, w.ref(), &bias, relu)))
            << r.narrow->name << ", window " << size;
      }
  }
  EXPECT_GE(of_threes, 1);
}

TEST(taper_convolution, runs_a_program_with_the_bits_of_pointwise) {
  int levels = 0;
  for (const Kernel* k : kernels_of(ops::taper_convolution)) {
    const Kernel* pointwise = twin(*k, ops::taper_pointwise);
    if (pointwise == nullptr) continue;
    ++levels;
    expect_program_bits(*k, *pointwise);
  }
  EXPECT_GE(levels, 1);
  expect_program_bits(*portable_record(ops::taper_convolution),
                      *portable_record(ops::taper_pointwise));
}

TEST(taper_convolution, refuses_a_padded_image_that_it_cannot_count) {
  const int64_t most = (int64_t{1} << 30) - 1, half = int64_t{1} << 29;
  for (const Case& c : {Case{{1, 8, 2, 2}, {16, 8, 2, 1}, {most, most}, {half, most}, {most, 1}},
                        Case{{1, 8, 2, 2}, {16, 8, 1, 1}, {most, most}, {half, most}}}) {
    const std::vector<index_t> s = sizes_of(c);
    const Array x = turned(Array::random(c.input, 1)), w = Array::random(c.weight, 2),
                out({s[0], s[2], s[3], s[1]});
    Slot none{};
    none.kind = Kind::tensor, none.present = true;
    const std::vector<Slot> slots{slot(x),
                                  slot(w),
                                  absent(),
                                  slot(c.stride),
                                  slot(c.padding),
                                  slot(c.dilation),
                                  slot(c.groups),
                                  none,
                                  slot(std::vector<int64_t>{}),
                                  none,
                                  slot(out)};
    for (const Kernel* k : kernels_of(ops::taper_convolution)) {
      alignas(8) std::byte plan[max_plan_bytes];
      Context context;
      EXPECT_EQ(k->prepare(context, plan, slots.data()), Error::not_supported) << k->name;
    }
  }
}

TEST(taper_convolution, keeps_NaN_between_bounds) {
  const Case c{{1, 16, 2, 2}, {16, 16, 1, 1}};
  const Array w = Array::random(c.weight, 2);
  Array x({1, 2, 2, 16}, 1);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  const Program relu6{{28, 0, 0, -1, -2}, {0, 6}, {}};
  for (const Kernel* k : kernels_of(ops::taper_convolution)) {
    const Array y = channels_last(*k, c, x, w.ref(), nullptr, relu6);
    EXPECT_TRUE(y[0] != y[0] && y[15] != y[15]) << k->name;
    EXPECT_TRUE(y[16] >= 0 && y[16] <= 6) << k->name;
  }
}

}  // namespace
}  // namespace taper::tests
