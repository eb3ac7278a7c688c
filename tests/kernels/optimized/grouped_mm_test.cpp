// _grouped_mm at every level: each group has the bits of mm.
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// A matrix over some of the elements of another, from the given one on.
struct Part {
  Shape shape;
  TensorRef ref;

  Part(const Array& of, index_t first, std::vector<index_t> sizes, std::vector<index_t> strides)
      : shape(Shape::dense(sizes)) {
    for (size_t i = 0; i < strides.size(); ++i) shape.strides[i] = strides[i];
    ref = {const_cast<float*>(of.data()) + first, &shape, DType::f32};
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
};

struct Level {
  const Kernel *mm, *grouped;
};
std::vector<Level> levels() {
  const std::vector<const Kernel*> mms = kernels_of(ops::mm),
                                   grouped = kernels_of(ops::_grouped_mm);
  std::vector<Level> all;
  for (size_t i = 0; i < mms.size() && i < grouped.size(); ++i) all.push_back({mms[i], grouped[i]});
  return all;
}

void run(const Kernel& kernel, const Array& a, const Array& b, std::vector<int32_t> offs,
         const Array& out, const Threads* threads) {
  const Shape shape = Shape::dense(std::vector<index_t>{static_cast<index_t>(offs.size())});
  const TensorRef ends{offs.data(), &shape, DType::i32};
  Slot dtype{};
  dtype.kind = Kind::dtype;
  call(kernel, {slot(a), slot(b), slot(&ends), absent(), dtype, slot(out)}, threads);
}
std::vector<float> mm(const Kernel& kernel, const Part& a, const Part& b) {
  Array out({a.shape.sizes[0], b.shape.sizes[1]});
  call(kernel, {slot(&a.ref), slot(&b.ref), slot(out)});
  return out.values();
}

constexpr index_t k = 270, n = 75;
const std::vector<int32_t> offs{1, 1, 40, 41, 300};  // of 302

TEST(grouped_mm, is_mm_of_the_rows_of_each_group) {
  ThreadPool pool(2);
  const index_t m = 302, groups = 5;
  for (const Level& level : levels())
    for (const Threads* threads : {static_cast<const Threads*>(nullptr), pool.threads()}) {
      const Array a = Array::random({m, k}, 1), b = Array::random({groups, k, n}, 2);
      Array out({m, n}, 77);
      run(*level.grouped, a, b, offs, out, threads);
      index_t begin = 0;
      for (index_t g = 0; g < groups; ++g) {
        const index_t end = offs[static_cast<size_t>(g)];
        if (end == begin) continue;
        const Part rows(a, begin * k, {end - begin, k}, {k, 1}),
            matrix(b, g * k * n, {k, n}, {n, 1});
        const std::vector<float> want = mm(*level.mm, rows, matrix);
        EXPECT_TRUE(std::equal(want.begin(), want.end(), out.data() + begin * n)) << "group " << g;
        begin = end;
      }
      for (index_t i = begin * n; i < m * n; ++i) ASSERT_EQ(out[i], 0);
    }
}
TEST(grouped_mm, is_mm_of_the_columns_of_each_group) {
  const index_t m = 9, columns = 302, groups = 5;
  for (const Level& level : levels()) {
    const Array a = Array::random({groups, m, k}, 3), b = Array::random({k, columns}, 4);
    Array out({m, columns}, 77);
    run(*level.grouped, a, b, offs, out, nullptr);
    index_t begin = 0;
    for (index_t g = 0; g < groups; ++g) {
      const index_t end = offs[static_cast<size_t>(g)], width = end - begin;
      if (width == 0) continue;
      const Part matrix(a, g * m * k, {m, k}, {k, 1}), part(b, begin, {k, width}, {columns, 1});
      const std::vector<float> want = mm(*level.mm, matrix, part);
      for (index_t i = 0; i < m * width; ++i)
        ASSERT_EQ(out[i / width * columns + begin + i % width], want[static_cast<size_t>(i)]);
      begin = end;
    }
    for (index_t i = 0; i < m; ++i)
      for (index_t j = begin; j < columns; ++j) ASSERT_EQ(out[i * columns + j], 0);
  }
}
TEST(grouped_mm, is_mm_of_each_part_of_k) {
  const index_t m = 9, depth = 302, groups = 5;
  for (const Level& level : levels()) {
    const Array a = Array::random({m, depth}, 5), b = Array::random({depth, n}, 6);
    Array out({groups, m, n}, 77);
    run(*level.grouped, a, b, offs, out, nullptr);
    index_t begin = 0;
    for (index_t g = 0; g < groups; ++g) {
      const index_t end = offs[static_cast<size_t>(g)];
      const Part left(a, begin, {m, end - begin}, {depth, 1}),
          right(b, begin * n, {end - begin, n}, {n, 1});
      const std::vector<float> want = mm(*level.mm, left, right);
      EXPECT_TRUE(std::equal(want.begin(), want.end(), out.data() + g * m * n)) << "group " << g;
      begin = end;
    }
  }
}

}  // namespace
}  // namespace taper::tests
