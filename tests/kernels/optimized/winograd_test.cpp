// taper::winograd_convolution against sums in double, and its layout of weights.
#include "taper/kernels/optimized/winograd.h"

#include <array>
#include <cmath>
#include <cstring>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/optimized/packed.h"

namespace taper::tests {
namespace {

using namespace optimized;

struct Case {
  std::vector<index_t> input;  // (batch, height, width, channels)
  index_t outputs;
  std::vector<int64_t> padding{1, 1};
};
const Case cases[] = {
    {{1, 8, 8, 16}, 32},         {{2, 7, 9, 20}, 17},  // odd images, narrow panels
    {{1, 5, 4, 3}, 16, {0, 0}},                        //
    {{1, 6, 5, 64}, 50, {0, 1}},                       //
    {{1, 3, 3, 33}, 16, {0, 0}},                       // one result
    {{3, 4, 11, 8}, 7, {2, 2}},                        // fewer channels than a panel
    {{1, 4, 4, 5}, 40, {5, 3}},                        // windows that lie in the padding
    {{1, 10, 10, 300}, 70},                            // two blocks of a sum
    {{1, 33, 40, 16}, 96},                             // several chunks
    {{1, 2, 1, 16}, 16},                               //
    {{0, 8, 8, 16}, 16},                               // empty
    {{1, 4, 4, 0}, 16},                                //
    {{2, 20, 20, 32}, 64},                             // work for several threads, by tiles
    {{1, 7, 7, 128}, 128},                             // and by channels
};

struct Call {
  Array x, w, bias;
  std::vector<int64_t> padding, steps;
  std::vector<double> constants;
  std::vector<const TensorRef*> others;

  explicit Call(const Case& c, bool has_bias = true)
      : x(Array::random(c.input, 1)),
        w(Array::random({c.outputs, c.input[3], 3, 3}, 2)),
        bias(has_bias ? Array::random({c.outputs}, 3) : Array()),
        padding(c.padding),
        has_bias_(has_bias) {}

  Array result(float fill) const {
    return Array(
        {x.size(0), x.size(1) + 2 * padding[0] - 2, x.size(2) + 2 * padding[1] - 2, w.size(0)},
        fill);
  }
  Array run(const Kernel& kernel, const TensorRef* weight, const Threads* threads = nullptr) const {
    Array out = result(78);
    Slot list{}, numbers{};
    list.tensors = others.data(), list.size = uint32_t(others.size()), list.kind = Kind::tensor;
    numbers.reals = constants.data(), numbers.size = uint32_t(constants.size());
    numbers.kind = Kind::real, list.present = numbers.present = true;
    call(kernel,
         {slot(x), slot(weight), has_bias_ ? slot(bias) : absent(), slot(padding), list,
          slot(steps), numbers, slot(out)},
         threads);
    return out;
  }
  Array run(const Kernel& kernel) const { return run(kernel, w.ref()); }

 private:
  bool has_bias_;
};

struct Transformed {
  explicit Transformed(const TensorRef& filters)
      : floats(bytes_of_winograd_panels(filters) / 4 + 16), ref(filters) {
    pack_winograd_panels(filters, small_floats<CpuLevel::portable>, floats.data());
    ref.data = floats.data(), ref.layout = Layout::winograd_panels;
  }
  std::vector<float> floats;
  TensorRef ref;
};

std::vector<const Kernel*> records() {
  std::vector<const Kernel*> found = kernels_of(ops::taper_winograd_convolution);
  for (const Kernel* k : portable::all)
    if (k->op == &ops::taper_winograd_convolution) found.push_back(k);
  return found;
}

std::vector<double> sums_of(const Call& c) {
  const Array shape = c.result(0);
  std::vector<double> sums(static_cast<size_t>(shape.numel()));
  const index_t height = c.x.size(1), width = c.x.size(2), channels = c.x.size(3),
                outputs = c.w.size(0);
  for (index_t i = 0; i < shape.numel(); ++i) {
    const index_t o = i % outputs, x = i / outputs % shape.size(2),
                  y = i / outputs / shape.size(2) % shape.size(1),
                  n = i / outputs / shape.size(2) / shape.size(1);
    double& sum = sums[static_cast<size_t>(i)];
    sum = c.bias[o];
    for (index_t ky = 0; ky < 3; ++ky)
      for (index_t kx = 0; kx < 3; ++kx) {
        const index_t row = y + ky - c.padding[0], column = x + kx - c.padding[1];
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        for (index_t k = 0; k < channels; ++k)
          sum += double{c.x[((n * height + row) * width + column) * channels + k]} *
                 double{c.w[((o * channels + k) * 3 + ky) * 3 + kx]};
      }
  }
  return sums;
}

TEST(winograd_convolution, is_near_the_sums_in_every_record) {
  const std::vector<const Kernel*> kernels = records();
  ASSERT_GE(kernels.size(), 2u);
  for (const Case& c : cases) {
    const Call call(c);
    const std::vector<double> want = sums_of(call);
    for (const Kernel* k : kernels) {
      const Array got = call.run(*k);
      // the terms are at most 1, and roundings add up like random steps
      const double most = 1e-6 * std::sqrt(static_cast<double>(c.input[3]) * 9 + 1);
      for (index_t i = 0; i < got.numel(); ++i)
        ASSERT_NEAR(got[i], want[static_cast<size_t>(i)], most)
            << k->name << ", case " << &c - cases << ", element " << i;
    }
  }
}

TEST(winograd_convolution, has_the_same_bits_with_packed_weights_and_with_threads) {
  ThreadPool pool(3);
  for (const Kernel* k : records())
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message() << k->name << ", case " << &c - cases);
      const Call call(c, false);
      const Array want = call.run(*k);
      EXPECT_TRUE(same_bits(call.run(*k, call.w.ref(), pool.threads()), want)) << "threads";
      if (bytes_of_winograd_panels(*call.w.ref()) == 0) continue;
      const Transformed packed(*call.w.ref());
      EXPECT_TRUE(same_bits(call.run(*k, &packed.ref), want)) << "packed";
      EXPECT_TRUE(same_bits(call.run(*k, &packed.ref, pool.threads()), want))
          << "packed, with threads";
    }
}

TEST(winograd_convolution, of_filters_in_halves_is_that_of_the_widened_filters) {
  for (const Kernel* k : records())
    for (const Layout layout : {Layout::dense_f16, Layout::dense_bf16})
      for (const Case& c : cases) {
        SCOPED_TRACE(::testing::Message() << k->name << ", case " << &c - cases);
        Call call(c, false);
        const tests::Stored halves(*call.w.ref(), layout);
        const Array got = call.run(*k, halves.ref());
        const std::vector<float> wide = halves.widened();
        std::memcpy(call.w.data(), wide.data(),
                    static_cast<size_t>(call.w.numel()) * sizeof(float));
        EXPECT_TRUE(same_bits(got, call.run(*k)));
        if (bytes_of_winograd_panels(*call.w.ref()) == 0) continue;
        const Transformed packed(*halves.ref());
        EXPECT_TRUE(same_bits(got, call.run(*k, &packed.ref))) << "packed";
      }
}

TEST(winograd_convolution, has_the_same_bits_at_all_levels_with_fused_multiply_adds) {
  const Kernel* first = nullptr;
  for (const Kernel* k : kernels_of(ops::taper_winograd_convolution)) {
    if (k->needs == CpuFeatures{}) continue;
    if (first == nullptr) first = k;
    for (const Case& c : cases) {
      const Call call(c);
      EXPECT_TRUE(same_bits(call.run(*k), call.run(*first))) << k->name;
    }
  }
}

TEST(winograd_convolution, runs_programs_with_the_bits_of_pointwise) {
  ThreadPool pool(2);
  const Array residual = Array::random({2, 7, 9, 17}, 5);
  const std::pair<std::vector<int64_t>, std::vector<double>> programs[] = {
      {{8, 0, 0, 0, 0}, {}},                 // relu
      {{28, 0, 0, -1, -2}, {-0.5, 1}},       // hardtanh
      {{17, 0, 0, 0, 0, 2, 1, 0, 1, 0}, {}}  // x sigmoid(x)
  };
  for (const Kernel* k : records()) {
    const Kernel* pointwise = nullptr;
    for (const KernelSet set : {optimized::all, portable::all})
      for (const Kernel* p : set)
        if (p->op == &ops::taper_pointwise && p->needs == k->needs) pointwise = p;
    if (pointwise == nullptr) continue;
    Call call(cases[1]);
    const Array plain = call.run(*k);
    const auto expect = [&](const std::vector<int64_t>& steps, const std::vector<double>& constants,
                            const std::vector<const TensorRef*>& others) {
      call.steps = steps, call.constants = constants, call.others = others;
      Array want = call.result(77);
      std::vector<const TensorRef*> inputs{plain.ref()};
      inputs.insert(inputs.end(), others.begin(), others.end());
      Slot list{}, numbers{};
      list.tensors = inputs.data(), list.size = uint32_t(inputs.size()), list.kind = Kind::tensor;
      numbers.reals = constants.data(), numbers.size = uint32_t(constants.size());
      numbers.kind = Kind::real, list.present = numbers.present = true;
      tests::call(*pointwise, {list, slot(steps), numbers, slot(want)});
      EXPECT_TRUE(same_bits(call.run(*k), want)) << k->name;
      EXPECT_TRUE(same_bits(call.run(*k, call.w.ref(), pool.threads()), want)) << k->name;
    };
    for (const auto& [steps, constants] : programs) expect(steps, constants, {});
    expect({0, 0, 0, 1, 0, 8, 0, 2, 0, 0}, {}, {residual.ref()});  // relu(x + residual)
  }
}

TEST(winograd_convolution, refuses_filters_that_are_not_3_by_3) {
  const Array x({1, 8, 8, 4}), out({1, 8, 8, 16});
  Slot none{};
  none.kind = Kind::tensor, none.present = true;
  const std::vector<int64_t> padding{1, 1}, no_steps;
  for (const std::vector<index_t>& sizes : {std::vector<index_t>{16, 4, 3, 1},
                                            {16, 4, 1, 3},
                                            {16, 4, 5, 5},
                                            {16, 4, 3},
                                            {16, 2, 3, 3}}) {
    const Array w(sizes);
    for (const Kernel* k : records()) {
      Facts<Extent> facts;
      TensorType<Extent> result;
      const std::vector<Slot> slots{slot(x), slot(w),        absent(), slot(padding),
                                    none,    slot(no_steps), none,     slot(out)};
      EXPECT_FALSE(k->shape(facts, slots.data(), &result)) << k->name;
    }
  }
}

TEST(winograd_convolution, needs_no_less_scratch_for_more) {
  const auto scratch = [](const Kernel& k, const Case& c) {
    const Call call(c);
    const Array out = call.result(0);
    Slot none{};
    none.kind = Kind::tensor, none.present = true;
    const std::vector<int64_t> no_steps;
    alignas(8) std::byte plan[max_plan_bytes];
    Context context;
    const std::vector<Slot> slots{slot(call.x), slot(call.w),   absent(), slot(call.padding),
                                  none,         slot(no_steps), none,     slot(out)};
    EXPECT_EQ(k.prepare(context, plan, slots.data()), Error::ok);
    return context.scratch_bytes;
  };
  for (const Kernel* k : kernels_of(ops::taper_winograd_convolution)) {
    size_t before = 0;
    for (const index_t channels : {1, 15, 16, 40, 64, 65, 128, 250, 256, 400, 600}) {
      const size_t now = scratch(*k, {{1, 9, 12, channels}, 16});
      EXPECT_GE(now, before) << k->name << ": " << channels << " channels";
      before = now;
    }
    before = 0;
    for (const index_t height : {2, 3, 4, 9, 10, 30, 31, 60}) {
      const size_t now = scratch(*k, {{1, height, 12, 40}, 16});
      EXPECT_GE(now, before) << k->name << ": " << height << " rows";
      before = now;
    }
  }
}

TEST(winograd_panels, lie_as_the_format_says) {
  const Array w = Array::random({21, 5, 3, 3}, 1);
  ASSERT_EQ(bytes_of_winograd_panels(*w.ref()), size_t{1024 * 5 * 2});
  const Transformed packed(*w.ref());
  const auto line = [](float a, float b, float c) {
    return std::array<float, 4>{a, ((a + c) + b) / 2, ((a + c) - b) / 2, c};
  };
  for (index_t n = 0; n < 32; ++n)
    for (index_t k = 0; k < 5; ++k) {
      std::array<float, 4> columns[3] = {};
      if (n < 21)
        for (index_t x = 0; x < 3; ++x) {
          const float* g = w.data() + (n * 5 + k) * 9 + x;
          columns[x] = line(g[0], g[3], g[6]);
        }
      for (size_t i = 0; i < 4; ++i) {
        const std::array<float, 4> row = line(columns[0][i], columns[1][i], columns[2][i]);
        for (size_t j = 0; j < 4; ++j)
          ASSERT_EQ(packed.floats[(4 * i + j) * 32 * 5 +
                                  static_cast<size_t>((n / 16 * 5 + k) * 16 + n % 16)],
                    row[j]);
      }
    }
  EXPECT_EQ(bytes_of_winograd_panels(*Array({15, 5, 3, 3}).ref()), 0u);
  EXPECT_EQ(bytes_of_winograd_panels(*Array({16, 5, 3, 1}).ref()), 0u);
  EXPECT_EQ(bytes_of_winograd_panels(*Array({16, 0, 3, 3}).ref()), 0u);
  EXPECT_EQ(bytes_of_winograd_panels(*Array({16, 5, 9}).ref()), 0u);
}

}  // namespace
}  // namespace taper::tests
