// The formats of blocks against ggml's values (shared golden data), and panels against blocks.
#include <gmock/gmock.h>

#include <cstring>
#include <map>

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

TEST(formats_of_blocks, refuse_panels_that_do_not_fit) {
  const Shape cut = shape_of({16, 48}), vector = shape_of({64}), none = shape_of({0, 64});
  for (const Shape& shape : {cut, vector, none})
    EXPECT_EQ(bytes_of_panels({nullptr, &shape, DType::f32, Layout::q4_0}), 0u);
  const Shape part = shape_of({16, 128});
  EXPECT_EQ(bytes_of_panels({nullptr, &part, DType::f32, Layout::q4_k}), 0u);
}

}  // namespace
}  // namespace taper::quantized
