// The formats of blocks against the values of ggml and torchao (shared golden data), and panels
// against blocks.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "taper/exporter/io/safetensors.h"
#include "taper/kernels/quantized/panels.h"
#include "taper/tests/support/data.h"

namespace taper::quantized {
namespace {

Shape shape_of(const std::vector<index_t>& sizes) { return Shape::dense(sizes); }

const std::map<std::string, Layout> layouts = {
    {"Q4_0", Layout::q4_0},     {"Q4_1", Layout::q4_1},       {"Q5_0", Layout::q5_0},
    {"Q5_1", Layout::q5_1},     {"Q8_0", Layout::q8_0},       {"Q2_K", Layout::q2_k},
    {"Q3_K", Layout::q3_k},     {"Q4_K", Layout::q4_k},       {"Q5_K", Layout::q5_k},
    {"Q6_K", Layout::q6_k},     {"IQ2_XXS", Layout::iq2_xxs}, {"IQ2_XS", Layout::iq2_xs},
    {"IQ2_S", Layout::iq2_s},   {"IQ3_XXS", Layout::iq3_xxs}, {"IQ3_S", Layout::iq3_s},
    {"IQ1_S", Layout::iq1_s},   {"IQ1_M", Layout::iq1_m},     {"IQ4_NL", Layout::iq4_nl},
    {"IQ4_XS", Layout::iq4_xs}, {"TQ1_0", Layout::tq1_0},     {"TQ2_0", Layout::tq2_0},
    {"MXFP4", Layout::mxfp4},   {"NVFP4", Layout::nvfp4}};

uint32_t bits(float x) {
  uint32_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

/// One of the two pairs of a file: bytes (rows, bytes of a row), values (rows, elements).
struct Golden {
  io::Array bytes, values;

  int64_t rows() const { return values.sizes[0]; }
  int64_t depth() const { return values.sizes[1]; }
  const std::byte* data() const { return bytes.bytes.get(); }
  const float* row(int64_t i) const { return values.values<float>().data() + i * depth(); }
};

void expect_values(Layout layout, const Golden& g) {
  const BlockSize block = block_of(layout);
  ASSERT_EQ(g.bytes.sizes[1], g.depth() / block.elements * block.bytes);
  const BlockMatrix m(g.data(), layout, g.rows(), g.depth());
  std::vector<float> row(static_cast<size_t>(g.depth())), all(row.size() * size_t(g.rows()));
  dequantize(layout, g.data(), g.rows() * g.depth(), all.data());
  for (int64_t r = 0; r < g.rows(); ++r) {
    m.row(r, row.data());
    for (int64_t k = 0; k < g.depth(); ++k) {
      const float got = row[static_cast<size_t>(k)];
      ASSERT_EQ(bits(got), bits(g.row(r)[k]))
          << "row " << r << ", element " << k << ": " << got << " in place of " << g.row(r)[k];
      ASSERT_EQ(bits(got), bits(all[static_cast<size_t>(r * g.depth() + k)]));
    }
  }
}

// 37 rows: the last panel is not full.
void expect_panels_hold_the_blocks(Layout layout, const Golden& g) {
  constexpr index_t rows = 37;
  const auto bytes_of_row = static_cast<size_t>(g.bytes.sizes[1]);
  std::vector<std::byte> blocks(rows * bytes_of_row);
  for (index_t r = 0; r < rows; ++r)
    std::memcpy(blocks.data() + static_cast<size_t>(r) * bytes_of_row,
                g.data() + static_cast<size_t>(r % g.rows()) * bytes_of_row, bytes_of_row);
  const Shape shape = shape_of({rows, static_cast<index_t>(g.depth())});
  const TensorRef source{blocks.data(), &shape, DType::f32, layout};
  std::vector<std::byte> packed(bytes_of_panels(source));
  ASSERT_EQ(packed.size(), static_cast<size_t>(3 * panel_bytes(panels_of(layout), g.depth())));
  pack_panels(source, packed.data());
  const BlockMatrix m(source), panels(packed.data(), panels_of(layout), rows, g.depth());
  std::vector<float> row(static_cast<size_t>(g.depth())), same(row.size());
  for (index_t r = 0; r < rows; ++r) {
    m.row(r, row.data()), panels.row(r, same.data());
    ASSERT_EQ(std::memcmp(row.data(), same.data(), row.size() * sizeof(float)), 0) << "row " << r;
  }
}

TEST(formats_of_blocks, have_the_values_of_ggml_bit_for_bit) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "gguf_types");
  for (const auto& [name, layout] : layouts) {
    SCOPED_TRACE(name);
    const auto path = folder / (name + ".safetensors");
    if (!std::filesystem::exists(path)) continue;  // the repository ships some of them
    const io::SafeTensors file = io::read_safetensors(path);
    for (const std::string kind : {"random", "quantized"}) {
      if (!file.tensors.contains(kind + ".bytes")) continue;
      const Golden g{file.at(kind + ".bytes"), file.at(kind + ".values")};
      expect_values(layout, g);
      if (has_panels(layout)) expect_panels_hold_the_blocks(layout, g);
    }
  }
}

/// Blocks of the MX formats from exponents and codes, as docs/format.md describes them.
std::vector<std::byte> mx_blocks(Layout layout, Span<const uint8_t> exponents,
                                 Span<const uint8_t> codes) {
  const BlockSize size = block_of(layout);
  const bool has_six_bits = size.bytes == 25;
  std::vector<std::byte> blocks(static_cast<size_t>(exponents.size()) * size.bytes);
  for (index_t b = 0; b < exponents.size(); ++b) {
    std::byte* const block = blocks.data() + b * size.bytes;
    block[0] = static_cast<std::byte>(exponents[b]);
    for (int k = 0; k < 32; ++k) {
      const unsigned code = codes[32 * b + k];
      if (has_six_bits) {
        block[1 + k % 16] |= static_cast<std::byte>((code & 15) << k / 16 * 4);
        block[17 + k % 8] |= static_cast<std::byte>(code >> 4 << k / 8 * 2);
      } else {
        block[1 + k] = static_cast<std::byte>(code);
      }
    }
  }
  return blocks;
}

TEST(formats_of_blocks, have_the_values_of_the_mx_specification_bit_for_bit) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "quant/formats.safetensors");
  const io::SafeTensors file = io::read_safetensors(path);
  const std::pair<Layout, std::string> formats[] = {{Layout::mxfp6_e2m3, "fp6_e2m3"},
                                                    {Layout::mxfp6_e3m2, "fp6_e3m2"},
                                                    {Layout::mxfp8_e4m3, "e4m3fn"},
                                                    {Layout::mxfp8_e5m2, "e5m2"}};
  for (const auto& [layout, name] : formats)
    for (const std::string scale : {"floor", "rceil", "even"}) {
      SCOPED_TRACE(name + " " + scale);
      const std::string prefix = "mx." + name + "." + scale;
      const auto exponents = file.at(prefix + ".scale").values<uint8_t>(),
                 codes = file.at(prefix + ".data").values<uint8_t>();
      const auto want = file.at(prefix + ".dequantized").values<float>();
      const std::vector<std::byte> blocks = mx_blocks(layout, exponents, codes);
      std::vector<float> got(want.size());
      dequantize(layout, blocks.data(), static_cast<index_t>(got.size()), got.data());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(bits(got[i]), bits(want[i])) << i;
    }
}

/// Each code of a format of floats, in blocks of 32 with the exponent `e`.
std::vector<float> all_codes(Layout layout, int count, uint8_t e) {
  std::vector<uint8_t> codes(static_cast<size_t>(count)), exponents(codes.size() / 32, e);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  std::vector<float> values(codes.size());
  dequantize(layout, mx_blocks(layout, exponents, codes).data(), count, values.data());
  return values;
}

TEST(formats_of_blocks, have_all_numbers_of_small_floats) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "quant/formats.safetensors");
  const io::SafeTensors file = io::read_safetensors(path);
  const std::pair<Layout, const char*> formats[] = {{Layout::mxfp6_e2m3, "decode.e2m3"},
                                                    {Layout::mxfp6_e3m2, "decode.e3m2"},
                                                    {Layout::mxfp8_e4m3, "decode.float8_e4m3fn"},
                                                    {Layout::mxfp8_e5m2, "decode.float8_e5m2"}};
  for (const auto& [layout, name] : formats) {
    SCOPED_TRACE(name);
    const auto want = file.at(name).values<float>();
    const int count = static_cast<int>(want.size());
    for (const int exponent : {-127, -1, 0, 3, 100}) {
      const std::vector<float> got = all_codes(layout, count, static_cast<uint8_t>(exponent + 127));
      for (size_t i = 0; i < want.size(); ++i) {
        const auto right = static_cast<float>(std::ldexp(double{want[i]}, exponent));
        if (std::isnan(right))
          EXPECT_TRUE(std::isnan(got[i])) << i;
        else
          EXPECT_EQ(bits(got[i]), bits(right)) << i;
      }
    }
    for (const float x : all_codes(layout, count, 255)) EXPECT_TRUE(std::isnan(x));
  }
}

/// The reference has blocks of 32, and levels of four digits. Here each of its blocks is both
/// halves of a block.
TEST(formats_of_blocks, have_the_values_of_nf4) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "quant/formats.safetensors");
  const io::SafeTensors file = io::read_safetensors(path);
  const auto codes = file.at("nf4.data").values<uint8_t>();
  const auto table = file.at("nf4.table").values<float>(),
             want = file.at("nf4.dequantized").values<float>();
  for (size_t b = 0; b < want.size() / 32; ++b) {
    float largest = 0;  // whose level is -1 or 1
    for (size_t k = 0; k < 32; ++k) largest = std::max(largest, std::fabs(want[32 * b + k]));
    const Half scale(largest);
    std::byte block[34] = {};
    std::memcpy(block, &scale, sizeof scale);
    const auto code_of = [&](size_t k) {  // the first of two elements in the high half
      return static_cast<unsigned>(codes[16 * b + k / 2]) >> (k % 2 == 0 ? 4 : 0) & 15;
    };
    for (size_t j = 0; j < 16; ++j)
      block[2 + j] = block[18 + j] = static_cast<std::byte>(code_of(j) | code_of(j + 16) << 4);
    float got[64];
    dequantize(Layout::nf4, block, 64, got);
    for (size_t k = 0; k < 64; ++k) {
      EXPECT_NEAR(got[k], static_cast<float>(scale) * table[code_of(k % 32)], 5.1e-5f * largest);
      EXPECT_NEAR(got[k], want[32 * b + k % 32], 6e-4f * largest) << "the scale is f16";
    }
  }
}

// The formula of docs/format.md, on the bits of random blocks.
TEST(formats_of_blocks, of_few_bits_have_a_zero_point) {
  std::mt19937 random(1);
  for (const Layout layout : {Layout::q2_z, Layout::q3_z}) {
    const int bytes = block_of(layout).bytes, bits = layout == Layout::q2_z ? 2 : 3;
    std::byte block[14];
    for (int repeat = 0; repeat < 100; ++repeat) {
      for (std::byte& b : block) b = static_cast<std::byte>(random() & 255);
      const int sign = random() % 2 == 0 ? 1 : -1, exponent = static_cast<int>(random() % 30) + 1,
                mantissa = static_cast<int>(random() % 64), z = static_cast<int>(random() % 16);
      const int half = (sign < 0) << 15 | exponent << 10 | mantissa << 4 | z;
      block[0] = static_cast<std::byte>(half & 255), block[1] = static_cast<std::byte>(half >> 8);
      const float d = std::ldexp(static_cast<float>(sign * (64 + mantissa)), exponent - 15 - 6);
      const auto bit = [&](int i) {
        return static_cast<int>(block[2 + i / 8] >> i % 8 & std::byte{1});
      };
      float got[32];
      dequantize(layout, block, 32, got);
      for (int k = 0; k < 32; ++k) {
        const int low = 8 * (k % 8) + 2 * (k / 8);
        const int q = bit(low) + 2 * bit(low + 1) + (bits == 3 ? 4 * bit(64 + k) : 0);
        ASSERT_EQ(got[k], d * static_cast<float>((q << (4 - bits)) - z)) << bytes << ", " << k;
      }
    }
  }
}

TEST(formats_of_blocks, refuse_panels_that_do_not_fit) {
  const Shape cut = shape_of({16, 48}), vector = shape_of({64}), none = shape_of({0, 64});
  for (const Shape& shape : {cut, vector, none})
    EXPECT_EQ(bytes_of_panels({nullptr, &shape, DType::f32, Layout::q4_0}), 0u);
  const Shape part = shape_of({16, 128});
  EXPECT_EQ(bytes_of_panels({nullptr, &part, DType::f32, Layout::q4_k}), 0u);
}

}  // namespace
}  // namespace taper::quantized
