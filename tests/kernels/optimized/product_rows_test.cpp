// The numerics rule of matrix products: a row depends neither on the number of rows nor on its
// neighbours, and with fused multiply-adds every record adds in the same order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "taper/kernels/portable/portable.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/kernels/optimized/packed.h"

namespace taper::tests {
namespace {

constexpr DType all_dtypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr index_t most_rows = 65, depth = 290, batch = 2;
constexpr index_t wide = 70;  // a tile has up to three panels of 16

/// A tensor of any dtype: small numbers, with a seed, else what is no result.
class Numbers {
 public:
  Numbers(DType dtype, std::vector<index_t> sizes, uint32_t seed = 0)
      : shape_(std::make_unique<Shape>(Shape::dense(sizes))),
        bytes_(static_cast<size_t>(shape_->numel() * size_bytes(dtype)) + 64, std::byte{0x5a}),
        ref_(std::make_unique<TensorRef>(TensorRef{bytes_.data(), shape_.get(), dtype})) {
    if (seed == 0) return;
    std::mt19937 engine(seed);
    for (index_t i = 0; i < shape_->numel(); ++i)
      set(i, static_cast<float>(std::uniform_real_distribution<double>(-9, 9)(engine)));
  }
  /// The two last dimensions lie the other way round, the values stay.
  Numbers turned() const {
    const int d = shape_->rank - 2;
    std::vector<index_t> sizes(shape_->sizes, shape_->sizes + shape_->rank);
    std::swap(sizes[static_cast<size_t>(d)], sizes[static_cast<size_t>(d) + 1]);
    Numbers t(ref_->dtype, sizes);
    const index_t rows = shape_->sizes[d], columns = shape_->sizes[d + 1];
    for (index_t i = 0; i < shape_->numel(); ++i) {
      const index_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
      std::memcpy(t.at(matrix * rows * columns + column * rows + row), at(i), element_bytes());
    }
    std::swap(t.shape_->sizes[d], t.shape_->sizes[d + 1]);
    std::swap(t.shape_->strides[d], t.shape_->strides[d + 1]);
    return t;
  }
  /// Rows [first, first + count) of each matrix, as a dense tensor.
  Numbers rows(index_t first, index_t count) const {
    std::vector<index_t> sizes(shape_->sizes, shape_->sizes + shape_->rank);
    const index_t all = sizes[sizes.size() - 2], length = sizes.back();
    sizes[sizes.size() - 2] = count;
    Numbers part(ref_->dtype, sizes);
    for (index_t i = 0; i < shape_->numel() / (all * length); ++i)
      std::memcpy(part.at(i * count * length), at((i * all + first) * length),
                  static_cast<size_t>(count * length) * element_bytes());
    return part;
  }
  bool operator==(const Numbers& other) const { return bytes_ == other.bytes_; }

  const TensorRef* ref() const { return ref_.get(); }
  /// An element where the tensor lies densely.
  float value(index_t i) const {
    if (ref_->dtype == DType::f32) return as<float>(i);
    return ref_->dtype == DType::f16 ? float(as<Half>(i)) : float(as<BFloat16>(i));
  }
  void set(index_t i, float x) {
    switch (ref_->dtype) {
      case DType::boolean:
        return put(i, x > 0);
      case DType::u8:
        return put(i, static_cast<uint8_t>(x + 9));
      case DType::i8:
        return put(i, static_cast<int8_t>(x));
      case DType::i16:
        return put(i, static_cast<int16_t>(x));
      case DType::i32:
        return put(i, static_cast<int32_t>(x));
      case DType::i64:
        return put(i, static_cast<int64_t>(x));
      case DType::f16:
        return put(i, Half(x));
      case DType::bf16:
        return put(i, BFloat16(x));
      case DType::f64:
        return put(i, static_cast<double>(x) / 3);
      default:
        return put(i, x);
    }
  }

 private:
  size_t element_bytes() const { return static_cast<size_t>(size_bytes(ref_->dtype)); }
  std::byte* at(index_t i) { return bytes_.data() + static_cast<size_t>(i) * element_bytes(); }
  const std::byte* at(index_t i) const {
    return bytes_.data() + static_cast<size_t>(i) * element_bytes();
  }
  template <class E>
  E as(index_t i) const {
    E e;
    std::memcpy(&e, at(i), sizeof e);
    return e;
  }
  template <class E>
  void put(index_t i, E e) {
    std::memcpy(at(i), &e, sizeof e);
  }

  std::unique_ptr<Shape> shape_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<TensorRef> ref_;
};

/// A product by one record: left (…, rows, depth) times right, with an addend where the operator
/// has one.
Numbers product(const Kernel& kernel, const Numbers& left, const TensorRef* right,
                const Numbers& addend) {
  std::vector<Slot> slots = {slot(left.ref()), slot(right)};
  if (kernel.op == &ops::linear) slots.push_back(slot(addend.ref()));
  if (kernel.op == &ops::addmm || kernel.op == &ops::baddbmm)
    slots = {slot(addend.ref()), slot(left.ref()), slot(right), slot(int64_t{2}), slot(int64_t{3})};
  Facts<Extent> facts;
  TensorType<Extent> type;
  slots.push_back(absent());
  EXPECT_TRUE(kernel.shape(facts, slots.data(), &type)) << kernel.name << ": " << facts.message;
  std::vector<index_t> sizes;
  for (int i = 0; i < type.rank; ++i) sizes.push_back(type.sizes[i].value);
  Numbers out(type.dtype, sizes);
  slots.back() = slot(out.ref());
  call(kernel, slots);
  return out;
}

/// The right side in each form in which the record reads it: in halves, and packed.
struct Forms {
  std::vector<std::unique_ptr<Stored>> stored;
  std::vector<std::unique_ptr<Packed>> packed;

  Forms(const Kernel& kernel, const Numbers& right) {
    if (right.ref()->dtype != DType::f32) return;
    for (const Packing& p : kernel.packings) {
      stored.push_back(std::make_unique<Stored>(*right.ref(), p.from));
      packed.push_back(std::make_unique<Packed>(p, *stored.back()->ref()));
    }
  }
};

/// Calls body(record, dtype) for all records of products that this machine runs.
template <class Body>
void for_each_record(const Body& body) {
  const CpuFeatures cpu = cpu_features();
  for (const KernelSet& set : {optimized::all, portable::all})
    for (const Kernel* kernel : set) {
      const bool is_product = kernel->op == &ops::mm || kernel->op == &ops::bmm ||
                              kernel->op == &ops::addmm || kernel->op == &ops::baddbmm ||
                              kernel->op == &ops::linear || kernel->op == &ops::_int_mm;
      if (!is_product || !cpu.has(kernel->needs)) continue;
      for (const DType dtype : all_dtypes)
        if ((kernel->expected[0].dtypes & one(dtype)) != 0) body(*kernel, dtype);
    }
}

TEST(products, give_a_row_the_same_bits_whatever_the_number_of_rows_and_its_neighbours) {
  int records = 0, packing = 0;
  for_each_record([&](const Kernel& kernel, DType dtype) {
    ++records;
    const bool batched = kernel.op == &ops::bmm || kernel.op == &ops::baddbmm,
               is_linear = kernel.op == &ops::linear;
    const Numbers left = batched ? Numbers(dtype, {batch, most_rows, depth}, 1)
                                 : Numbers(dtype, {most_rows, depth}, 1);
    const index_t columns = dtype == DType::f32 || is_half(dtype) ? wide : 23;
    const DType second = kernel.op == &ops::_int_mm ? DType::i8 : dtype;
    const Numbers right = batched     ? Numbers(second, {batch, depth, columns}, 2)
                          : is_linear ? Numbers(second, {columns, depth}, 2)
                                      : Numbers(second, {depth, columns}, 2);
    const Numbers addend(dtype, {columns}, 3);
    const Numbers all = product(kernel, left, right.ref(), addend);
    const Forms forms(kernel, right);
    std::vector<Numbers> all_of_form;
    for (const auto& source : forms.stored)
      all_of_form.push_back(product(kernel, left, source->ref(), addend));
    packing += static_cast<int>(all_of_form.size());
    const bool takes_strides = kernel.expected[1].strides == Strides::any && !is_linear;
    const Numbers turned = takes_strides ? right.turned() : Numbers(dtype, {0, 0});
    for (index_t m = 1; m <= most_rows; ++m) {
      const index_t first = m % 2 == 0 ? most_rows - m : 0;
      const Numbers rows = left.rows(first, m), want = all.rows(first, m);
      ASSERT_TRUE(product(kernel, rows, right.ref(), addend) == want)
          << kernel.name << " of " << name_of(dtype) << ": " << m << " rows";
      ASSERT_TRUE(!takes_strides || product(kernel, rows, turned.ref(), addend) == want)
          << kernel.name << " of " << name_of(dtype) << ": " << m << " rows, columns dense";
      for (size_t i = 0; i < all_of_form.size(); ++i) {
        const Numbers want_of_form = all_of_form[i].rows(first, m);
        for (const TensorRef* form : {forms.stored[i]->ref(), forms.packed[i]->ref()})
          ASSERT_TRUE(product(kernel, rows, form, addend) == want_of_form)
              << kernel.name << ": " << m << " rows, layout " << static_cast<int>(form->layout);
      }
    }
  });
  EXPECT_GE(records, 40);
  EXPECT_GE(packing, 18);
}

/// Whether a record has fused multiply-adds of single elements.
bool fuses(const Kernel& kernel) {
#if defined(__aarch64__)
  return kernel.needs == CpuFeatures();
#else
  return kernel.needs.has(CpuFeature::avx2) && !kernel.needs.has(CpuFeature::avx512_bf16);
#endif
}

TEST(products, add_fused_multiply_adds_along_k_in_blocks_of_256) {
  const CpuFeatures cpu = cpu_features();
  const index_t k = 700;
  for (const index_t columns : {index_t{10}, index_t{wide}})  // 10: fewer than a vector has lanes
    for (const Kernel* kernel : optimized::all) {
      const bool is_linear = kernel->op == &ops::linear;
      if ((kernel->op != &ops::mm && !is_linear) || !cpu.has(kernel->needs) || !fuses(*kernel))
        continue;
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        if ((kernel->expected[0].dtypes & one(dtype)) == 0) continue;
        const Numbers right(dtype, {columns, k}, 2), addend(dtype, {columns}, 3);
        Numbers across(dtype, {k, columns});
        for (index_t i = 0; i < columns * k; ++i)
          across.set(i % k * columns + i / k, right.value(i));
        const Numbers turned = across.turned();
        for (const index_t m : {1, 2, 3, 4, 5, 6, 8, 16, 17, 19}) {
          const Numbers left(dtype, {m, k}, 1);
          Numbers want(dtype, {m, columns});
          for (index_t i = 0; i < m; ++i)
            for (index_t j = 0; j < columns; ++j) {
              float total = 0;
              for (index_t begin = 0; begin < k; begin += 256) {
                float sum = 0;
                for (index_t p = begin; p < std::min(k, begin + 256); ++p)
                  sum = std::fma(left.value(i * k + p), right.value(j * k + p), sum);
                total = begin == 0 ? sum : total + sum;
              }
              want.set(i * columns + j, is_linear ? total + addend.value(j) : total);
            }
          for (const Numbers* b : {is_linear ? &right : &across, is_linear ? &right : &turned}) {
            ASSERT_TRUE(product(*kernel, left, b->ref(), addend) == want)
                << kernel->name << ", " << m << " rows";
            if (columns < 16) continue;  // such weights are never packed
            const Forms forms(*kernel, *b);
            for (size_t i = 0; i < forms.packed.size(); ++i)
              ASSERT_TRUE(forms.stored[i]->ref()->layout != Layout::dense ||
                          product(*kernel, left, forms.packed[i]->ref(), addend) == want)
                  << kernel->name << ", " << m << " rows, packed";
          }
        }
      }
    }
}

}  // namespace
}  // namespace taper::tests
