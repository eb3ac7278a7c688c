// Kernels that take their elements in blocks, at one block, one element less, one more, and several
// blocks: element by element and moving kernels, against plain loops.
#include "taper/tests/kernels/blocks.h"

#include <numeric>

#include "taper/exporter/eager/eager.h"

namespace taper::eager {
namespace {

/// Around the blocks of 128, 256, 512 and 1024 elements …
const Ints counts = {127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2049};
/// … and those of a task.
const Ints counts_of_tasks = {32767, 32768, 32769, 65537};

struct Binary {
  const char* name;
  Tensor (*call)(const Tensor& a, const Tensor& b);
  double (*formula)(double a, double b);
};

TEST(blocks, of_pointwise_operators_meet_every_element) {
  const Binary operators[] = {
      {"add", [](const Tensor& a, const Tensor& b) { return add(a, b, 2); },
       [](double a, double b) { return a + 2 * b; }},
      {"mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); },
       [](double a, double b) { return a * b; }},
      {"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
       [](double a, double b) { return std::max(a, b); }},
      {"neg", [](const Tensor& a, const Tensor&) { return neg(a); },
       [](double a, double) { return -a; }},
      {"relu", [](const Tensor& a, const Tensor&) { return relu(a); },
       [](double a, double) { return std::max(a, 0.0); }},
      {"where", [](const Tensor& a, const Tensor& b) { return where(lt(a, b), a, b * 3); },
       [](double a, double b) { return a < b ? a : b * 3; }},
      {"masked_fill", [](const Tensor& a, const Tensor& b) { return masked_fill(a, b > 0, 7); },
       [](double a, double b) { return b > 0 ? 7 : a; }},
      {"div floor", [](const Tensor& a, const Tensor& b) { return div(a, b * 2 + 1, "floor"); },
       [](double a, double b) { return std::floor(a / (2 * b + 1)); }},
  };
  const auto check = [&](int64_t n, DType dtype) {
    const Tensor a = whole_numbers({n}, dtype, 4, 1), b = whole_numbers({n}, dtype, 4, 2);
    const std::vector<double> x = elements(a), y = elements(b);
    for (const Binary& op : operators) {
      SCOPED_TRACE(std::string(op.name) + " of " + std::to_string(n) + " " + name_of(dtype));
      std::vector<double> want(x.size());
      for (size_t i = 0; i < x.size(); ++i) want[i] = op.formula(x[i], y[i]);
      expect_elements(op.call(a, b), want);
      expect_elements(op.call(scattered(a), b), want);
      expect_elements(op.call(a, scattered(b)), want);
    }
  };
  for (const int64_t n : counts)
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8})
      check(n, dtype);
  for (const int64_t n : counts_of_tasks)
    for (const DType dtype : {DType::f32, DType::bf16}) check(n, dtype);
}

TEST(blocks, of_fused_chains_meet_every_element) {
  const Ints program = {/*mul*/ 2, 0, 0,          1, 0, /*sub*/ 1, 0, 3,
                        2,         0, /*relu*/ 8, 0, 3, 0,         0};
  Ints sizes = counts;
  sizes.insert(sizes.end(), counts_of_tasks.begin(), counts_of_tasks.end());
  for (const int64_t n : sizes) {
    const Tensor x = whole_numbers({n}), y = whole_numbers({n}, DType::f32, 4, 2),
                 number = full({}, 3.0);
    const std::vector<double> a = elements(x), b = elements(y);
    std::vector<double> want(a.size());
    for (size_t i = 0; i < a.size(); ++i) want[i] = std::max(a[i] * b[i] - 3, 0.0);
    expect_elements(
        call<ops::taper_pointwise>(Location::current(), std::vector<Tensor>{x, y, number}, program,
                                   std::vector<double>{}),
        want);
  }
}

// Some functions take a longer way for a few arguments, and look for these part by part.
TEST(blocks, of_hard_arguments_leave_their_neighbours_as_they_are) {
  using Function = Tensor (*)(const Tensor&, Location);
  const Function functions[] = {sin, cos, tan, exp, log, tanh, erf, lgamma, log1p, expm1};
  const int64_t n = 1030;
  const Tensor easy = whole_numbers({n}) * 0.25;
  for (const float hard : {1e6f, -3e9f, 1e-40f, NAN, INFINITY})
    for (const int64_t place : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{511}, n - 1}) {
      const Tensor x = easy.clone();
      x.select(0, place).fill_(hard);
      for (const Function f : functions) {
        const Tensor y = f(x, Location::current()), all_easy = f(easy, Location::current());
        Tensor want = all_easy.clone();
        want.select(0, place).copy_(f(full({}, hard), Location::current()));
        expect_same_bits(y, want);
      }
      if (std::isnan(hard) || std::isinf(hard)) continue;
      std::vector<double> want = elements(x);
      for (double& v : want) v = std::trunc(v);
      EXPECT_EQ(elements(x.to(DType::i64)), want);
    }
}

TEST(blocks, of_broadcast_rows_meet_every_element) {
  for (const int64_t n : {1, 15, 17, 127, 129, 255, 256, 257, 1025})
    for (const DType dtype : {DType::f32, DType::f16, DType::i64}) {
      const Tensor x = whole_numbers({37, n}, dtype), row = whole_numbers({n}, dtype, 4, 2),
                   column = whole_numbers({37, 1}, dtype, 4, 3);
      const std::vector<double> a = elements(x), r = elements(row), c = elements(column);
      std::vector<double> with_row(a.size()), with_column(a.size());
      const size_t width = static_cast<size_t>(n);
      for (size_t i = 0; i < a.size(); ++i)
        with_row[i] = a[i] * r[i % width], with_column[i] = a[i] + c[i / width];
      expect_elements(x * row, with_row);
      expect_elements(row * scattered(x), with_row);
      expect_elements(x + column, with_column);
    }
}

TEST(blocks, of_casts_meet_every_element) {
  Ints sizes = counts;
  sizes.insert(sizes.end(), counts_of_tasks.begin(), counts_of_tasks.end());
  const DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                          DType::i64, DType::i32, DType::i16, DType::i8};
  for (const DType from : dtypes)
    for (const DType to : dtypes)
      for (const int64_t n : sizes) {
        if (n > 2048 && from != DType::f32 && to != DType::f32) continue;
        SCOPED_TRACE(std::string(name_of(from)) + " to " + name_of(to));
        const Tensor x = whole_numbers({n}, DType::f64, 50);
        const std::vector<double> want = x.to_vector<double>();
        const Tensor narrow = x.to(from);
        ASSERT_EQ(elements(narrow.to(to)), want);
        ASSERT_EQ(elements(scattered(narrow).to(to)), want);
        Tensor gaps = zeros({n, 2}, to).select(1, 0);
        gaps.copy_(narrow);
        ASSERT_EQ(elements(gaps), want);
      }
}

/// A permuted copy, by the definition.
template <class T>
std::vector<T> permuted(const std::vector<T>& x, const Ints& sizes, const Ints& order) {
  const size_t rank = sizes.size();
  std::vector<size_t> strides(rank, 1), at(rank, 0);
  for (size_t d = rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * static_cast<size_t>(sizes[d + 1]);
  std::vector<T> y;
  y.reserve(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    size_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset += at[d] * strides[static_cast<size_t>(order[d])];
    y.push_back(x[offset]);
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < static_cast<size_t>(sizes[static_cast<size_t>(order[d])])) break;
      at[d] = 0;
    }
  }
  return y;
}
template <class T>
void expect_permuted_copies(const Ints& sizes) {
  size_t count = 1;
  for (const int64_t n : sizes) count *= static_cast<size_t>(n);
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i * 2654435761u >> 7);
  const Tensor x = Tensor::from(values, sizes);
  Ints order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    SCOPED_TRACE(to_string(x.permute(order).sizes()) + " " + name_of(x.dtype()));
    const std::vector<T> want = permuted(values, sizes, order);
    const Tensor view = x.permute(order);
    ASSERT_EQ(contiguous(view).template to_vector<T>(), want);
    ASSERT_EQ(contiguous(scattered(view)).template to_vector<T>(), want);  // both sides strided
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(blocks, of_permuted_copies_meet_every_element) {
  for (const Ints& sizes : std::vector<Ints>{{3, 33},
                                             {4, 4},
                                             {15, 17},
                                             {16, 32},
                                             {31, 65},
                                             {32, 64},
                                             {33, 63},
                                             {64, 129},
                                             {65, 383},
                                             {66, 385},
                                             {1, 1000},
                                             {2, 33, 65},
                                             {31, 5, 64},
                                             {17, 66, 3},
                                             {2, 3, 33, 17},
                                             {3, 33, 2, 16}}) {
    expect_permuted_copies<uint8_t>(sizes);
    expect_permuted_copies<int16_t>(sizes);
    expect_permuted_copies<float>(sizes);
    expect_permuted_copies<int64_t>(sizes);
  }
}

TEST(blocks, of_masks_meet_every_element) {
  Ints sizes = counts;
  for (const int64_t n : {8191, 8192, 8193, 16385, 530000}) sizes.push_back(n);  // and its tasks
  for (const int64_t n : sizes)
    for (const DType dtype : {DType::f32, DType::u8, DType::f16, DType::i64}) {
      if (n > 20000 && dtype != DType::f32) continue;
      SCOPED_TRACE(std::to_string(n) + " " + name_of(dtype));
      const Tensor x = whole_numbers({n}, DType::i64, 50).to(dtype), source = flip(x, {0}),
                   mask = whole_numbers({n}, DType::i64, 3, 2) > 0;
      const std::vector<double> a = elements(x), from = elements(source), m = elements(mask);
      std::vector<double> chosen, places, scattered_in = a;
      size_t next = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        if (m[i] == 0) continue;
        chosen.push_back(a[i]), places.push_back(static_cast<double>(i));
        scattered_in[i] = from[next++];
      }
      EXPECT_EQ(elements(masked_select(x, mask)), chosen);
      EXPECT_EQ(elements(nonzero(mask)), places);
      EXPECT_EQ(elements(masked_scatter(x, mask, source)), scattered_in);
      EXPECT_EQ(elements(masked_scatter(scattered(x), scattered(mask), source)), scattered_in);
    }
}

TEST(blocks, of_created_elements_meet_every_one) {
  Ints sizes = counts;
  sizes.insert(sizes.end(), counts_of_tasks.begin(), counts_of_tasks.end());
  for (const int64_t n : sizes)
    for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32}) {
      std::vector<double> want(static_cast<size_t>(n));
      for (size_t i = 0; i < want.size(); ++i) want[i] = 3 * static_cast<double>(i) - 7;
      ASSERT_EQ(elements(arange(-7, 3 * n - 7, 3, dtype)), want) << n << name_of(dtype);
      ASSERT_EQ(elements(full({n}, 5, dtype)), std::vector<double>(want.size(), 5));
    }
}

TEST(blocks, of_random_numbers_are_one_stream) {
  const auto first = [](int64_t n, DType dtype) { return random_tensor({n}, 7, dtype); };
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor all = first(70000, dtype);
    for (const int64_t n : counts) expect_same_bits(first(n, dtype), slice(all, 0, 0, n));
    for (const int64_t n : counts_of_tasks) expect_same_bits(first(n, dtype), slice(all, 0, 0, n));
  }
}

/// Element (row, i) of the result is element `from(i)` of the row, or `fill` outside of it.
template <class From>
std::vector<double> moved(const Tensor& x, int64_t width, double fill, const From& from) {
  const std::vector<double> a = elements(x);
  const int64_t own = x.size(-1).value();
  std::vector<double> y;
  for (size_t row = 0; row < a.size(); row += static_cast<size_t>(own))
    for (int64_t i = 0; i < width; ++i) {
      const int64_t at = from(i);
      y.push_back(at < 0 || at >= own ? fill : a[row + static_cast<size_t>(at)]);
    }
  return y;
}

TEST(blocks, of_moved_rows_meet_every_element) {
  for (const int64_t n : {15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 1023, 1025, 40000})
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
      const Tensor x = whole_numbers({3, n}, DType::i64, 50).to(dtype);
      EXPECT_EQ(elements(flip(x, {1})), moved(x, n, 0, [=](int64_t i) { return n - 1 - i; }));
      EXPECT_EQ(elements(roll(x, {5}, {1})),
                moved(x, n, 0, [=](int64_t i) { return (i + n - 5) % n; }));
      EXPECT_EQ(elements(constant_pad_nd(x, {3, 2}, 9)),
                moved(x, n + 5, 9, [](int64_t i) { return i - 3; }));
      EXPECT_EQ(elements(repeat(x, {1, 2})), moved(x, 2 * n, 0, [=](int64_t i) { return i % n; }));
      EXPECT_EQ(elements(cat({x, slice(x, 1, 0, 7), x}, 1)), moved(x, 2 * n + 7, 0, [=](int64_t i) {
                  return i < n ? i : i < n + 7 ? i - n : i - n - 7;
                }));
      EXPECT_EQ(elements(contiguous(slice(x, 1, 1, INT64_MAX, 3))),
                moved(x, (n + 1) / 3, 0, [](int64_t i) { return 3 * i + 1; }));
    }
}

TEST(blocks, of_picked_rows_meet_every_element) {
  for (const int64_t n : {1, 31, 32, 33, 63, 65, 255, 256, 257, 1025})
    for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
      const Tensor table = whole_numbers({9, n}, dtype),
                   rows = Tensor::from<int64_t>({8, 0, 3, 3, 5}, {5});
      const std::vector<double> a = elements(table);
      std::vector<double> picked, bags(static_cast<size_t>(2 * n)), added(a.size());
      const int64_t at[] = {8, 0, 3, 3, 5};
      for (size_t r = 0; r < 5; ++r)
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
          const size_t place = static_cast<size_t>(at[r] * n) + i;
          picked.push_back(a[place]);
          bags[(r < 2 ? 0 : static_cast<size_t>(n)) + i] += a[place];
          added[place] += a[place];
        }
      EXPECT_EQ(elements(embedding(table, rows)), picked);
      EXPECT_EQ(elements(index_select(table, 0, rows)), picked);
      EXPECT_EQ(elements(gather(table, 0, expand(rows.unsqueeze(1), {5, n}))), picked);
      EXPECT_EQ(elements(index_add(zeros_like(table), 0, rows, index_select(table, 0, rows))),
                added);
      const Tensor sums = std::get<0>(call<ops::embedding_bag>(
          Location::current(), table, rows, Tensor::from<int64_t>({0, 2}, {2}), false, 0, false,
          std::nullopt, false));
      EXPECT_EQ(elements(sums), bags);
    }
}

TEST(blocks, of_resampled_rows_meet_every_element) {
  for (const int64_t n : {127, 128, 129, 255, 256, 257, 513}) {
    const Tensor x = whole_numbers({2, 3, 50}),
                 bytes = (whole_numbers({2, 3, 4, 50}, DType::i64, 100) + 100).to(DType::u8);
    EXPECT_EQ(elements(interpolate(x, {n})), moved(x, n, 0, [=](int64_t i) { return i * 50 / n; }));
    EXPECT_EQ(elements(interpolate(bytes, {4, n})),
              moved(bytes, n, 0, [=](int64_t i) { return i * 50 / n; }));
    // between the neighbours of the place that the pixel's middle has
    const std::vector<double> a = elements(x);
    std::vector<double> want;
    for (size_t row = 0; row < a.size(); row += 50)
      for (int64_t i = 0; i < n; ++i) {
        const double place =
            std::max(0.0, (static_cast<double>(i) + 0.5) * 50 / static_cast<double>(n) - 0.5);
        const size_t left = static_cast<size_t>(place), right = std::min<size_t>(left + 1, 49);
        want.push_back(a[row + left] +
                       (a[row + right] - a[row + left]) * (place - static_cast<double>(left)));
      }
    expect_close(interpolate(x, {n}, "linear"), want, 1e-4);
  }
}

// Columns of bytes that are resampled along their length do not know of each other.
TEST(blocks, of_resampled_columns_of_bytes_meet_every_element) {
  for (const int64_t n : {127, 128, 129, 257, 400}) {
    const Tensor x = (whole_numbers({1, 2, 5, n}, DType::i64, 120) + 120).to(DType::u8);
    for (const char* mode : {"bilinear", "bicubic"}) {
      std::vector<Tensor> parts;
      for (int64_t at = 0; at < n; at += 50) {
        const Tensor part = contiguous(slice(x, 3, at, std::min(n, at + 50)));
        parts.push_back(interpolate(part, {8, part.size(-1)}, mode));
      }
      expect_same_bits(interpolate(x, {8, n}, mode), cat(parts, 3));
    }
  }
}

TEST(blocks, of_sampled_positions_meet_every_one) {
  for (const int64_t width : {15, 16, 17, 31, 32, 33, 50}) {
    const Tensor image = whole_numbers({2, 3, 5, width});
    image.set_requires_grad();
    // every pixel, from the last one to the first
    std::vector<float> positions;
    for (int batch = 0; batch < 2; ++batch)
      for (int64_t h = 5; h-- > 0;)
        for (int64_t w = width; w-- > 0;)
          positions.insert(positions.end(),
                           {2 * static_cast<float>(w) / static_cast<float>(width - 1) - 1,
                            static_cast<float>(h) / 2 - 1});
    const Tensor grid = Tensor::from(positions, {2, 5, width, 2}),
                 dy = whole_numbers({2, 3, 5, width}, DType::f32, 4, 2);
    for (const char* mode : {"nearest", "bilinear"}) {
      const Tensor y = grid_sample(image, grid, mode, "border", true);
      expect_close(y, elements(flip(image, {2, 3})), 1e-4);
      expect_close(grad({y}, {image}, {dy})[0], elements(flip(dy, {2, 3})), 1e-4);
    }
  }
}

TEST(blocks, of_pooled_rows_meet_every_element) {
  for (const int64_t n : {15, 16, 17, 18, 63, 65, 255, 256, 257, 259, 513})
    for (const int64_t stride : {1, 2}) {
      const Tensor x = whole_numbers({1, 2, 3, n}, DType::f32, 100);
      const std::vector<double> a = elements(x);
      std::vector<double> most, mean;
      for (size_t row = 0; row < a.size(); row += static_cast<size_t>(n))
        for (int64_t i = 0; i + 3 <= n; i += stride) {
          const double* const first = &a[row + static_cast<size_t>(i)];
          most.push_back(std::max({first[0], first[1], first[2]}));
          mean.push_back((first[0] + first[1] + first[2]) / 3);
        }
      expect_elements(max_pool2d(x, {1, 3}, {1, stride}), most);
      expect_close(avg_pool2d(x, {1, 3}, {1, stride}), mean, 1e-6);
    }
}

TEST(blocks, of_distances_meet_every_element) {
  for (const int64_t length : {1, 2, 3, 7, 8, 9, 15, 16, 17, 129, 1025})
    for (const int64_t points : {3, 17, 33}) {
      const Tensor x = whole_numbers({5, length}),
                   y = whole_numbers({points, length}, DType::f32, 4, 2);
      const std::vector<double> a = elements(x), b = elements(y);
      std::vector<double> sums, roots, most;
      for (size_t i = 0; i < a.size(); i += static_cast<size_t>(length))
        for (size_t j = 0; j < b.size(); j += static_cast<size_t>(length)) {
          double sum = 0, squares = 0, largest = 0;
          for (size_t k = 0; k < static_cast<size_t>(length); ++k) {
            const double d = std::fabs(a[i + k] - b[j + k]);
            sum += d, squares += d * d, largest = std::max(largest, d);
          }
          sums.push_back(sum), roots.push_back(std::sqrt(squares)), most.push_back(largest);
        }
      expect_elements(cdist(x, y, 1), sums);
      expect_close(cdist(x, y, 2), roots, 1e-5);
      expect_elements(cdist(x, y, INFINITY), most);
    }
}

}  // namespace
}  // namespace taper::eager
