// Products of f16 and bf16: sums of floats, rounded once.
#include <cmath>
#include <cstring>

#include "taper/runtime/platform/pthreadpool/thread_pool.h"
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
    index_t size = 1;
    for (int d = 0; d < shape_->rank; ++d) size += (shape_->sizes[d] - 1) * shape_->strides[d];
    bits_.resize(static_cast<size_t>(size < 0 ? 0 : size) + 32);
    ref_ = std::make_unique<TensorRef>(TensorRef{bits_.data(), shape_.get(), dtype});
    for (index_t i = 0; i < numel(); ++i) set(i, from[i]);
  }
  index_t numel() const { return shape_->numel(); }
  const TensorRef* ref() const { return ref_.get(); }
  float operator[](index_t i) const {
    const uint16_t bits = bits_[static_cast<size_t>(offset(i))];
    return ref_->dtype == DType::f16 ? float(as<Half>(bits)) : float(as<BFloat16>(bits));
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
  void set(index_t i, float value) {
    bits_[static_cast<size_t>(offset(i))] =
        ref_->dtype == DType::f16 ? Half(value).bits : BFloat16(value).bits;
  }
  index_t offset(index_t i) const {
    index_t at = 0;
    for (int d = shape_->rank - 1; d >= 0; --d)
      at += i % shape_->sizes[d] * shape_->strides[d], i /= shape_->sizes[d];
    return at;
  }
  std::vector<uint16_t> bits_;
  std::unique_ptr<Shape> shape_;
  std::unique_ptr<TensorRef> ref_;
};

constexpr DType small_dtypes[] = {DType::f16, DType::bf16};

/// `got` is alpha a b + beta addend, to half a place of the dtype and the error of a sum of floats.
void expect_product(const SmallArray& got, const SmallArray& a, const SmallArray& b, index_t m,
                    index_t k, index_t n, const char* name, double alpha = 1,
                    const SmallArray* bias = nullptr, double beta = 1) {
  const double place = got.ref()->dtype == DType::f16 ? 1.0 / 2048 : 1.0 / 256;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (index_t p = 0; p < k; ++p) {
        const double term = double(a[i * k + p]) * b[p * n + j];
        sum += term, magnitude += std::abs(term);
      }
      const double want = alpha * sum + (bias != nullptr ? beta * double((*bias)[j]) : 0);
      ASSERT_NEAR(got[i * n + j], want, place * std::abs(want) + 2e-6 * (magnitude + 1))
          << name << " at " << i << ", " << j << " of " << m << " x " << k << " x " << n;
    }
}

TEST(small_products, are_the_products_at_every_level_size_and_layout) {
  const index_t sizes[][3] = {{1, 1, 1},    {4, 0, 5},      {7, 3, 2},     {12, 16, 32},
                              {13, 17, 33}, {1, 1100, 129}, {3, 1400, 20}, {4, 64, 19},
                              {5, 300, 70}, {300, 40, 70},  {20, 513, 530}};
  for (const DType dtype : small_dtypes)
    for (const Kernel* kernel : kernels_of(ops::mm, dtype))
      for (const auto& [m, k, n] : sizes)
        for (int layout = 0; layout < 4; ++layout) {
          const std::vector<index_t> turned = {1, 0}, plain;
          const SmallArray a(dtype, Array::random({m, k}, 1), layout & 1 ? turned : plain),
              b(dtype, Array::random({k, n}, 2), layout & 2 ? turned : plain);
          SmallArray out(dtype, Array({m, n}, 77));
          call(*kernel, {slot(a.ref()), slot(b.ref()), slot(out.ref())});
          expect_product(out, a, b, m, k, n, kernel->name);
        }
}

TEST(small_products, have_an_epilogue_before_they_are_rounded) {
  const index_t m = 21, k = 70, n = 45;
  for (const DType dtype : small_dtypes)
    for (const Kernel* kernel : kernels_of(ops::addmm, dtype))
      for (const index_t rows : {m, index_t{2}}) {
        const SmallArray a(dtype, Array::random({rows, k}, 1)),
            b(dtype, Array::random({k, n}, 2), {1, 0}), bias(dtype, Array::random({n}, 3));
        SmallArray out(dtype, Array({rows, n}, 77));
        call(*kernel, {slot(bias.ref()), slot(a.ref()), slot(b.ref()), slot(0.5), slot(-1.5),
                       slot(out.ref())});
        expect_product(out, a, b, rows, k, n, kernel->name, -1.5, &bias, 0.5);
      }
}

TEST(small_products, of_linear_have_the_same_bits_with_threads) {
  const index_t n = 700, k = 900;
  const ThreadPool pool(4);  // cuts 25 rows to 7, 7, 7 and 4
  for (const DType dtype : small_dtypes)
    for (const Kernel* kernel : kernels_of(ops::linear, dtype))
      for (const index_t m : {1, 3, 25, 40}) {
        const SmallArray x(dtype, Array::random({m, k}, 1)), w(dtype, Array::random({n, k}, 2)),
            bias(dtype, Array::random({n}, 3));
        SmallArray one(dtype, Array({m, n})), four(dtype, Array({m, n}));
        call(*kernel, {slot(x.ref()), slot(w.ref()), slot(bias.ref()), slot(one.ref())});
        call(*kernel, {slot(x.ref()), slot(w.ref()), slot(bias.ref()), slot(four.ref())},
             pool.threads());
        EXPECT_EQ(one.bits(), four.bits()) << kernel->name << ", " << m << " rows";
      }
}

}  // namespace
}  // namespace taper::tests
