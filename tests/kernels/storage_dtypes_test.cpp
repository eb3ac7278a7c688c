// u16, u32, u64 and the floats of 8 bits: casts, and the few operators that compute on them.
#include <gmock/gmock.h>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/eager/ops/storage.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/kernels/float8.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

constexpr DType storage[] = {DType::f8_e4m3fn, DType::f8_e5m2, DType::u16, DType::u32, DType::u64};

Tensor of(const std::vector<int64_t>& values, DType dtype) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())}).to(dtype);
}
std::vector<double> numbers(const Tensor& t) { return t.to(DType::f64).to_vector<double>(); }
std::vector<uint8_t> codes(const Tensor& t) {
  std::vector<uint8_t> list;
  for (const std::byte b : bytes_of(t)) list.push_back(std::to_integer<uint8_t>(b));
  return list;
}
DType dtype_named(const std::string& name) {
  for (int i = 0; i < dtype_count; ++i)
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  ADD_FAILURE() << name;
  return DType::f32;
}

/// All casts that PyTorch recorded, with `call` for the cast.
template <class Call>
void expect_recorded_casts(const Call& call, size_t least) {
  const auto file = io::read_safetensors(tests::test_data("storage_dtypes/casts.safetensors"));
  size_t casts = 0;
  for (const auto& [name, want] : file.tensors) {
    const size_t to = name.rfind(" to ");
    if (to == name.npos) continue;
    SCOPED_TRACE(name);
    const Tensor x = tensor_of(file.at(name.substr(0, to)));
    const DType dtype = dtype_named(name.substr(to + 4));
    ASSERT_EQ(want.dtype, dtype);
    const io::Difference difference = io::difference(array_of(call(x, dtype)), want);
    EXPECT_EQ(difference.absolute, 0)
        << difference.element << ": " << difference.got << ", not " << difference.want;
    ++casts;
  }
  EXPECT_GE(casts, least);
}

TEST(storage_dtypes, cast_as_in_pytorch) {
  expect_recorded_casts([](const Tensor& x, DType d) { return x.to(d); }, 100);
}
TEST(storage_dtypes, cast_the_same_between_strides) {
  expect_recorded_casts(
      [](const Tensor& x, DType d) {
        const Tensor wide = stack({x, x}, 1);
        return select(wide, 1, 1).to(d);
      },
      100);
}
TEST(storage_dtypes, keep_every_code_of_8_bits) {
  for (const DType dtype : {DType::f8_e4m3fn, DType::f8_e5m2}) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::byte>(i));
    const Tensor all = Tensor::from_bytes(bytes.data(), bytes.size(), dtype, {256});
    const Tensor back = all.to(DType::f32).to(dtype);
    for (size_t i = 0; i < 256; ++i)
      if (!std::isnan(numbers(all)[i])) {
        EXPECT_EQ(codes(back)[i], i);
      }
    EXPECT_EQ(codes(all.clone()), codes(all));
    // a bool is 1, not the code 1
    EXPECT_EQ(numbers(of({1, 0}, DType::boolean).to(dtype)), (std::vector<double>{1, 0}));
  }
}

// ---- made and moved ----

TEST(storage_dtypes, are_filled_and_moved) {
  for (const DType dtype : storage) {
    const Tensor x = of({1, 2, 3, 4, 6, 8}, dtype).reshape({2, 3});
    EXPECT_EQ(numbers(full({3}, 2, dtype)), (std::vector<double>{2, 2, 2}));
    EXPECT_EQ(numbers(ones_like(x)), (std::vector<double>{1, 1, 1, 1, 1, 1}));
    EXPECT_EQ(numbers(x.t().contiguous()), (std::vector<double>{1, 4, 2, 6, 3, 8}));
    EXPECT_EQ(numbers(cat({x, flip(x, {1})}, 1)[0]), (std::vector<double>{1, 2, 3, 3, 2, 1}));
    EXPECT_EQ(numbers(where(of({1, 0, 1}, DType::boolean), x[0], x[1])),
              (std::vector<double>{1, 6, 3}));
    EXPECT_EQ(numbers(index_select(x, 1, of({2, 0}, DType::i64))),
              (std::vector<double>{3, 1, 8, 4}));
    EXPECT_EQ(numbers(pad(x[0], {1, 1})), (std::vector<double>{0, 1, 2, 3, 0}));
    Tensor written = x.clone();
    written[0].copy_(of({8, 6, 4}, DType::i64));
    written[1].fill_(2);
    EXPECT_EQ(numbers(written), (std::vector<double>{8, 6, 4, 2, 2, 2}));
    EXPECT_EQ(numbers(of({7}, dtype)).size(), 1u);
    EXPECT_EQ(numbers(zeros({0, 3}, dtype)).size(), 0u);
  }
}
TEST(storage_dtypes, fill_with_numbers_as_casts_do) {
  EXPECT_EQ(codes(full({1}, 2.5, DType::f8_e4m3fn)), (std::vector<uint8_t>{0x42}));
  EXPECT_EQ(codes(full({1}, 1e9, DType::f8_e5m2)), (std::vector<uint8_t>{0x7c}));
  EXPECT_EQ(full({1}, -1, DType::u64).to_vector<uint64_t>(), (std::vector<uint64_t>{~0ull}));
  EXPECT_EQ(full({1}, 2.5, DType::u16).to_vector<uint16_t>(), (std::vector<uint16_t>{2}));
}
TEST(storage_dtypes, give_single_numbers) {
  EXPECT_EQ(full({}, 2.5, DType::f8_e4m3fn).item<double>(), 2.5);
  EXPECT_EQ(full({}, 1.75, DType::f8_e5m2).item<double>(), 1.75);
  EXPECT_EQ(of({65535}, DType::u16).item<int64_t>(), 65535);
  EXPECT_EQ(of({-1}, DType::u32).item<int64_t>(), 4294967295);
  EXPECT_THROW_MESSAGE(of({-1}, DType::u64).item<int64_t>(),
                       "item: 18446744073709551615 is larger than an i64");
}
TEST(storage_dtypes, print_as_in_pytorch) {
  EXPECT_EQ(of({-1, 7}, DType::u64).to_string(),
            "tensor([18446744073709551615,                    7], dtype=uint64)");
  EXPECT_EQ(of({256, 288}, DType::f8_e4m3fn).to_string(),
            "tensor([256., 288.], dtype=float8_e4m3fn)");
  EXPECT_EQ(full({}, -1, DType::u64).to_string(), "tensor(18446744073709551615, dtype=uint64)");
}

// ---- computed ----

TEST(storage_dtypes, compute_what_pytorch_computes) {
  const Tensor a = of({-1, 6, 1 << 20}, DType::u64), b = of({5, 3, 1 << 20}, DType::u64);
  EXPECT_EQ(bitwise_and(a, b).to_vector<uint64_t>(), (std::vector<uint64_t>{5, 2, 1 << 20}));
  EXPECT_EQ(bitwise_xor(a, b).to_vector<uint64_t>(), (std::vector<uint64_t>{~5ull, 5, 0}));
  EXPECT_EQ(bitwise_or(a, 1).to_vector<uint64_t>(),
            (std::vector<uint64_t>{~0ull, 7, (1 << 20) + 1}));
  EXPECT_EQ(mul(a, b).to_vector<uint64_t>(), (std::vector<uint64_t>{~4ull, 18, 1ull << 40}));
  EXPECT_EQ(eq(a, b).to_vector<bool>(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(sum(a).dtype(), DType::i64);
  const Tensor small = of({65535, 2}, DType::u16), other = of({3, 3}, DType::u16);
  EXPECT_EQ(maximum(small, other).to_vector<uint16_t>(), (std::vector<uint16_t>{65535, 3}));
  EXPECT_EQ(mul(small, other).to_vector<uint16_t>(), (std::vector<uint16_t>{65533, 6}));
  EXPECT_EQ(clamp(small, 3, 100).to_vector<uint16_t>(), (std::vector<uint16_t>{100, 3}));
  EXPECT_EQ(std::get<0>(sort(small)).to_vector<uint16_t>(), (std::vector<uint16_t>{2, 65535}));
  EXPECT_EQ(numbers(div(small, other)), (std::vector<double>{21845, 2.0f / 3.0f}));
  EXPECT_EQ(add(small, ones({2})).dtype(), DType::f32);
  EXPECT_EQ(add(small, 0.5).dtype(), DType::f32);
}
// 3 * 3 is 9, which e5m2 rounds to 8; 1.5 * 1.75 is 2.625.
TEST(storage_dtypes, round_products_of_8_bits_once) {
  const Tensor x = Tensor::from<float>({3, 1.5f, 100}, {3}),
               y = Tensor::from<float>({3, 1.75f, 100}, {3});
  const auto product = [&](DType d) { return codes(mul(x.to(d), y.to(d))); };
  EXPECT_EQ(product(DType::f8_e4m3fn), (std::vector<uint8_t>{81, 66, 126}));
  EXPECT_EQ(product(DType::f8_e5m2), (std::vector<uint8_t>{72, 65, 112}));
  const Tensor nan = full({2}, NAN, DType::f8_e4m3fn);
  EXPECT_EQ(eq(nan, nan).to_vector<bool>(), (std::vector<bool>{false, false}));
  EXPECT_EQ(isnan(nan).to_vector<bool>(), (std::vector<bool>{true, true}));
  EXPECT_EQ(numbers(abs(full({1}, -2, DType::f8_e5m2))), (std::vector<double>{2}));
}
TEST(storage_dtypes, say_that_they_have_no_arithmetic) {
  const Tensor f = ones({2}, DType::f8_e4m3fn), u = ones({2}, DType::u16);
  EXPECT_THROW_MESSAGE(add(f, f),
                       "add.Tensor: f8_e4m3fn is a dtype of storage, without arithmetic; cast to "
                       "f32 first");
  EXPECT_THROW_MESSAGE(sub(u, u), "u16 is a dtype of storage, without arithmetic; cast to i64");
  EXPECT_THROW_MESSAGE(relu(f), "cast to f32 first");
  EXPECT_THROW_MESSAGE(sum(f), "cast to f32 first");
  EXPECT_THROW_MESSAGE(matmul(f, f), "cast to f32 first");
  EXPECT_THROW_MESSAGE(maximum(ones({2}, DType::u64), ones({2}, DType::u64)), "cast to i64 first");
  EXPECT_THROW_MESSAGE(arange(0, 3, 1, DType::u16), "makes no f8, u16, u32 and u64");
  EXPECT_THROW_MESSAGE(f.set_requires_grad(), "only floating tensors have gradients");
}
TEST(storage_dtypes, promote_as_in_pytorch) {
  const Tensor f = ones({2}, DType::f8_e4m3fn), u = ones({2}, DType::u16);
  EXPECT_THROW_MESSAGE(mul(f, ones({2})),
                       "mul.Tensor: f8_e4m3fn and f32 have no common dtype; cast to f32 first");
  EXPECT_THROW_MESSAGE(mul(f, f.to(DType::f8_e5m2)), "have no common dtype");
  EXPECT_THROW_MESSAGE(mul(u, u.to(DType::i32)),
                       "mul.Tensor: u16 and i32 have no common dtype; cast to i64 first");
  EXPECT_THROW_MESSAGE(cat({u, u.to(DType::u32)}), "u16 and u32 have no common dtype");
  EXPECT_EQ(mul(u, ones({}, DType::i32)).dtype(), DType::u16);  // numbers do not count
  EXPECT_EQ(mul(f, ones({})).dtype(), DType::f8_e4m3fn);
  EXPECT_EQ(mul(u, ones({2}, DType::f16)).dtype(), DType::f16);
}

// ---- products ----

TEST(scaled_mm, says_what_does_not_fit) {
  const Tensor a = ones({2, 3}, DType::f8_e4m3fn), b = ones({3, 4}, DType::f8_e4m3fn),
               one = ones({}), lines = ones({2, 1}), columns = ones({1, 4});
  EXPECT_EQ(numbers(scaled_mm(a, b, lines, columns, DType::f32)), std::vector<double>(8, 3));
  EXPECT_THROW_MESSAGE(scaled_mm(a.to(DType::f32), b, one, one),
                       "_scaled_mm: self and mat2 must be matrices of f8_e4m3fn or f8_e5m2");
  EXPECT_THROW_MESSAGE(scaled_mm(a, b, lines, one), "must both have one element, or be (2, 1)");
  EXPECT_THROW_MESSAGE(scaled_mm(a, b, one, one.to(DType::f64)), "the scales must be f32, not f64");
  EXPECT_THROW_MESSAGE(scaled_mm(a, a, one, one), "_scaled_mm");
  EXPECT_THROW_MESSAGE(scaled_mm(a, b, one, one, DType::f32, ones({3})), "_scaled_mm");
}

// ---- in programs ----

std::vector<Tensor> of_all_dtypes(const std::vector<Tensor>& in) {
  const Tensor f = in[0].to(DType::f8_e4m3fn), u = in[1];
  return {cat({f, f}, 0),
          mul(f, f),
          f.to(DType::f16),
          bitwise_and(u, 255),
          eq(u, 3),
          u.to(DType::f64),
          where(eq(u, 3), u, full_like(u, 7))};
}
TEST(storage_dtypes, run_in_programs_of_fixed_and_other_sizes) {
  const auto call = [](int64_t n) {
    return std::vector<Tensor>{mul(random_tensor({n, 2}), 100.0),
                               mul(random_tensor({n}, 2), 1e3).to(DType::u32)};
  };
  expect_same_bits_in_program(of_all_dtypes, {{"x", {3, 2}}, {"u", {3}, DType::u32}}, {call(3)});
  const Dim n = Dim::symbol("n", 1, 300);
  expect_same_bits_in_program(of_all_dtypes, {{"x", {n, 2}}, {"u", {n}, DType::u32}},
                              {call(1), call(3), call(300)});
}

// A linear layer keeps its weight in 8 bits: the cast stays in the program.
TEST(storage_dtypes, stay_small_in_a_program) {
  const Tensor weight = random_tensor({256, 256}).to(DType::f8_e4m3fn);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Exporter exporter;
    exporter.method("forward",
                    [&](const std::vector<Tensor>& in) {
                      return std::vector<Tensor>{mm(in[0].to(dtype), weight.t().to(dtype))};
                    },
                    {{"x", {2, 256}}});
    EXPECT_LT(exporter.write(ExportOptions{}).size(), 256u * 256 + 8192);
  }
}

}  // namespace
}  // namespace taper::eager
