// Products of f16 and bf16: sums of floats, rounded once.
#include <algorithm>
#include <cmath>

#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// The values of an array as f16 or bf16, with strides of its own.
class SmallArray {
 public:
  SmallArray(DType dtype, const Array& from, std::vector<index_t> order = {})
      : shape_(std::make_unique<Shape>(Shape::dense(sizes_of(*from.ref()->shape)))) {
    if (!order.empty()) {  // the last one of `order` lies densely
      index_t stride = 1;
      for (size_t i = order.size(); i-- > 0;) {
        shape_->strides[order[i]] = stride;
        stride *= shape_->sizes[order[i]] + (i + 1 == order.size() ? 3 : 0);
      }
    }
    place();
    bits_.resize(static_cast<size_t>(last_ + 1) + 32);
    ref_ = std::make_unique<TensorRef>(TensorRef{bits_.data(), shape_.get(), dtype});
    const float* value = from.data();
    for (const index_t at : places_)
      bits_[static_cast<size_t>(at)] =
          dtype == DType::f16 ? Half(*value++).bits : BFloat16(*value++).bits;
  }
  index_t numel() const { return shape_->numel(); }
  const TensorRef* ref() const { return ref_.get(); }
  /// All elements, row by row.
  std::vector<double> values() const {
    std::vector<double> all;
    all.reserve(places_.size());
    const bool half = ref_->dtype == DType::f16;
    for (const index_t at : places_) {
      const uint16_t bits = bits_[static_cast<size_t>(at)];
      all.push_back(half ? float(as<Half>(bits)) : float(as<BFloat16>(bits)));
    }
    return all;
  }
  std::vector<uint16_t> bits() const { return {bits_.begin(), bits_.begin() + numel()}; }

 private:
  static std::vector<index_t> sizes_of(const Shape& s) { return {s.sizes, s.sizes + s.rank}; }
  template <class E>
  static E as(uint16_t bits) {
    E e;
    e.bits = bits;
    return e;
  }
  /// Finds where each element lies.
  void place() {
    const Shape shape = *shape_;
    const index_t count = shape.numel();
    places_.reserve(static_cast<size_t>(count));
    for (index_t i = 0; i < count; ++i) {
      index_t at = 0, rest = i;
      for (int d = shape.rank - 1; d >= 0; --d)
        at += rest % shape.sizes[d] * shape.strides[d], rest /= shape.sizes[d];
      places_.push_back(at);
      last_ = std::max(last_, at);
    }
  }
  std::vector<index_t> places_;  ///< of the elements, row by row
  index_t last_ = -1;
  std::vector<uint16_t> bits_;
  std::unique_ptr<Shape> shape_;
  std::unique_ptr<TensorRef> ref_;
};

constexpr DType small_dtypes[] = {DType::f16, DType::bf16};

/// a b in f64, and the sums of the sizes of what is added.
struct Product {
  index_t m, k, n;
  std::vector<double> sums, magnitudes;

  Product(const SmallArray& a, const SmallArray& b, index_t rows, index_t inner, index_t columns)
      : m(rows), k(inner), n(columns) {
    const std::vector<double> x = a.values(), y = b.values();
    sums.resize(static_cast<size_t>(m * n)), magnitudes = sums;
    for (index_t i = 0; i < m; ++i)
      for (index_t p = 0; p < k; ++p) {
        const double factor = x[static_cast<size_t>(i * k + p)];
        const double* row = y.data() + p * n;
        double *sum = sums.data() + i * n, *magnitude = magnitudes.data() + i * n;
        for (index_t j = 0; j < n; ++j)
          sum[j] += factor * row[j], magnitude[j] += std::abs(factor * row[j]);
      }
  }
};

/// `got` is alpha a b + beta addend, to half a place of the dtype and the error of a sum of floats.
void expect_product(const SmallArray& got, const Product& product, const char* name,
                    double alpha = 1, const SmallArray* bias = nullptr, double beta = 1) {
  const double place = got.ref()->dtype == DType::f16 ? 1.0 / 2048 : 1.0 / 256;
  const std::vector<double> values = got.values();
  const std::vector<double> addends =
      bias != nullptr ? bias->values() : std::vector<double>(static_cast<size_t>(product.n));
  for (size_t i = 0; i < values.size(); ++i) {
    const index_t column = static_cast<index_t>(i) % product.n;
    const double want = alpha * product.sums[i] + beta * addends[static_cast<size_t>(column)];
    ASSERT_NEAR(values[i], want, place * std::abs(want) + 2e-6 * (product.magnitudes[i] + 1))
        << name << " at " << static_cast<index_t>(i) / product.n << ", " << column << " of "
        << product.m << " x " << product.k << " x " << product.n;
  }
}

TEST(small_products, are_the_products_at_every_level_size_and_layout) {
  const index_t sizes[][3] = {{1, 1, 1},    {4, 0, 5},      {7, 3, 2},     {12, 16, 32},
                              {13, 17, 33}, {1, 1100, 129}, {3, 1400, 20}, {4, 64, 19},
                              {5, 300, 70}, {300, 40, 70},  {20, 513, 530}};
  const std::vector<index_t> turned = {1, 0}, plain;
  for (const DType dtype : small_dtypes)
    for (const auto& [m, k, n] : sizes) {
      const Array left = Array::random({m, k}, 1), right = Array::random({k, n}, 2);
      const Product product(SmallArray(dtype, left), SmallArray(dtype, right), m, k, n);
      for (int layout = 0; layout < 4; ++layout) {
        const SmallArray a(dtype, left, layout & 1 ? turned : plain),
            b(dtype, right, layout & 2 ? turned : plain);
        for (const Kernel* kernel : kernels_of(ops::mm, dtype)) {
          SmallArray out(dtype, Array({m, n}, 77));
          call(*kernel, {slot(a.ref()), slot(b.ref()), slot(out.ref())});
          expect_product(out, product, kernel->name);
        }
      }
    }
}

TEST(small_products, have_an_epilogue_before_they_are_rounded) {
  const index_t m = 21, k = 70, n = 45;
  for (const DType dtype : small_dtypes)
    for (const index_t rows : {m, index_t{2}}) {
      const SmallArray a(dtype, Array::random({rows, k}, 1)),
          b(dtype, Array::random({k, n}, 2), {1, 0}), bias(dtype, Array::random({n}, 3));
      const Product product(a, b, rows, k, n);
      for (const Kernel* kernel : kernels_of(ops::addmm, dtype)) {
        SmallArray out(dtype, Array({rows, n}, 77));
        call(*kernel, {slot(bias.ref()), slot(a.ref()), slot(b.ref()), slot(0.5), slot(-1.5),
                       slot(out.ref())});
        expect_product(out, product, kernel->name, -1.5, &bias, 0.5);
      }
    }
}

TEST(small_products, of_linear_have_the_same_bits_with_threads) {
  const index_t n = 700, k = 900;
  const ThreadPool pool(4);  // cuts 25 rows to 7, 7, 7 and 4
  for (const DType dtype : small_dtypes) {
    const SmallArray w(dtype, Array::random({n, k}, 2)), bias(dtype, Array::random({n}, 3));
    for (const Kernel* kernel : kernels_of(ops::linear, dtype))
      for (const index_t m : {1, 3, 25, 40}) {
        const SmallArray x(dtype, Array::random({m, k}, 1));
        SmallArray one(dtype, Array({m, n})), four(dtype, Array({m, n}));
        call(*kernel, {slot(x.ref()), slot(w.ref()), slot(bias.ref()), slot(one.ref())});
        call(*kernel, {slot(x.ref()), slot(w.ref()), slot(bias.ref()), slot(four.ref())},
             pool.threads());
        EXPECT_EQ(one.bits(), four.bits()) << kernel->name << ", " << m << " rows";
      }
  }
}

}  // namespace
}  // namespace taper::tests
