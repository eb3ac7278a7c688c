// Damaged and hostile blobs: the library must not see them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "taper/delegates/xnnpack/app/backend.h"
#include "taper/delegates/xnnpack/runtime/backend.h"
#include "taper/delegates/xnnpack/runtime/part.h"
#include "taper/delegates/xnnpack/runtime/precision.h"

namespace taper::delegates::xnnpack {
namespace {

using blob::Function, blob::Kind;

struct TestNode {
  Kind kind;
  std::vector<uint32_t> inputs;
  std::vector<int64_t> numbers;
  std::vector<float> parameters;
  Function function = Function::none;
};

struct TestIntegers {
  uint32_t value;
  uint8_t bits = 8;
  uint32_t scales = no_value, block = 0;
  bool is_rounded = false;
  uint8_t channel = 0;
};

/// Bytes at a multiple of 8.
class Blob {
 public:
  Blob(uint32_t operands, uint32_t constants, const std::vector<TestNode>& nodes,
       const std::vector<uint32_t>& results, const std::vector<TestIntegers>& integers = {}) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<blob::Node>> list;
    for (const TestNode& n : nodes)
      list.push_back(
          blob::CreateNodeDirect(b, n.kind, n.function, &n.inputs, &n.numbers, &n.parameters));
    std::vector<flatbuffers::Offset<blob::Quantized>> quantized;
    for (const TestIntegers& i : integers)
      quantized.push_back(blob::CreateQuantized(b, i.value, i.bits, 0, 1, i.scales, i.channel,
                                                i.block, i.is_rounded));
    b.Finish(blob::CreatePartDirect(b, operands, constants, &list, &results, &quantized),
             blob::PartIdentifier());
    size_ = b.GetSize();
    words_.resize(size_ / 8 + 1);
    std::memcpy(words_.data(), b.GetBufferPointer(), size_);
  }
  size_t size() const { return size_; }
  std::byte& operator[](size_t i) { return reinterpret_cast<std::byte*>(words_.data())[i]; }
  Span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), static_cast<index_t>(size_)};
  }
  bool is_valid() const { return Part::is_valid(bytes()); }

 private:
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

Shape dense(const std::vector<index_t>& sizes) { return Shape::dense(Span<const index_t>(sizes)); }

/// Whether a node with these numbers takes inputs of these sizes.
bool takes(const TestNode& node, const std::vector<std::vector<index_t>>& sizes) {
  const Blob blob(1, 2, {node}, {3});
  EXPECT_TRUE(blob.is_valid());
  std::vector<Shape> shapes(4);
  for (size_t i = 0; i < sizes.size(); ++i) shapes[i] = dense(sizes[i]);
  return Part(blob.bytes()).infer(shapes.data()) < 0;
}

TEST(xnnpack_blob, refuses_wrong_tables) {
  const TestNode relu{Kind::unary, {0}, {}, {0, 1}, Function::clamp};
  EXPECT_TRUE(Blob(1, 0, {relu}, {1}).is_valid());
  EXPECT_FALSE(Blob(0, 0, {relu}, {0}).is_valid()) << "no operands";
  EXPECT_FALSE(Blob(1, 0, {}, {0}).is_valid()) << "no nodes";
  EXPECT_FALSE(Blob(1, 0, {relu}, {}).is_valid()) << "no results";
  EXPECT_FALSE(Blob(1, 0, {relu}, {0}).is_valid()) << "an operand is a result";
  EXPECT_FALSE(Blob(1, 0, {relu}, {2}).is_valid()) << "no such result";
  EXPECT_FALSE(Blob(1, 0, {relu}, {1, 1}).is_valid()) << "a result twice";
  EXPECT_FALSE(Blob(1, 0xffffffff, {relu}, {0}).is_valid()) << "too many constants";
  TestNode wrong = relu;
  wrong.inputs = {1};
  EXPECT_FALSE(Blob(1, 0, {wrong}, {1}).is_valid()) << "a node reads itself";
  wrong.inputs = {0, 0};
  EXPECT_FALSE(Blob(1, 0, {wrong}, {1}).is_valid()) << "an input too many";
  wrong = relu, wrong.function = Function::add;
  EXPECT_FALSE(Blob(1, 0, {wrong}, {1}).is_valid()) << "a function of two tensors";
  wrong = relu, wrong.kind = static_cast<Kind>(99);
  EXPECT_FALSE(Blob(1, 0, {wrong}, {1}).is_valid()) << "no such kind";
  wrong = relu, wrong.parameters[0] = NAN;
  EXPECT_FALSE(Blob(1, 0, {wrong}, {1}).is_valid()) << "NaN";
  EXPECT_FALSE(Blob(1, 0, {relu, relu}, {1}).is_valid()) << "a result that nobody needs";
  const TestNode product{Kind::fully_connected, {0, 0, no_value}, {}, {}};
  EXPECT_FALSE(Blob(1, 0, {product}, {1}).is_valid()) << "a weight that is no constant";
}

TEST(xnnpack_blob, refuses_sizes_that_do_not_fit) {
  const TestNode conv{Kind::convolution, {0, 1, 2}, {1, 1, 0, 0, 1, 1, 1}, {}};
  EXPECT_TRUE(takes(conv, {{1, 8, 8, 3}, {4, 3, 3, 3}, {4}}));
  EXPECT_FALSE(takes(conv, {{1, 8, 8, 2}, {4, 3, 3, 3}, {4}})) << "channels";
  EXPECT_FALSE(takes(conv, {{1, 8, 8, 3}, {4, 3, 3, 3}, {5}})) << "bias";
  EXPECT_FALSE(takes(conv, {{1, 2, 8, 3}, {4, 3, 3, 3}, {4}})) << "smaller than the filter";
  EXPECT_FALSE(takes(conv, {{0, 8, 8, 3}, {4, 3, 3, 3}, {4}})) << "no images";
  for (size_t i = 0; i < 7; ++i)
    for (const int64_t n : {int64_t{-1}, int64_t{0}, INT64_MAX, INT64_MIN}) {
      TestNode wrong = conv;
      wrong.numbers[i] = n;
      const bool is_padding = i == 2 || i == 3;
      EXPECT_EQ(takes(wrong, {{1, 8, 8, 3}, {4, 3, 3, 3}, {4}}), is_padding && n == 0)
          << i << " " << n;
    }
  // strides, paddings, dilations, output paddings
  const TestNode up{Kind::deconvolution, {0, 1, 2}, {3, 2, 1, 1, 1, 1, 0, 0}, {}};
  EXPECT_TRUE(takes(up, {{1, 2, 2, 4}, {5, 3, 3, 4}, {5}}));
  EXPECT_FALSE(takes(up, {{1, 1, 2, 4}, {5, 3, 3, 4}, {5}})) << "one row, with a stride of 3";
  const auto moves = [](Kind kind, std::vector<int64_t> numbers) {
    return takes({kind, {0}, std::move(numbers), {}}, {{2, 3, 4}});
  };
  EXPECT_TRUE(moves(Kind::transpose, {2, 0, 1}));
  EXPECT_FALSE(moves(Kind::transpose, {2, 0, 2}));
  EXPECT_FALSE(moves(Kind::transpose, {2, 0, 3}));
  EXPECT_FALSE(moves(Kind::transpose, {-1, 0, 1}));
  EXPECT_FALSE(moves(Kind::transpose, {0, 1}));
  EXPECT_TRUE(moves(Kind::reshape, {0, 12}));
  EXPECT_FALSE(moves(Kind::reshape, {0, 0, 24}));
  EXPECT_FALSE(moves(Kind::reshape, {0, 7}));
  EXPECT_FALSE(moves(Kind::reshape, {-2, -12}));
  EXPECT_FALSE(moves(Kind::reshape, {INT64_MAX, INT64_MAX}));
  EXPECT_TRUE(moves(Kind::slice, {0, 1, 0, 2, 2, 0}));
  EXPECT_FALSE(moves(Kind::slice, {0, 2, 0, 2, 2, 0}));
  EXPECT_FALSE(moves(Kind::slice, {0, -1, 0, 2, 2, 0}));
  EXPECT_FALSE(moves(Kind::slice, {0, 3, 0, 0, 0, 0}));
  EXPECT_TRUE(moves(Kind::mean, {0, 1, 2}));
  EXPECT_FALSE(moves(Kind::mean, {0, 2, 1}));
  EXPECT_FALSE(moves(Kind::mean, {0, 3}));
  EXPECT_FALSE(moves(Kind::mean, {2, 1}));
  const auto multiplies = [](std::vector<int64_t> numbers, std::vector<index_t> right) {
    return takes({Kind::batch_matmul, {0, 1}, std::move(numbers), {}}, {{2, 3, 4}, right});
  };
  EXPECT_TRUE(multiplies({}, {2, 4, 5}));
  EXPECT_TRUE(multiplies({1}, {2, 5, 4}));
  EXPECT_FALSE(multiplies({1}, {2, 4, 5}));
  EXPECT_FALSE(multiplies({0}, {2, 4, 5}));
  EXPECT_FALSE(multiplies({1, 1}, {2, 5, 4}));
}

// Operand 0; constants 1 (weight), 2 (scales), 3 (bias); rounded rows 4; product 5.
const TestNode rounds{Kind::unary, {0}, {}, {}, Function::convert},
    multiplies{Kind::fully_connected, {4, 1, 3}, {}, {}};
const TestIntegers weight_of_8_bits{.value = 1, .scales = 2}, rows{.value = 4, .is_rounded = true};

TEST(xnnpack_blob, refuses_grouped_products_of_other_forms) {
  const TestNode product{Kind::grouped_product, {0, 1, 2}, {64}, {}};
  const auto is_valid = [](const TestNode& n) { return Blob(2, 1, {n}, {3}).is_valid(); };
  EXPECT_TRUE(is_valid(product));
  TestNode wrong = product;
  wrong.numbers = {16};
  EXPECT_FALSE(is_valid(wrong)) << "ends of 16 bits";
  wrong.numbers = {};
  EXPECT_FALSE(is_valid(wrong)) << "ends of no bits";
  wrong = product, wrong.inputs = {1, 0, 2};
  EXPECT_FALSE(is_valid(wrong)) << "operands in another order";
  wrong.inputs = {0, 1};
  EXPECT_FALSE(is_valid(wrong)) << "no filters";
  wrong.inputs = {0, 1, 1};
  EXPECT_FALSE(is_valid(wrong)) << "filters that are no constant";
  const TestNode relu{Kind::unary, {3}, {}, {0, 1}, Function::clamp};
  EXPECT_FALSE(Blob(2, 1, {product, relu}, {4}).is_valid()) << "not alone";
  EXPECT_FALSE(Blob(3, 1, {product}, {4}).is_valid()) << "an operand too many";
  EXPECT_FALSE(Blob(2, 1, {product}, {3}, {{1}}).is_valid()) << "ends of 8 bits";

  const auto fits = [&](const std::vector<std::vector<index_t>>& sizes) {
    const Blob blob(2, 1, {product}, {3});
    std::vector<Shape> shapes(4);
    for (size_t i = 0; i < sizes.size(); ++i) shapes[i] = dense(sizes[i]);
    return Part(blob.bytes()).infer(shapes.data()) < 0;
  };
  EXPECT_TRUE(fits({{7, 5}, {3}, {3, 4, 5}}));
  EXPECT_FALSE(fits({{7, 5}, {2}, {3, 4, 5}})) << "other groups";
  EXPECT_FALSE(fits({{7, 4}, {3}, {3, 4, 5}})) << "other inputs";
  EXPECT_FALSE(fits({{7, 5}, {3}, {12, 5}})) << "no matrix for each group";
  EXPECT_FALSE(fits({{7, 5, 1}, {3}, {3, 4, 5}})) << "no rows";
  EXPECT_FALSE(fits({{7, 5}, {5000}, {5000, 4, 5}})) << "too many groups";
}

// Older programs have such parts. None may be rounded by half.
TEST(xnnpack_blob, says_which_parts_fit_f16) {
  const auto fits = [](const std::vector<TestNode>& nodes,
                       const std::vector<TestIntegers>& integers) {
    const auto last = static_cast<uint32_t>(nodes.size());
    const Blob blob(1, 0, nodes, {last}, integers);
    EXPECT_TRUE(blob.is_valid());
    return fits_f16(Part(blob.bytes()));
  };
  const TestNode tanh{Kind::unary, {0}, {}, {}, Function::tanh};
  EXPECT_TRUE(fits({tanh}, {}));
  for (const Function function : {Function::exp, Function::gelu, Function::log})
    EXPECT_FALSE(fits({tanh, {Kind::unary, {1}, {}, {}, function}}, {}));
  const TestNode to_integers{Kind::unary, {0}, {}, {}, Function::convert};
  EXPECT_FALSE(fits({to_integers}, {{1}}));
}

TEST(xnnpack_blob, refuses_rounded_rows_beside_other_types) {
  const auto is_valid = [](const std::vector<TestNode>& nodes,
                           const std::vector<TestIntegers>& integers) {
    const auto last = static_cast<uint32_t>(3 + nodes.size());
    return Blob(1, 3, nodes, {last}, integers).is_valid();
  };
  EXPECT_TRUE(is_valid({rounds, multiplies}, {weight_of_8_bits, rows}));
  EXPECT_FALSE(is_valid({rounds}, {rows})) << "rounded rows as a result";
  EXPECT_FALSE(is_valid({rounds, multiplies}, {rows})) << "a weight of f32";
  EXPECT_FALSE(is_valid({rounds, multiplies}, {weight_of_8_bits})) << "rows of f32";
  EXPECT_FALSE(is_valid({rounds, multiplies}, {{.value = 1}, rows})) << "one scale";
  EXPECT_FALSE(is_valid({rounds, multiplies}, {weight_of_8_bits, {.value = 3, .bits = 32}, rows}))
      << "a bias of integers";
  TestIntegers wrong = weight_of_8_bits;
  wrong.channel = 1;
  EXPECT_FALSE(is_valid({rounds, multiplies}, {wrong, rows})) << "scales of columns";
  wrong = weight_of_8_bits, wrong.scales = 0;
  EXPECT_FALSE(is_valid({rounds, multiplies}, {wrong, rows})) << "scales that are no constant";
  wrong = weight_of_8_bits, wrong.block = 32;
  EXPECT_FALSE(is_valid({rounds, multiplies}, {wrong, rows})) << "blocks of 8 bits";
  EXPECT_FALSE(is_valid({rounds, multiplies}, {{.value = 0, .is_rounded = true}, weight_of_8_bits}))
      << "an operand";
  EXPECT_FALSE(is_valid({rounds, {Kind::unary, {4}, {}, {}, Function::abs}}, {rows}));
  EXPECT_FALSE(is_valid({rounds, {Kind::binary, {0, 4}, {}, {}, Function::add}}, {rows}));
  EXPECT_FALSE(
      is_valid({{Kind::unary, {0}, {}, {}, Function::abs}, multiplies}, {weight_of_8_bits, rows}))
      << "another function rounds";
}

TEST(xnnpack_blob, refuses_other_integers_beside_f32) {
  // operand 0; constants 1 (weight), 2 (scales), 3 (bias); product 4
  const auto is_valid = [](const std::vector<TestIntegers>& integers) {
    const TestNode product{Kind::fully_connected, {0, 1, 3}, {}, {}};
    return Blob(1, 3, {product}, {4}, integers).is_valid();
  };
  EXPECT_TRUE(is_valid({}));
  EXPECT_TRUE(is_valid({weight_of_8_bits}));
  EXPECT_FALSE(is_valid({{.value = 1}})) << "one scale";
  EXPECT_FALSE(is_valid({{.value = 1, .bits = 4, .scales = 2}})) << "4 bits";
  EXPECT_FALSE(is_valid({{.value = 1, .bits = 32, .scales = 2}})) << "32 bits";
  EXPECT_FALSE(is_valid({weight_of_8_bits, {.value = 3, .bits = 32, .scales = 2}}))
      << "a bias of integers";
  EXPECT_FALSE(is_valid({weight_of_8_bits, {.value = 4}})) << "a result of integers";
}

TEST(xnnpack_blob, refuses_weights_of_4_bits_whose_sizes_or_scales_do_not_fit) {
  const auto takes_weight = [](TestIntegers weight, std::vector<std::vector<index_t>> sizes) {
    std::vector<TestIntegers> integers = {weight, rows};
    if (weight.block > 0) integers.insert(integers.begin() + 1, {.value = 2, .bits = 16});
    const Blob blob(1, 3, {rounds, multiplies}, {5}, integers);
    if (!blob.is_valid()) return false;
    std::vector<Shape> shapes(6);
    for (size_t i = 0; i < sizes.size(); ++i) shapes[i] = dense(sizes[i]);
    return Part(blob.bytes()).infer(shapes.data()) < 0;
  };
  const TestIntegers whole_rows{.value = 1, .bits = 4, .scales = 2},
      blocks{.value = 1, .bits = 4, .scales = 2, .block = 32};
  EXPECT_TRUE(takes_weight(whole_rows, {{3, 64}, {5, 32}, {5}, {5}}));
  EXPECT_FALSE(takes_weight(whole_rows, {{3, 32}, {5, 32}, {5}, {5}})) << "half as many elements";
  EXPECT_FALSE(takes_weight(whole_rows, {{3, 64}, {5, 32}, {4}, {5}})) << "scales";
  EXPECT_FALSE(takes_weight(whole_rows, {{3, 64}, {5, 4, 8}, {5}, {5}})) << "no matrix";
  EXPECT_FALSE(takes_weight(whole_rows, {{3, 64}, {1, index_t{1} << 31}, {1}, {1}})) << "too long";
  EXPECT_TRUE(takes_weight(blocks, {{3, 64}, {5, 32}, {5, 2}, {5}}));
  EXPECT_FALSE(takes_weight(blocks, {{3, 64}, {5, 32}, {5, 1}, {5}})) << "too few scales";
  EXPECT_FALSE(takes_weight(blocks, {{3, 64}, {5, 32}, {10}, {5}})) << "scales in a row";
  EXPECT_FALSE(takes_weight(blocks, {{3, 48}, {5, 24}, {5, 1}, {5}})) << "half a block";
  TestIntegers wrong = blocks;
  for (const uint32_t block : {16u, 48u, 1u << 16, 0xffffffffu}) {
    wrong.block = block;
    EXPECT_FALSE(takes_weight(wrong, {{3, 96}, {5, 48}, {5, 2}, {5}})) << block;
  }
}

/// Whether all values of a valid blob are small, so that it runs in a moment. `slots` are an
/// operand, constants and a result.
bool is_small(const Blob& blob, Span<const Slot> slots) {
  const index_t inputs = slots.size() - 1;
  if (!blob.is_valid()) return true;
  const Part part(blob.bytes());
  if (part.operands() != 1 || part.constants() != inputs - 1) return true;
  std::vector<Shape> shapes(static_cast<size_t>(part.values()));
  for (index_t i = 0; i < inputs; ++i) shapes[static_cast<size_t>(i)] = *slots[i].tensor->shape;
  if (part.infer(shapes.data()) >= 0) return true;
  return std::ranges::all_of(shapes, [](const Shape& s) { return s.numel() < 10000; });
}

/// Loads a blob and runs it on these slots, if it is accepted. Returns whether it ran.
bool survives(const Blob& blob, Span<const Slot> slots) {
  Backend& b = backend();
  ErrorInfo info;
  Context context{nullptr, 0, nullptr, &info};
  void* loaded = nullptr;
  if (b.load(blob.bytes(), context, loaded) != Error::ok) return false;
  std::vector<uint64_t> memory(b.instance_bytes(loaded) / 8 + 1);
  const index_t constants = slots.size() - 2;
  const DelegateArguments arguments{slots.part(0, 1), slots.part(1, constants),
                                    slots.part(1 + constants, 1), &b};
  bool ran = b.create(loaded, memory.data(), arguments, context) == Error::ok;
  if (ran) {
    DType dtype = DType::f32;
    Shape shape;
    ran = b.reshape(memory.data(), arguments, context) == Error::ok;
    if (ran) b.result(memory.data(), 0, dtype, shape);
    // as the runtime: a result of another size is not written
    ran = ran && shape.same_sizes(*slots[slots.size() - 1].tensor->shape);
    if (ran) ran = b.execute(memory.data(), slots.data(), context) == Error::ok;
    b.release(memory.data());
  }
  b.unload(loaded);
  return ran;
}

void expect_survives_damage(Blob& blob, Span<const Slot> slots) {
  std::mt19937 random(1);
  int ran = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t at = random() % blob.size();
    const std::byte before = blob[at];
    blob[at] = i % 2 == 0 ? static_cast<std::byte>(random()) : before ^ std::byte{1};
    if (is_small(blob, slots)) ++(survives(blob, slots) ? ran : refused);
    blob[at] = before;
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(refused, 5000);
}

TEST(xnnpack_blob, survives_damage) {
  const std::vector<TestNode> nodes = {{Kind::convolution, {0, 1, 2}, {1, 1, 1, 1, 1, 1, 1}, {}},
                                       {Kind::unary, {3}, {}, {0, 6}, Function::clamp},
                                       {Kind::max_pool, {4}, {3, 3, 1, 1, 1, 1, 1, 1}, {}},
                                       {Kind::binary, {4, 5}, {}, {}, Function::add},
                                       {Kind::transpose, {6}, {0, 3, 1, 2}, {}},
                                       {Kind::transpose, {7}, {0, 2, 3, 1}, {}}};
  Blob blob(1, 2, nodes, {8});
  std::vector<float> x(8 * 8 * 3 + 16, 1), w(3 * 3 * 3 * 3 + 16, 1), bias(3 + 16, 1),
      y(8 * 8 * 3 + 16);
  const Shape image = dense({1, 8, 8, 3}), filter = dense({3, 3, 3, 3}), channels = dense({3});
  const TensorRef tensors[] = {
      {x.data(), &image}, {w.data(), &filter}, {bias.data(), &channels}, {y.data(), &image}};
  Slot slots[4] = {};
  for (int i = 0; i < 4; ++i) slots[i].tensor = &tensors[i];
  ASSERT_TRUE(survives(blob, slots));
  expect_survives_damage(blob, slots);
}

TEST(xnnpack_blob, survives_damage_of_products_with_rounded_rows) {
  std::vector<float> x(3 * 64 + 16, 0.5f), bias(4 + 16, 1), y(3 * 4 + 16);
  std::vector<uint16_t> scales(4 * 2 + 32, 0x3c00);  // 2^-7 as bf16
  std::vector<uint8_t> weight(4 * 32 + 64, 0x79);
  const Shape rows_of_x = dense({3, 64}), of_weight = dense({4, 32}), of_scales = dense({4, 2}),
              channels = dense({4}), result = dense({3, 4});
  const TensorRef tensors[] = {{x.data(), &rows_of_x},
                               {weight.data(), &of_weight, DType::u8},
                               {scales.data(), &of_scales, DType::bf16},
                               {bias.data(), &channels},
                               {y.data(), &result}};
  Slot slots[5] = {};
  for (int i = 0; i < 5; ++i) slots[i].tensor = &tensors[i];
  Blob blob(1, 3, {rounds, multiplies}, {5},
            {{.value = 1, .bits = 4, .scales = 2, .block = 32}, {.value = 2, .bits = 16}, rows});
  ASSERT_TRUE(survives(blob, slots));
  expect_survives_damage(blob, slots);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
