// sort, topk, median and kthvalue beside the standard library's stable sort, over lines of every
// kind that the kernels take apart: short and long, dense and side by side.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

/// Numbers in an order that a kernel may find hard.
enum class Pattern { random, ties, equal, rising, falling, special };
constexpr Pattern patterns[] = {Pattern::random, Pattern::ties,    Pattern::equal,
                                Pattern::rising, Pattern::falling, Pattern::special};

Tensor numbers(Pattern pattern, const Ints& sizes, DType dtype) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  std::vector<double> values(static_cast<size_t>(n));
  uint64_t state = 7;
  for (size_t i = 0; i < values.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double random = static_cast<double>(state >> 11) * 0x1p-53;
    const double special[] = {0.0, -0.0, NAN, 1, INFINITY, -INFINITY, -NAN, 1e-310};
    const double whole = static_cast<double>(i);
    values[i] = pattern == Pattern::random    ? random * 200 - (dtype == DType::u8 ? 0 : 100)
                : pattern == Pattern::ties    ? std::floor(random * 5)
                : pattern == Pattern::equal   ? 3
                : pattern == Pattern::rising  ? whole / 64
                : pattern == Pattern::falling ? -whole / 64
                : is_floating(dtype)          ? special[state >> 61]
                                              : std::floor(random * 3);
  }
  return Tensor::from(values, sizes).to(dtype);
}

bool is_before(double a, double b) { return a < b || (b != b && a == a); }

/// Lines along `dim` as positions in the stable order.
struct Reference {
  std::vector<double> x;
  int64_t outer = 1, extent = 1, inner = 1;
  Reference(const Tensor& self, int64_t dim) : x(self.to(DType::f64).to_vector<double>()) {
    for (int64_t d = 0; d < self.rank(); ++d)
      (d < dim ? outer : d == dim ? extent : inner) *= self.size(d).value();
  }
  double at(int64_t line, int64_t i) const {
    return x[static_cast<size_t>((line / inner * extent + i) * inner + line % inner)];
  }
  std::vector<int64_t> order(int64_t line, bool descending) const {
    std::vector<double> values;
    for (int64_t i = 0; i < extent; ++i) values.push_back(at(line, i));
    const double* v = values.data();
    std::vector<int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.data(), order.data() + order.size(), [&](int64_t a, int64_t b) {
      return descending ? is_before(v[b], v[a]) : is_before(v[a], v[b]);
    });
    return order;
  }
  /// The first `kept` of every line, as a dense tensor holds them.
  std::vector<int64_t> first(int64_t kept, bool descending) const {
    std::vector<int64_t> first(static_cast<size_t>(outer * kept * inner));
    for (int64_t line = 0; line < outer * inner; ++line) {
      const std::vector<int64_t> ordered = order(line, descending);
      for (int64_t i = 0; i < kept; ++i)
        first[static_cast<size_t>((line / inner * kept + i) * inner + line % inner)] =
            ordered[static_cast<size_t>(i)];
    }
    return first;
  }
  /// The one of a rank in every line; `ordered` is `first(extent, false)`.
  std::vector<int64_t> of_rank(const std::vector<int64_t>& ordered, int64_t rank) const {
    std::vector<int64_t> found;
    for (int64_t line = 0; line < outer * inner; ++line)
      found.push_back(
          ordered[static_cast<size_t>((line / inner * extent + rank) * inner + line % inner)]);
    return found;
  }
};

/// The values are those at the indices, to the bit.
void expect_values_at(const Tensor& self, int64_t dim, const Tensor& values,
                      const Tensor& indices) {
  expect_same_bits(values, gather(self, dim, indices));
}

struct Line {
  Ints sizes;
  int64_t dim;
};
const std::vector<Line> lines = {{{300}, 0},      {{5, 1030}, 1},  {{70, 37}, 0}, {{3, 260, 5}, 1},
                                 {{1500, 17}, 0}, {{2, 17000}, 1}, {{2, 1}, 0},   {{140000}, 0}};

TEST(sort, is_stable_along_lines_of_every_length) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::i8, DType::u8})
    for (const Pattern pattern : patterns)
      for (const auto& [sizes, dim] : lines) {
        if (sizes[0] > 100000 && pattern != Pattern::random) continue;  // a minute under sanitizers
        const Tensor x = numbers(pattern, sizes, dtype);
        const Reference reference(x, dim);
        for (const bool descending : {false, true}) {
          const auto [values, indices] = sort(x, dim, descending);
          EXPECT_EQ(indices.to_vector<int64_t>(), reference.first(reference.extent, descending))
              << name_of(dtype) << " " << to_string(x.sizes());
          expect_values_at(x, dim, values, indices);
        }
      }
}

TEST(sort, and_topk_are_stable_at_the_edges_of_runs_and_chunks) {
  for (const int64_t n : {7, 8, 9, 15, 16, 17, 127, 128, 129, 255, 256, 257, 16383, 16384, 16385})
    for (const DType dtype : {DType::f32, DType::i64})
      for (const Pattern pattern : {Pattern::random, Pattern::ties})
        for (const bool descending : {false, true}) {
          const Tensor x = numbers(pattern, {2, n}, dtype);
          const Reference reference(x, 1);
          const std::vector<int64_t> all = reference.first(n, descending);
          SCOPED_TRACE(to_string(x.sizes()) + " " + name_of(dtype));
          EXPECT_EQ(std::get<1>(sort(x, 1, descending)).to_vector<int64_t>(), all);
          for (const int64_t k : {int64_t{127}, int64_t{128}, int64_t{129}, n - 1}) {
            if (k > n) continue;
            EXPECT_EQ(std::get<1>(topk(x, k, 1, descending)).to_vector<int64_t>(),
                      contiguous(slice(Tensor::from(all, {2, n}), 1, 0, k)).to_vector<int64_t>());
          }
        }
}

TEST(sort, takes_tensors_without_elements) {
  for (const Ints& sizes : {Ints{0}, Ints{0, 3}, Ints{3, 0}, Ints{2, 0, 3}})
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      EXPECT_EQ(argsort(zeros(Dims(sizes.begin(), sizes.end())), static_cast<int64_t>(dim))
                    .numel()
                    .value(),
                0);
}

TEST(topk, keeps_the_first_of_the_stable_order) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i16})
    for (const Pattern pattern : patterns)
      for (const auto& [sizes, dim] : lines) {
        const Tensor x = numbers(pattern, sizes, dtype);
        const Reference reference(x, dim);
        if (reference.extent > 20000) continue;
        for (const bool largest : {false, true}) {
          const std::vector<int64_t> all = reference.first(reference.extent, largest);
          for (const int64_t k : {int64_t{1}, int64_t{5}, int64_t{128}, int64_t{129}, int64_t{200},
                                  reference.extent}) {
            if (k > reference.extent) continue;
            const auto [values, indices] = topk(x, k, dim, largest);
            expect_same_bits(indices, slice(Tensor::from(all, sizes), dim, 0, k));
            expect_values_at(x, dim, values, indices);
          }
        }
      }
}

TEST(kthvalue, is_the_one_of_its_rank_in_the_stable_order) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::u8})
    for (const Pattern pattern : patterns)
      for (const auto& [sizes, dim] : lines) {
        if (sizes[0] > 100000 && pattern != Pattern::ties) continue;
        const Tensor x = numbers(pattern, sizes, dtype);
        const Reference reference(x, dim);
        const std::vector<int64_t> ordered = reference.first(reference.extent, false);
        for (const int64_t k : {int64_t{1}, (reference.extent + 2) / 3, reference.extent}) {
          const auto [values, indices] = kthvalue(x, k, dim, true);
          EXPECT_EQ(indices.to_vector<int64_t>(), reference.of_rank(ordered, k - 1))
              << name_of(dtype) << " " << to_string(x.sizes()) << " " << k;
          expect_values_at(x, dim, values, indices);
        }
      }
}

TEST(median, is_the_lower_of_two_and_the_first_nan) {
  for (const Pattern pattern : patterns)
    for (const auto& [sizes, dim] : lines) {
      const Tensor x = numbers(pattern, sizes, DType::f32);
      const Reference reference(x, dim);
      const auto [values, indices] = median(x, dim, true);
      std::vector<int64_t> want;
      for (int64_t line = 0; line < reference.outer * reference.inner; ++line) {
        int64_t nan = 0;
        while (nan < reference.extent && !std::isnan(reference.at(line, nan))) ++nan;
        want.push_back(
            nan < reference.extent
                ? nan
                : reference.order(line, false)[static_cast<size_t>((reference.extent - 1) / 2)]);
      }
      EXPECT_EQ(indices.to_vector<int64_t>(), want) << to_string(x.sizes());
      expect_values_at(x, dim, values, indices);
    }
  EXPECT_EQ(median(Tensor::from<int64_t>({4, 1, 3, 2}, {2, 2})).item<int64_t>(), 2);
  EXPECT_TRUE(std::isnan(median(zeros({0})).item()));
}

TEST(ordering, does_not_depend_on_strides_or_threads) {
  for (const auto& [sizes, dim] : {Line{{200000}, 0}, Line{{700, 90}, 0}, Line{{90, 700}, 1}}) {
    const Tensor x = random_tensor(sizes);
    for (const auto& call : std::vector<std::function<Tensor(const Tensor&)>>{
             [dim = dim](const Tensor& t) { return std::get<1>(sort(t, dim)); },
             [dim = dim](const Tensor& t) { return std::get<1>(topk(t, 9, dim)); },
             [dim = dim](const Tensor& t) { return std::get<1>(topk(t, 300, dim)); },
             [dim = dim](const Tensor& t) { return std::get<1>(median(t, dim)); },
             [dim = dim](const Tensor& t) { return std::get<1>(kthvalue(t, 7, dim)); }}) {
      expect_same_bits_with_two_threads([&] { return call(x); });
      expect_same_bits(call(scattered(x)), call(x));
    }
  }
}

}  // namespace
}  // namespace taper::eager
