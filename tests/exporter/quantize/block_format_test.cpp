// Blocks that are written here, as the kernels read them. The kernels' decoders are compared with
// golden values in tests/kernels.
#include "taper/exporter/quantize/block_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/quantize/fit.h"
#include "taper/kernels/quantized/blocks.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

std::vector<float> decoded_as(const BlockFormat& f, const std::vector<std::byte>& blocks) {
  const auto count = static_cast<index_t>(blocks.size()) / f.bytes * f.elements;
  std::vector<float> values(static_cast<size_t>(count));
  quantized::dequantize(f.layout, blocks.data(), count, values.data());
  return values;
}

/// What `x` becomes in a format.
std::vector<float> rounded(const BlockFormat& f, Fit how, std::span<const float> x) {
  const auto elements = static_cast<size_t>(f.elements), blocks = x.size() / elements;
  std::vector<std::byte> bytes(blocks * static_cast<size_t>(f.bytes));
  for (size_t b = 0; b < blocks; ++b) {
    std::byte* block = bytes.data() + b * static_cast<size_t>(f.bytes);
    fit_block(f, how, x.subspan(b * elements, elements), {}, block);
    round_block(f, x.subspan(b * elements, elements), block);
  }
  return decoded_as(f, bytes);
}

class block_format : public testing::TestWithParam<const char*> {
 protected:
  const BlockFormat& format() const { return *find_format(GetParam()); }
  std::vector<float> decoded(const std::vector<std::byte>& blocks) const {
    return decoded_as(format(), blocks);
  }
};
INSTANTIATE_TEST_SUITE_P(formats, block_format, testing::ValuesIn(format_names()),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(block_format, writes_what_kernels_read) {
  std::mt19937 random(1);
  const BlockFormat& f = format();
  std::uniform_int_distribution<int> integers(f.lowest, f.highest);
  std::uniform_real_distribution<float> scales(0.01f, 0.02f);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::byte> block(static_cast<size_t>(f.bytes), std::byte{0xff});
    std::vector<BlockGrid> wanted(static_cast<size_t>(f.grids())), grids(wanted.size());
    const bool is_power = f.scales == Scales::power_of_two;
    for (BlockGrid& g : wanted)
      g = {is_power ? 0.015625f : scales(random), f.has_offset ? -scales(random) : 0};
    std::vector<int8_t> values(static_cast<size_t>(f.elements));
    for (int8_t& q : values) q = static_cast<int8_t>(integers(random));
    write_grids(f, wanted, block.data());
    write_values(f, values, block.data());
    read_grids(f, block.data(), grids);
    // four bits for a scale of q2_k, six for others
    const float step = f.zero_steps > 0                     ? 8e-3f
                       : f.scales != Scales::small_integers ? 1e-3f
                       : f.layout == Layout::q2_k           ? 0.08f
                                                            : 0.02f;
    for (size_t g = 0; g < grids.size(); ++g) {
      EXPECT_NEAR(grids[g].scale, wanted[g].scale, step * 0.02f);
      // a zero point moves in steps of the scale
      const float half_step =
          f.zero_steps > 0 ? 0.5f * grids[g].scale / static_cast<float>(f.zero_steps) : 0;
      EXPECT_NEAR(grids[g].offset, wanted[g].offset, step * 0.02f + half_step);
    }
    const std::vector<float> got = decoded(block);
    for (int e = 0; e < f.elements; ++e) {
      const BlockGrid& g = grids[static_cast<size_t>(e / f.shared)];
      EXPECT_EQ(got[e], value_of(f, g, values[e])) << "element " << e;
    }
  }
}

TEST_P(block_format, holds_zeros_and_large_numbers) {
  const BlockFormat& f = format();
  std::vector<std::byte> block(static_cast<size_t>(f.bytes));
  for (const float number : {0.0f, 1e-30f, -3.0f, 5e4f}) {
    const std::vector<float> w(static_cast<size_t>(f.elements), number);
    for (const Fit how : {Fit::range, Fit::mse}) {
      fit_block(f, how, w, {}, block.data());
      round_block(f, w, block.data());
      // scales are f16: the largest one has 65504. Or powers of two, and levels are floats
      const float parts = f.scales == Scales::power_of_two ? 8 : 100;
      for (const float x : decoded(block))
        ASSERT_NEAR(x, number, std::max(1e-6f, std::fabs(number) / parts)) << number;
    }
  }
}

/// Beyond what f16 holds, the largest scale and the outermost integers are taken.
TEST(block_formats, with_a_zero_point_hold_the_nearest_to_numbers_beyond_their_range) {
  constexpr float largest_step = 65024;  // an f16 whose lowest four bits are zero
  for (const auto& [name, highest] : {std::pair("q2_z", 12.0f), std::pair("q3_z", 14.0f)}) {
    SCOPED_TRACE(name);
    const BlockFormat& f = *find_format(name);
    for (const Fit how : {Fit::range, Fit::mse})
      for (const auto& [number, steps] : {std::pair(1e30f, highest), std::pair(-1e30f, -15.0f)}) {
        const std::vector<float> w(static_cast<size_t>(f.elements), number);
        std::vector<std::byte> block(static_cast<size_t>(f.bytes));
        fit_block(f, how, w, {}, block.data());
        round_block(f, w, block.data());
        for (const float x : decoded_as(f, block)) EXPECT_EQ(x, steps * largest_step);
      }
  }
}

double error_of(std::span<const float> got, std::span<const float> want) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i)
    sum += (got[i] - want[i]) * static_cast<double>(got[i] - want[i]);
  return sum;
}

TEST(block_formats, are_no_worse_than_the_reference) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const auto x = golden.at("ggml.x").values<float>();
  const auto error = [&](const char* name, Fit how) {
    return error_of(rounded(*find_format(name), how, x), x);
  };
  for (const std::string name : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"}) {
    const auto reference = golden.at("ggml.Q" + name.substr(1) + ".dequantized").values<float>();
    const double want = error_of(reference, x);
    // the reference rounds to nearest, too, with scales before they became f16
    EXPECT_LE(error(name.c_str(), Fit::range), 1.01 * want) << name;
    EXPECT_LE(error(name.c_str(), Fit::mse), want) << name;
  }
  // the reference only decodes the others: they must be worth their bits
  EXPECT_LE(error("q4_k", Fit::mse), error("q4_0", Fit::mse));
  EXPECT_LE(error("q5_k", Fit::mse), error("q5_0", Fit::mse));
  EXPECT_LE(error("q6_k", Fit::mse), 0.5 * error("q5_0", Fit::mse));
  EXPECT_LE(error("q3_k", Fit::mse), 0.5 * error("q2_k", Fit::mse));
  // with half as many scales
  EXPECT_LE(error("q2_z", Fit::mse), 1.2 * error("q2_k", Fit::mse));
  EXPECT_LE(error("q3_z", Fit::mse), 1.2 * error("q3_k", Fit::mse));
}

TEST_P(block_format, writes_the_bytes_of_the_reference) {
  if (format().levels != nullptr) return;  // the next tests
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  if (format().zero_steps > 0) return;  // a format of Taper's own: tests/kernels has its formula
  const io::SafeTensors golden = io::read_safetensors(file);
  std::string name = GetParam();
  name[0] = 'Q';
  if (name.ends_with("_k")) name.back() = 'K';
  const BlockFormat& f = format();
  const auto bytes = golden.at("ggml." + name + ".bytes").raw();
  const auto values = golden.at("ggml." + name + ".dequantized").values<float>();
  quantized::Unit unit;
  for (size_t b = 0; b < bytes.size() / static_cast<size_t>(f.bytes); ++b) {
    const std::byte* want = bytes.data() + b * static_cast<size_t>(f.bytes);
    // the scales stay, and the integers are written again
    std::vector<std::byte> got(want, want + f.bytes);
    std::vector<int8_t> integers;
    for (int u = 0; u < f.elements / quantized::unit_elements; ++u) {
      quantized::BlockMatrix(want, f.layout, 1, f.elements).decode(0, u, unit);
      integers.insert(integers.end(), unit.value, unit.value + quantized::unit_elements);
    }
    write_values(f, integers, got.data());
    EXPECT_EQ(std::vector<std::byte>(want, want + f.bytes), got) << "block " << b;
    const std::vector<float> x = decoded(got);
    for (int e = 0; e < f.elements; ++e)
      EXPECT_EQ(x[e], values[b * static_cast<size_t>(f.elements) + static_cast<size_t>(e)]);
  }
}

const std::pair<const char*, std::string> mx_formats[] = {{"mxfp4", "fp4_e2m1"},
                                                          {"mxfp6_e2m3", "fp6_e2m3"},
                                                          {"mxfp6_e3m2", "fp6_e3m2"},
                                                          {"mxfp8_e4m3", "e4m3fn"},
                                                          {"mxfp8_e5m2", "e5m2"}};

/// torchao gives scales of the mode `floor` as the MX specification defines them.
TEST(block_formats, round_to_the_numbers_of_the_mx_specification) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const auto x = golden.at("mx.x").values<float>();
  for (const auto& [name, reference] : mx_formats) {
    SCOPED_TRACE(name);
    const BlockFormat& f = *find_format(name);
    const auto want = golden.at("mx." + reference + ".floor.dequantized").values<float>();
    const std::vector<float> got = rounded(f, Fit::range, x), best = rounded(f, Fit::mse, x);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << x[i];
    for (const std::string mode : {"floor", "rceil", "even"})
      EXPECT_LE(
          error_of(best, x),
          error_of(golden.at("mx." + reference + "." + mode + ".dequantized").values<float>(), x))
          << mode;
  }
}

TEST(block_formats, have_the_nearest_levels_of_the_reference) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const auto expect_codes = [&](const FloatLevels& levels, const std::string& name,
                                const char* inputs, float factor) {
    SCOPED_TRACE(name);
    const auto x = golden.at(inputs).values<float>();
    const auto codes = golden.at("encode." + name).values<uint8_t>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (!(std::fabs(x[i]) * factor <= levels.largest)) continue;  // blocks have no such numbers
      EXPECT_EQ(levels.nearest(x[i] * factor), codes[i]) << x[i];
    }
  };
  expect_codes(doubled_e2m1_levels, "e2m1", "encode.e2m1.x", 2);
  expect_codes(e2m3_levels, "e2m3", "encode.e2m3.x", 1);
  expect_codes(e3m2_levels, "e3m2", "encode.e3m2.x", 1);
  expect_codes(e4m3_levels, "float8_e4m3fn", "encode.x", 1);
  expect_codes(e5m2_levels, "float8_e5m2", "encode.x", 1);
}

/// The reference has blocks of 32 and rounds their scales to 8 bits. So a block of 64 with an f16
/// scale may do a little worse, and the least squared error does better.
TEST(block_formats, round_to_nf4_as_the_reference_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "quant/formats.safetensors");
  const io::SafeTensors golden = io::read_safetensors(file);
  const auto x = golden.at("nf4.x").values<float>();
  const auto codes = golden.at("nf4.data").values<uint8_t>();
  const BlockFormat& f = *find_format("nf4");
  size_t other = 0;
  for (size_t b = 0; b < x.size() / 32; ++b) {
    std::vector<float> twice(64);
    for (size_t k = 0; k < 64; ++k) twice[k] = x[32 * b + k % 32];
    std::byte block[34];
    BlockGrid grid;
    fit_block(f, Fit::range, twice, {}, block);
    read_grids(f, block, {&grid, 1});
    for (size_t k = 0; k < 32; ++k) {
      const int want = codes[16 * b + k / 2] >> (k % 2 == 0 ? 4 : 0) & 15;
      other += nearest(f, grid, twice[k]) != want;
    }
  }
  EXPECT_LE(other, x.size() / 100) << "next to the middle of two levels";
  const double reference = error_of(golden.at("nf4.dequantized").values<float>(), x);
  EXPECT_LE(error_of(rounded(f, Fit::range, x), x), 1.25 * reference);
  EXPECT_LE(error_of(rounded(f, Fit::mse, x), x), error_of(rounded(f, Fit::range, x), x));
}

}  // namespace
}  // namespace taper::quantize
