// Operators that read and write where indices say, beside loops that say what they mean: over all
// dimensions, sizes that differ between tensors, and threads.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "taper/exporter/eager/ops/indexing.h"
#include "taper/kernels/portable/portable.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<double>;

int64_t count(const Ints& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}
/// Whole numbers, so that sums are exact in any order and dtype.
Tensor numbers(const Ints& sizes, int64_t seed = 1) {
  return floor(random_tensor(sizes, seed) * 4);
}
Tensor indices(const Ints& sizes, int64_t end, int64_t seed = 7, int64_t lowest = 0) {
  std::vector<int64_t> at(static_cast<size_t>(count(sizes)));
  auto state = static_cast<uint64_t>(seed);
  for (int64_t& i : at) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    i = lowest + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(end - lowest));
  }
  return Tensor::from<int64_t>(at, sizes);
}
Values values_of(const Tensor& t) { return t.to(DType::f64).to_vector<double>(); }

/// Calls body(coordinates) in row-major order.
void for_each_place(const Ints& sizes, const std::function<void(const Ints&)>& body) {
  Ints at(sizes.size(), 0);
  for (int64_t n = count(sizes); n > 0; --n) {
    body(at);
    for (size_t d = sizes.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
  }
}
size_t offset(const Ints& sizes, const Ints& at) {
  int64_t result = 0;
  for (size_t d = 0; d < sizes.size(); ++d) result = result * sizes[d] + at[d];
  return static_cast<size_t>(result);
}

struct Case {
  Ints self, index, source;
  size_t dim;
};
const Case cases[] = {
    {{9}, {30}, {30}, 0},
    {{5, 3}, {4, 2}, {6, 3}, 0},
    {{5, 3}, {4, 2}, {6, 3}, 1},
    {{3, 4, 5}, {3, 7, 5}, {3, 7, 5}, 1},
    {{3, 4, 5}, {2, 7, 1}, {3, 8, 2}, 1},
    {{3, 4, 5}, {7, 4, 5}, {7, 4, 6}, 0},
    {{3, 4, 5}, {3, 4, 9}, {3, 6, 9}, 2},
    {{2, 3, 4, 5}, {2, 1, 4, 9}, {2, 1, 4, 9}, 3},
    {{2, 6, 3, 1}, {2, 6, 3, 1}, {2, 6, 3, 1}, 1},
    {{4, 3}, {4, 0}, {4, 0}, 1},
    {{50, 200}, {90, 200}, {90, 200}, 0},
    {{50, 200}, {50, 300}, {50, 300}, 1},
    {{3, 40, 70}, {3, 90, 61}, {3, 90, 70}, 1},
    {{100, 33, 2}, {100, 80, 2}, {100, 80, 2}, 1},
};
std::string name_of(const Case& c) {
  return "self " + to_string(Dims(c.self.begin(), c.self.end())) + ", index " +
         to_string(Dims(c.index.begin(), c.index.end())) + ", dim " + std::to_string(c.dim);
}

/// What scatter_reduce means.
Values reduced(const Case& c, const Tensor& self, const Tensor& index, const Tensor& source,
               const std::string& reduce, bool include_self) {
  Values y = values_of(self);
  const Values x = values_of(source);
  const auto at = index.to_vector<int64_t>();
  std::map<size_t, int> seen;
  for_each_place(c.index, [&](const Ints& place) {
    Ints to = place;
    to[c.dim] = at[offset(c.index, place)];
    double& out = y[offset(c.self, to)];
    const double v = x[offset(c.source, place)];
    const bool first = seen[offset(c.self, to)]++ == 0 && !include_self;
    out = first || reduce == "src" ? v
          : reduce == "prod"       ? out * v
          : reduce == "amax"       ? std::max(out, v)
          : reduce == "amin"       ? std::min(out, v)
                                   : out + v;
  });
  for (const auto& [place, times] : seen)
    if (reduce == "mean") y[place] /= times + include_self;
  return y;
}

TEST(scatter, follows_its_formula_along_every_dimension) {
  for (const int threads : {1, 2})
    for (const Case& c : cases) {
      SCOPED_TRACE(name_of(c));
      set_threads(threads);
      const auto dim = static_cast<int64_t>(c.dim);
      const Tensor self = numbers(c.self), source = numbers(c.source, 2),
                   at = indices(c.index, c.self[c.dim]);
      const auto expect = [&](const Tensor& got, const char* reduce, bool include_self = true) {
        EXPECT_EQ(values_of(got), reduced(c, self, at, source, reduce, include_self)) << reduce;
      };
      expect(scatter(self, dim, at, source), "src");
      expect(scatter_add(self, dim, at, source), "sum");
      for (const bool include_self : {true, false})
        for (const char* reduce : {"sum", "amax", "amin"})
          expect(scatter_reduce(self, dim, at, source, reduce, include_self), reduce, include_self);
      EXPECT_EQ(values_of(scatter(self, dim, at, 9)),
                reduced(c, self, at, full(source.sizes(), 9), "src", true));
      const Tensor f64 = self.to(DType::f64);
      EXPECT_EQ(values_of(scatter_reduce(f64, dim, at, source.to(DType::f64), "mean")),
                reduced(c, self, at, source, "mean", true));

      Values picked;
      const Values x = values_of(self);
      for_each_place(
          c.index, [&, i = index_t{0}, from = at.to_vector<int64_t>()](const Ints& place) mutable {
            Ints place_in_self = place;
            place_in_self[c.dim] = from[static_cast<size_t>(i++)];
            picked.push_back(x[offset(c.self, place_in_self)]);
          });
      EXPECT_EQ(values_of(gather(self, dim, at)), picked);
    }
  set_threads(1);
}

// d(product)/d(factor) is the product of all other factors: beside one zero it is that zero's
// alone, beside two it is zero.
TEST(scatter_reduce, of_products_hands_a_gradient_to_a_single_zero_only) {
  for (const bool include_self : {true, false})
    for (const bool by_slices : {true, false}) {
      const Tensor self = Tensor::from<float>({2, 3, 5}, {3}).set_requires_grad();
      const Tensor source = Tensor::from<float>({0, 0, 7, 0, 4, 6}, {6}).set_requires_grad();
      const Tensor at = Tensor::from<int64_t>({0, 0, 0, 1, 1, 2}, {6});
      sum(by_slices ? index_reduce(self, 0, at, source, "prod", include_self)
                    : scatter_reduce(self, 0, at, source, "prod", include_self))
          .backward();
      const float two = include_self ? 3 : 1, three = include_self ? 5 : 1;
      EXPECT_EQ(source.grad().to_vector<float>(), (std::vector<float>{0, 0, 0, 4 * two, 0, three}));
      EXPECT_EQ(self.grad().to_vector<float>(),
                (std::vector<float>{0, 0, include_self ? 6.0f : 0.0f}));
    }
}

// A vector of indices is the same as one expanded to the slices' sizes.
TEST(index_add, and_its_kin_are_scatters_of_slices) {
  for (const int threads : {1, 2})
    for (const Ints& sizes : {Ints{6}, Ints{5, 3}, Ints{2, 3, 4}, Ints{20, 300}, Ints{2, 50, 90}})
      for (size_t d = 0; d < sizes.size(); ++d) {
        SCOPED_TRACE(to_string(Dims(sizes.begin(), sizes.end())) + " dim " + std::to_string(d));
        set_threads(threads);
        const auto dim = static_cast<int64_t>(d);
        Ints slices = sizes, ones_but_dim(sizes.size(), 1);
        slices[d] = ones_but_dim[d] = sizes[d] * 3 + 1;
        const Tensor self = numbers(sizes), source = numbers(slices, 2),
                     at = indices({slices[d]}, sizes[d]);
        const Tensor each = expand(reshape(at, Dims(ones_but_dim.begin(), ones_but_dim.end())),
                                   Dims(slices.begin(), slices.end()));
        expect_same_bits(index_add(self, dim, at, source), scatter_add(self, dim, each, source));
        expect_same_bits(index_copy(self, dim, at, source), scatter(self, dim, each, source));
        expect_same_bits(index_select(self, dim, at), gather(self, dim, each));
        expect_same_bits(index_select(self, dim, at.to(DType::i32)), gather(self, dim, each));
        expect_same_bits(index_fill(self, dim, at, 5), scatter(self, dim, each, 5));
        for (const char* reduce : {"amax", "amin", "mean"})
          expect_same_bits(index_reduce(self, dim, at, source, reduce, false),
                           scatter_reduce(self, dim, each, source, reduce, false));
      }
  set_threads(1);
}

TEST(index_put, follows_its_formula) {
  // self (a, b, c): indices replace the first, the middle, the last, the outer two, or all
  const Ints sizes{30, 20, 70};
  struct Selected {
    std::vector<int> dims;
    Ints space, values;
  };
  for (const int threads : {1, 2})
    for (const Selected& s : {Selected{{0}, {50}, {50, 20, 70}},
                              {{0}, {50}, {70}},
                              {{0}, {50}, {50, 1, 1}},
                              {{1}, {3, 15}, {30, 3, 15, 70}},
                              {{1}, {1}, {30, 1, 70}},
                              {{2}, {90}, {30, 20, 90}},
                              {{0, 2}, {40}, {40, 20}},
                              {{0, 1}, {50}, {50, 70}},
                              {{0, 1, 2}, {9000}, {9000}},
                              {{0, 1, 2}, {0}, {}}})
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(to_string(Dims(s.values.begin(), s.values.end())) + " at dimension " +
                     std::to_string(s.dims[0]));
        set_threads(threads);
        std::vector<Tensor> at(sizes.size());
        for (const int d : s.dims)
          at[static_cast<size_t>(d)] = indices(s.space, sizes[static_cast<size_t>(d)], d + 3,
                                               -sizes[static_cast<size_t>(d)]);
        const Tensor self = numbers(sizes), values = numbers(s.values, 2);
        // the positions that the indices name, one after the other, and what is written there
        const Tensor places = index(arange(30 * 20 * 70).reshape({30, 20, 70}), at);
        const Values x = values_of(expand(values, places.sizes()));
        const auto to = places.to_vector<int64_t>();
        Values y = values_of(self);
        for (size_t i = 0; i < to.size(); ++i) {
          double& out = y[static_cast<size_t>(to[i])];
          out = accumulate ? out + x[i] : x[i];
        }
        EXPECT_EQ(values_of(index_put(self, at, values, accumulate)), y);
        for (const DType dtype : {DType::f16, DType::bf16, DType::f64, DType::i64, DType::i16}) {
          const Tensor got = index_put(self.to(dtype), at, values.to(dtype), accumulate);
          EXPECT_EQ(got.dtype(), dtype);
          if (!accumulate) {
            EXPECT_EQ(values_of(got), y);
          }
        }
      }
  set_threads(1);
}

TEST(index_put, sums_halves_in_float) {
  // one after the other in f16, 2048 + 1 would stay 2048
  const Tensor x = zeros({3}, DType::f16), at = zeros({4096}, DType::i64);
  EXPECT_EQ(values_of(index_put(x, {at}, ones({}, DType::f16), true)), (Values{4096, 0, 0}));
}

/// Every dtype has a record of its own or of its size: none is converted on the way.
TEST(kernels_that_move_data, take_every_dtype_as_it_is) {
  for (const Operator* op :
       {&ops::index_Tensor, &ops::index_select, &ops::index_copy, &ops::index_fill_int_Scalar,
        &ops::gather, &ops::scatter_src, &ops::scatter_value, &ops::embedding, &ops::masked_scatter,
        &ops::where_self, &ops::slice_scatter, &ops::select_scatter, &ops::diagonal_scatter,
        &ops::as_strided_scatter, &ops::cat}) {
    DTypeSet taken = 0;
    for (const Kernel* kernel : portable::all)
      if (kernel->op == op) taken |= kernel->expected[kernel->expected_count - 1].dtypes;
    EXPECT_EQ(taken, (DTypeSet{1} << dtype_count) - 1) << op->text;
  }
}

TEST(writes_in_place, leave_self_alone_if_an_index_is_outside) {
  const Tensor x = numbers({20, 300}), bad = Tensor::from<int64_t>({0, 1, 20}, {3});
  const Tensor each = expand(bad.reshape({3, 1}), {3, 300}), rows = numbers({3, 300}, 2);
  const auto expect_untouched = [&](const std::function<void(Tensor&)>& write) {
    Tensor y = x.clone();
    EXPECT_THROW(write(y), EagerError);
    expect_same_bits(y, x);
  };
  const Location here = Location::current();
  expect_untouched([&](Tensor& y) { index_put_(y, {bad}, rows); });
  expect_untouched([&](Tensor& y) { call_in_place<ops::index_add>(here, y, 0, bad, rows, 1); });
  expect_untouched([&](Tensor& y) { call_in_place<ops::index_copy>(here, y, 0, bad, rows); });
  expect_untouched([&](Tensor& y) { call_in_place<ops::scatter_src>(here, y, 0, each, rows); });
  expect_untouched([&](Tensor& y) { call_in_place<ops::scatter_add>(here, y, 0, each, rows); });
}

TEST(embedding_bag, with_a_last_offset_needs_one) {
  const auto bags = [&](const std::vector<int64_t>& offsets) {
    const Tensor starts = Tensor::from(offsets, {static_cast<int64_t>(offsets.size())});
    return embedding_bag(ones({4, 2}), indices({3}, 4), starts, 0, {}, true);
  };
  EXPECT_EQ(bags({0, 3}).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_THROW_MESSAGE(bags({}), "include_last_offset needs an offset");
}

TEST(embedding_bag, follows_its_formula) {
  const int64_t words = 11, width = 150;
  const Tensor table = numbers({words, width}), at = indices({60}, words),
               weights = numbers({60}, 3);
  const std::vector<int64_t> starts{0, 0, 7, 20, 20, 59, 60};
  const Tensor offsets = Tensor::from<int64_t>(starts, {7});
  const auto rows = at.to_vector<int64_t>();
  const Values x = values_of(table), scale = values_of(weights);
  // as many bags as offsets, or one less
  const auto formula = [&](int64_t mode, bool weighted, bool closed, int64_t padding) {
    Values y;
    for (size_t b = 0; b + closed < starts.size(); ++b)
      for (int64_t c = 0; c < width; ++c) {
        double result = 0;
        int64_t taken = 0;
        const int64_t end = b + 1 < starts.size() ? starts[b + 1] : 60;
        for (int64_t i = starts[b]; i < end; ++i) {
          const auto k = static_cast<size_t>(i);
          if (rows[k] == padding) continue;
          const double v = x[static_cast<size_t>(rows[k] * width + c)] * (weighted ? scale[k] : 1);
          result = mode == 2 && taken > 0 ? std::max(result, v) : mode == 2 ? v : result + v;
          ++taken;
        }
        y.push_back(mode == 1 && taken > 0 ? static_cast<double>(static_cast<float>(result) /
                                                                 static_cast<float>(taken))
                                           : result);
      }
    return y;
  };
  for (const int threads : {1, 2})
    for (const int64_t mode : {0, 1, 2})
      for (const bool closed : {false, true})
        for (const int64_t padding : {-1, 3}) {
          set_threads(threads);
          const auto bags = [&](const Tensor& table, const Tensor& at, const Tensor& offsets) {
            return padding < 0 ? embedding_bag(table, at, offsets, mode, {}, closed)
                               : embedding_bag(table, at, offsets, mode, {}, closed, padding);
          };
          const Tensor got = bags(table, at, offsets);
          EXPECT_EQ(values_of(got), formula(mode, false, closed, padding)) << mode;
          expect_same_bits(bags(table, at.to(DType::i32), offsets.to(DType::i32)), got);
          expect_same_bits(bags(table.to(DType::f16), at, offsets), got.to(DType::f16));
          expect_same_bits(bags(table.to(DType::bf16), at, offsets), got.to(DType::bf16));
          // on the tape it is made of parts
          const Tensor taped = table.clone();
          taped.set_requires_grad();
          expect_same_bits(bags(taped, at, offsets).detach(), got);
        }
  set_threads(1);
  EXPECT_EQ(values_of(embedding_bag(table, at, offsets, 0, weights)), formula(0, true, false, -1));
  EXPECT_THROW(embedding_bag(table, at, offsets, 1, weights), EagerError);
  EXPECT_THROW(embedding_bag(table, at + 1, offsets), EagerError);
}

}  // namespace
}  // namespace taper::eager
