// _int_mm at every level: the bits of the portable kernel.
#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// A matrix of 8-bit or 32-bit integers, with 64 readable bytes behind it.
template <class T>
class Matrix {
 public:
  Matrix(index_t rows, index_t columns, uint32_t seed = 0)
      : values_(static_cast<size_t>(rows * columns) + 64 / sizeof(T)),
        shape_(Shape::dense(std::vector<index_t>{rows, columns})) {
    std::mt19937 engine(seed);
    for (T& v : values_) v = static_cast<T>(engine());
    ref_ = {values_.data(), &shape_, dtypes_of<T>::dtype};
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  Shape& shape() { return shape_; }
  Slot slot() const { return tests::slot(&ref_); }
  std::vector<T> values() const { return {values_.begin(), values_.begin() + shape_.numel()}; }

 private:
  std::vector<T> values_;
  Shape shape_;
  TensorRef ref_;
};

enum class Layout { rows, columns, gaps };
constexpr Layout layouts[] = {Layout::rows, Layout::columns, Layout::gaps};

/// Other strides over the same memory, of which the matrix then is a part.
template <class T>
void lay_out(Matrix<T>& m, Layout layout) {
  Shape& s = m.shape();
  if (layout == Layout::columns) s.strides[0] = 1, s.strides[1] = s.sizes[0];
  if (layout == Layout::gaps) s.sizes[0] = (s.sizes[0] + 1) / 2, s.strides[0] *= 2;
}

template <class A>
void expect_portable_bits(const Kernel& portable, const Kernel& kernel, index_t m, index_t k,
                          index_t n, const Threads* threads) {
  for (const Layout of_a : layouts)
    for (const Layout of_b : {Layout::rows, Layout::columns}) {
      Matrix<A> a(m, k, 1);
      Matrix<int8_t> b(k, n, 2);
      lay_out(a, of_a), lay_out(b, of_b);
      const index_t rows = a.shape().sizes[0];
      Matrix<int32_t> want(rows, n, 3), got(rows, n, 4);
      call(portable, {a.slot(), b.slot(), want.slot()});
      call(kernel, {a.slot(), b.slot(), got.slot()}, threads);
      ASSERT_EQ(got.values(), want.values())
          << kernel.name << ": " << m << " " << k << " " << n << ", layouts "
          << static_cast<int>(of_a) << " " << static_cast<int>(of_b);
    }
}

TEST(int_mm, gives_the_portable_bits_at_every_level_size_and_layout) {
  ThreadPool pool(2);
  const index_t sizes[][3] = {{0, 3, 4},   {3, 0, 4},   {3, 4, 0},     {1, 1, 1},    {4, 16, 4},
                              {5, 15, 3},  {3, 17, 5},  {1, 32, 70},   {7, 33, 66},  {66, 31, 7},
                              {65, 64, 9}, {2, 100, 2}, {17, 200, 35}, {1, 999, 130}};
  for (const auto& [m, k, n] : sizes)
    for (const Threads* threads : {static_cast<const Threads*>(nullptr), pool.threads()}) {
      for (const Kernel* kernel : kernels_of(ops::_int_mm, DType::i8))
        expect_portable_bits<int8_t>(portable::_int_mm_i8, *kernel, m, k, n, threads);
      for (const Kernel* kernel : kernels_of(ops::_int_mm, DType::u8))
        expect_portable_bits<uint8_t>(portable::_int_mm_u8, *kernel, m, k, n, threads);
    }
}
TEST(int_mm, has_records_for_the_levels_of_this_machine) {
  const CpuFeatures cpu = cpu_features();
  const size_t levels = size_t{cpu.has(CpuFeature::avx2)} + cpu.has(CpuFeature::avx512);
  for (const DType dtype : {DType::i8, DType::u8})
    EXPECT_EQ(kernels_of(ops::_int_mm, dtype).size(), levels);
}

}  // namespace
}  // namespace taper::tests
