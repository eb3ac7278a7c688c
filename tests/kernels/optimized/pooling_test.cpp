// Max and average pooling of every CPU level, with channels first and last, against the portable
// pooling that models have had from the start: the same bits.
#include <cmath>
#include <cstring>
#include <optional>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

struct Case {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode;
};
const Case cases[] = {
    {{2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, {{3, 3}, {2, 2}, {0, 0}, {1, 1}, true},
    {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, false},
    {{2, 3}, {}, {1, 0}, {1, 1}, true},      {{1, 1}, {3, 2}, {0, 0}, {1, 1}, false},
    {{5, 4}, {3, 3}, {2, 2}, {1, 1}, true},  {{2, 2}, {1, 1}, {2, 2}, {4, 4}, false},
    {{3, 2}, {1, 4}, {2, 1}, {2, 3}, false}, {{9, 7}, {1, 1}, {4, 3}, {1, 1}, false},
    {{3, 9}, {2, 2}, {1, 4}, {1, 1}, false}, {{2, 12}, {1, 1}, {1, 6}, {1, 1}, false},
    {{2, 2}, {5, 5}, {1, 1}, {1, 1}, true},  {{4, 3}, {2, 3}, {0, 1}, {1, 5}, true},
};

/// Sizes of (batch, channels, height, width).
using Sizes = std::vector<index_t>;
const Sizes images[] = {{2, 1, 14, 13},  {1, 3, 17, 16},  {1, 7, 13, 40}, {2, 8, 12, 31},
                        {1, 17, 15, 13}, {1, 64, 13, 12}, {1, 2, 13, 301}};

/// Numbers among which are those that pooling treats apart, some of each kind in most windows.
Array image(const Sizes& sizes, std::initializer_list<float> special) {
  Array x = Array::random(sizes, 11);
  std::mt19937 random(12);
  for (index_t i = 0; i < x.numel(); ++i)
    if (random() % 3 == 0) x[i] = special.begin()[random() % special.size()];
  return x;
}
Array channels_last(const Array& x) {
  const index_t n = x.size(0), c = x.size(1), plane = x.size(2) * x.size(3);
  Array y({n, x.size(2), x.size(3), c});
  for (index_t b = 0; b < n; ++b)
    for (index_t k = 0; k < c; ++k)
      for (index_t i = 0; i < plane; ++i) y[(b * plane + i) * c + k] = x[(b * c + k) * plane + i];
  return y;
}

/// The sizes of the result, by the operator's rule; none if it refuses the case.
std::optional<Sizes> result_sizes(const Kernel& kernel, const std::vector<Slot>& arguments) {
  Facts<Extent> facts;
  TensorType<Extent> results[2];
  if (!kernel.shape(facts, arguments.data(), results)) return {};
  Sizes sizes;
  for (int d = 0; d < results[0].rank; ++d)
    sizes.push_back(static_cast<index_t>(results[0].sizes[d].value));
  return sizes;
}

/// The portable record for f32, and those of this machine's other levels.
std::vector<const Kernel*> records(const Operator& op) {
  std::vector<const Kernel*> found = kernels_of(op);
  for (const Kernel* k : portable::all)
    if (k->op == &op && k->expected[0].dtypes == one(DType::f32)) found.push_back(k);
  return found;
}

void expect_same_bits(const Array& got, const Array& want, const Kernel& kernel, size_t which) {
  ASSERT_EQ(got.numel(), want.numel());
  for (index_t i = 0; i < want.numel(); ++i)
    ASSERT_EQ(std::memcmp(&got.data()[i], &want.data()[i], sizeof(float)), 0)
        << kernel.name << ", case " << which << ", element " << i << ": " << got[i] << ", not "
        << want[i];
}

/// Compares `first` (channels first; may be nullptr) and `last` (channels last) with `reference`.
int compare(const Operator& reference, const Operator* first, const Operator& last,
            std::initializer_list<float> special,
            const std::vector<std::vector<Slot>>& parameters) {
  const Kernel& truth = *records(reference).back();
  ThreadPool pool(3);
  int compared = 0;
  for (const Sizes& sizes : images) {
    const Array x = image(sizes, special), x_last = channels_last(x);
    for (size_t which = 0; which < parameters.size(); ++which) {
      std::vector<Slot> slots = {slot(x)};
      slots.insert(slots.end(), parameters[which].begin(), parameters[which].end());
      const std::optional<Sizes> y_sizes = result_sizes(truth, slots);
      if (!y_sizes) continue;
      Array want(*y_sizes, 5);
      std::vector<int64_t> indices(static_cast<size_t>(want.numel()));
      const TensorRef indices_ref{indices.data(), &want.shape(), DType::i64};
      slots.push_back(slot(want));
      if (truth.result_count == 2) slots.push_back(slot(&indices_ref));
      call(truth, slots);
      slots.resize(parameters[which].size() + 1);
      const auto expect = [&](const Operator& op, const Array& argument, const Array& result) {
        slots[0] = slot(argument);
        for (const Kernel* kernel : records(op))
          for (const Threads* t : {static_cast<const Threads*>(nullptr), pool.threads()}) {
            Array y(result_sizes(*kernel, slots).value(), 7);
            slots.push_back(slot(y));
            call(*kernel, slots, t);
            slots.pop_back();
            expect_same_bits(y, result, *kernel, which);
            ++compared;
          }
      };
      if (first != nullptr) expect(*first, x, want);
      expect(last, x_last, channels_last(want));
    }
  }
  return compared;
}

TEST(max_pool2d, has_the_bits_of_the_one_with_indices_at_every_level_and_layout) {
  std::vector<std::vector<Slot>> parameters;
  for (const Case& c : cases)
    parameters.push_back(
        {slot(c.kernel), slot(c.stride), slot(c.padding), slot(c.dilation), slot(c.ceil_mode)});
  const float nan = NAN, other_nan = -std::nanf("77");
  for (const auto special : {std::initializer_list<float>{0.0f, -0.0f},
                             {-INFINITY, INFINITY, nan, other_nan},
                             {-INFINITY, -1.0f}})
    EXPECT_GE(compare(ops::max_pool2d_with_indices, &ops::max_pool2d, ops::taper_max_pool2d,
                      special, parameters),
              200);
}

TEST(max_pool2d, of_zeros_alone_gives_the_first_of_a_window) {
  std::vector<std::vector<Slot>> parameters;
  for (const Case& c : cases)
    parameters.push_back(
        {slot(c.kernel), slot(c.stride), slot(c.padding), slot(c.dilation), slot(c.ceil_mode)});
  for (const Sizes& sizes : images) {
    Array x(sizes);
    std::mt19937 random(3);
    for (index_t i = 0; i < x.numel(); ++i) x[i] = random() % 2 == 0 ? 0.0f : -0.0f;
    for (const auto& p : parameters) {
      std::vector<Slot> slots = {slot(x)};
      slots.insert(slots.end(), p.begin(), p.end());
      const Kernel& truth = *records(ops::max_pool2d_with_indices).back();
      const std::optional<Sizes> y_sizes = result_sizes(truth, slots);
      if (!y_sizes) continue;
      Array want(*y_sizes, 5);
      std::vector<int64_t> indices(static_cast<size_t>(want.numel()));
      const TensorRef indices_ref{indices.data(), &want.shape(), DType::i64};
      slots.push_back(slot(want)), slots.push_back(slot(&indices_ref));
      call(truth, slots);
      slots.pop_back();
      for (const Kernel* kernel : records(ops::max_pool2d)) {
        Array y(*y_sizes, 7);
        slots.back() = slot(y);
        call(*kernel, slots);
        expect_same_bits(y, want, *kernel, 0);
      }
    }
  }
}

TEST(avg_pool2d, has_the_same_bits_at_every_level_with_channels_last) {
  std::vector<std::vector<Slot>> parameters;
  for (const Case& c : cases)
    for (const bool count_padding : {false, true})
      for (const Slot& divisor : {absent_list(), slot(int64_t{-3})}) {
        if (c.dilation != std::vector<int64_t>{1, 1}) continue;
        parameters.push_back({slot(c.kernel), slot(c.stride), slot(c.padding), slot(c.ceil_mode),
                              slot(count_padding), divisor});
      }
  // NaNs of one kind: which of two goes on is the compiler's choice
  for (const auto special : {std::initializer_list<float>{0.0f, -0.0f}, {INFINITY, NAN}, {-0.0f}})
    EXPECT_GE(compare(ops::avg_pool2d, nullptr, ops::taper_avg_pool2d, special, parameters), 200);
}

}  // namespace
}  // namespace taper::tests
