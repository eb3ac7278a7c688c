// Products of groups with weights in blocks: each group has the bits of block_linear.
#include <gmock/gmock.h>

#include <cmath>

#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/quantized/block_weights.h"

namespace taper::quantized {
namespace {

using tests::all_layouts, tests::Array, tests::slot, tests::Weights;

constexpr index_t depth = 256, rows = 90;
const std::vector<int32_t> offs{1, 1, 4, 80};  // of 90: one group is empty, and ten rows are left

/// An operator for groups, and the one for each of them.
struct Pair {
  const Operator *grouped, *plain;
};
const Pair pairs[] = {{&ops::taper_grouped_block_linear, &ops::taper_block_linear},
                      {&ops::taper_grouped_block_linear_q8, &ops::taper_block_linear_q8}};

struct Ends {
  std::vector<int32_t> values;
  Shape shape;
  TensorRef ref;

  explicit Ends(std::vector<int32_t> ends)
      : values(std::move(ends)),
        shape(Shape::dense(std::vector<index_t>{static_cast<index_t>(values.size())})),
        ref{values.data(), &shape, DType::i32} {}
  Ends(const Ends&) = delete;
};

/// What block_linear gives for rows [begin, end) and matrix `group` of the elements.
std::vector<float> product_of_group(const Kernel& linear, const Array& x, const Array& elements,
                                    index_t group, index_t begin, index_t end) {
  const index_t columns = elements.size(1);
  Array part({end - begin, depth}), w({columns, depth}), y({end - begin, columns}, NAN);
  std::copy_n(x.data() + begin * depth, part.numel(), part.data());
  std::copy_n(elements.data() + group * w.numel(), w.numel(), w.data());
  tests::call(linear, {slot(part), slot(w), tests::absent(), slot(y)});
  return y.values();
}

Array elements_of(const Weights& w, index_t groups, index_t columns) {
  Array elements({groups, columns, depth});
  for (index_t r = 0; r < groups * columns; ++r) w.matrix().row(r, elements.data() + r * depth);
  return elements;
}

/// 48 rows of a matrix are whole panels, 20 are not.
class grouped_block_linear : public testing::TestWithParam<index_t> {};
INSTANTIATE_TEST_SUITE_P(of_columns, grouped_block_linear, testing::Values(48, 20));

TEST_P(grouped_block_linear, is_block_linear_for_the_rows_of_each_group) {
  const index_t columns = GetParam();
  ThreadPool pool(2);
  const Ends ends(offs);
  const Array x = Array::random({rows, depth}, 5);
  for (const Layout layout : all_layouts) {
    const Weights w(layout, {4, columns, depth});
    const Array elements = elements_of(w, 4, columns);
    const std::vector<const Kernel*> linear = tests::kernels_of(all, ops::taper_block_linear),
                                     grouped =
                                         tests::kernels_of(all, ops::taper_grouped_block_linear);
    ASSERT_EQ(linear.size(), grouped.size());
    for (size_t level = 0; level < grouped.size(); ++level)
      for (const TensorRef* weight : w.refs()) {
        SCOPED_TRACE(testing::Message()
                     << grouped[level]->name << ", layout " << static_cast<int>(weight->layout));
        Array y({rows, columns}, NAN);
        tests::call(*grouped[level], {slot(x), slot(weight), slot(&ends.ref), slot(y)},
                    pool.threads());
        index_t begin = 0;
        for (index_t g = 0; g < 4; begin = offs[static_cast<size_t>(g++)]) {
          const index_t end = offs[static_cast<size_t>(g)];
          const std::vector<float> want =
              product_of_group(*linear[level], x, elements, g, begin, end);
          ASSERT_EQ(std::vector<float>(y.data() + begin * columns, y.data() + end * columns), want);
        }
        for (index_t i = begin * columns; i < rows * columns; ++i) ASSERT_EQ(y[i], 0);
      }
  }
}

/// Rounding adds an error of at most 1 / 254 to an element of the largest magnitude of its unit.
TEST_P(grouped_block_linear, rounds_its_input_in_the_other_form) {
  const index_t columns = GetParam();
  const Ends ends(offs);
  const Array x = Array::random({rows, depth}, 5);
  for (const Layout layout : all_layouts) {
    const Weights w(layout, {4, columns, depth});
    Array want({rows, columns});
    tests::call(taper_grouped_block_linear_f32,
                {slot(x), slot(w.refs()[0]), slot(&ends.ref), slot(want)});
    std::vector<float> row(depth);
    for (const Kernel* k : tests::kernels_of(all, ops::taper_grouped_block_linear_q8)) {
      std::vector<float> first;
      for (const TensorRef* weight : w.refs()) {
        SCOPED_TRACE(testing::Message()
                     << k->name << ", layout " << static_cast<int>(weight->layout));
        Array y({rows, columns}, NAN);
        tests::call(*k, {slot(x), slot(weight), slot(&ends.ref), slot(y)});
        index_t group = 0;
        for (index_t r = 0; r < rows; ++r) {
          while (group < 4 && r >= offs[static_cast<size_t>(group)]) ++group;
          for (index_t j = 0; j < columns; ++j) {
            double size = 0;
            if (group < 4) w.matrix().row(group * columns + j, row.data());
            for (const float v : row) size += double{v} * v;
            ASSERT_NEAR(y[r * columns + j], want[r * columns + j], 6 * std::sqrt(size) / 254);
          }
        }
        if (first.empty()) first = y.values();
        ASSERT_EQ(y.values(), first) << "packing changes no bit";
      }
    }
  }
}

TEST(grouped_block_linear, refuses_ends_that_do_not_ascend_within_the_rows) {
  const Weights w(Layout::q4_0, {2, 16, depth});
  const Array x({3, depth});
  Array y({3, 16});
  for (const Pair& pair : pairs)
    for (const Kernel* k : tests::kernels_of(all, *pair.grouped))
      for (const std::vector<int32_t>& wrong : {std::vector<int32_t>{2, 1}, {0, 4}, {-1, 3}}) {
        const Ends ends(wrong);
        const Slot slots[] = {slot(x), slot(w.refs()[0]), slot(&ends.ref), slot(y)};
        Context context;
        alignas(8) std::byte plan[max_plan_bytes];
        ASSERT_EQ(k->prepare(context, plan, slots), Error::ok);
        EXPECT_EQ(k->run(context, plan, slots), Error::invalid_argument) << k->name;
      }
}

TEST(grouped_block_linear, takes_groups_and_rows_of_zero) {
  struct Case {
    index_t rows, groups, columns, depth;
  };
  for (const Pair& pair : pairs)
    for (const Kernel* k : tests::kernels_of(all, *pair.grouped))
      for (const Case c :
           {Case{0, 2, 16, 64}, Case{3, 0, 16, 64}, Case{3, 2, 0, 64}, Case{3, 2, 16, 0}}) {
        SCOPED_TRACE(k->name);
        const Weights w(Layout::q4_0, {c.groups, c.columns, c.depth});
        const Array x({c.rows, c.depth});
        const Ends ends(
            std::vector<int32_t>(static_cast<size_t>(c.groups), static_cast<int32_t>(c.rows)));
        Array y({c.rows, c.columns}, 1);
        tests::call(*k, {slot(x), slot(w.refs()[0]), slot(&ends.ref), slot(y)});
        for (index_t i = 0; i < y.numel(); ++i) EXPECT_EQ(y[i], 0);
      }
}

}  // namespace
}  // namespace taper::quantized
