// Folders that other tools have quantized, against what transformers gave on their de-quantized
// weights.
#include <gmock/gmock.h>

#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/program.h"
#include "taper/kernels/quantized/blocks.h"
#include "taper/kernels/quantized/float_levels.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::formula_golden, tests::formula_model;

struct Method {
  const char* name;
  Layout layout;            ///< of the weights in the program
  double tolerance = 2e-4;  ///< of logits
};
void PrintTo(const Method& m, std::ostream* out) { *out << m.name; }

/// Offsets of q4_1 are rounded to f16, and so are factors of nf4 and of int8. Logits have a
/// deviation of 3, so they still tell right from wrong.
const Method methods[] = {{"mxfp4", Layout::mxfp4},
                          {"fp8", Layout::dense},
                          {"fp8_rows", Layout::dense},
                          {"gptq", Layout::q4_0},
                          {"gptq_8_bits", Layout::q8_0},
                          {"gptq_zeros", Layout::q4_1, 0.05},
                          {"awq", Layout::q4_1, 0.05},
                          {"packed", Layout::q4_0},
                          {"mxfp8_e4m3", Layout::mxfp8_e4m3},
                          {"mxfp6_e2m3", Layout::mxfp6_e2m3},
                          {"mxfp4_packed", Layout::mxfp4},
                          {"nf4", Layout::nf4, 0.05},
                          {"bitsandbytes_8_bits", Layout::q8_0, 0.05}};

class quantized_folder : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(of_other_tools, quantized_folder, testing::ValuesIn(methods),
                         [](const auto& info) { return std::string(info.param.name); });

std::filesystem::path folder_of(const std::string& method) {
  return formula_model("quantized/" + method);
}

void expect_golden(Runner& runner, const Method& method) {
  const std::vector<Compared> results =
      compare_with_golden(runner, formula_golden(std::string("quantized/") + method.name));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_LE(results[0].difference, method.tolerance);
}

TEST_P(quantized_folder, gives_the_recorded_logits_in_eager_and_as_a_program) {
  const Model model = load(folder_of(GetParam().name).string());
  EagerRunner eager_runner(*model.decoder);
  expect_golden(eager_runner, GetParam());
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 64, .all_logits = true});
  ProgramRunner program(exporter.write(ExportOptions{.exact = true}));
  expect_golden(program, GetParam());
}

/// Of the last matrix of each layer.
std::vector<Layout> layouts_of(nn::Module& decoder) {
  std::vector<Layout> layouts;
  for (const auto& [name, tensor] : decoder.state_dict())
    if (name.ends_with("down.weight")) layouts.push_back(tensor.layout());
  return layouts;
}

TEST_P(quantized_folder, keeps_weights_in_blocks) {
  const Model model = load(folder_of(GetParam().name).string());
  EXPECT_THAT(layouts_of(*model.decoder),
              testing::ElementsAre(GetParam().layout, GetParam().layout));
}

/// In f32, the experts alone would take 295 kB.
TEST(quantized_folders, keep_experts_in_blocks_in_a_program) {
  const Model model = load(folder_of("mxfp4").string());
  for (const bool exact : {true, false}) {
    Exporter exporter;
    add_methods(exporter, *model.decoder, {.chunk = 64});
    ExportOptions options;
    options.exact = exact, options.debug = false, options.quiet = true;
    EXPECT_LT(exporter.write(options).size(), 200'000u) << exact;
  }
}

/// By hand: 9 rows and 10 columns, of which a power of two would cut other tiles.
TEST(quantized_folders, have_tiles_of_the_size_that_the_configuration_says) {
  const std::vector<Float8E4M3> ones(90, Float8E4M3(1.0f));
  const std::vector<float> scales = {1, 2, 3, 4};
  std::map<std::string, huggingface::Tensor> tensors;
  tensors["w.weight"] = {{DType::f8_e4m3fn, {9, 10}, std::as_bytes(std::span(ones))}, {}, nullptr};
  tensors["w.weight_scale_inv"] = {
      {DType::f32, {2, 2}, std::as_bytes(std::span(scales))}, {}, nullptr};
  const json config = {
      {"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {6, 5}}}}};
  const auto weights = huggingface::take_quantized(config, tensors);
  EXPECT_TRUE(tensors.empty());
  const huggingface::Repacked weight = weights.at("w.weight").read();
  ASSERT_EQ(weight.dtype, DType::bf16);
  const auto* numbers = reinterpret_cast<const BFloat16*>(weight.bytes.get());
  for (int row = 0; row < 9; ++row)
    for (int column = 0; column < 10; ++column)
      EXPECT_EQ(numbers[row * 10 + column], 1.0f + (column >= 5) + 2 * (row >= 6)) << row << column;
}

/// By hand: two rows of 64, whose factors are f16 numbers and not quantized.
TEST(quantized_folders, have_the_numbers_of_nf4) {
  std::vector<uint8_t> codes(64);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(37 * i + i / 8);
  const std::vector<float> factors = {0.5f, 3};
  const std::string state = R"({"quant_type": "nf4", "blocksize": 64, "shape": [2, 64]})";
  std::map<std::string, huggingface::Tensor> tensors;
  const auto add = [&](const std::string& name, DType dtype, std::vector<int64_t> sizes,
                       std::span<const std::byte> bytes) {
    tensors["w.weight" + name] = {{dtype, std::move(sizes), bytes}, {}, nullptr};
  };
  add("", DType::u8, {64, 1}, std::as_bytes(std::span(codes)));
  add(".absmax", DType::f32, {2}, std::as_bytes(std::span(factors)));
  add(".quant_map", DType::f32, {16}, std::as_bytes(std::span(quantized::nf4_levels)));
  add(".quant_state.bitsandbytes__nf4", DType::u8, {static_cast<int64_t>(state.size())},
      std::as_bytes(std::span(state)));
  const json config = {{"quantization_config", {{"quant_method", "bitsandbytes"}}}};
  const auto weights = huggingface::take_quantized(config, tensors);
  EXPECT_TRUE(tensors.empty());
  EXPECT_EQ(weights.at("w.weight").sizes, (std::vector<int64_t>{2, 64}));
  const huggingface::Repacked weight = weights.at("w.weight").read();
  ASSERT_EQ(weight.layout, Layout::nf4);
  std::vector<float> numbers(128);
  quantized::dequantize(Layout::nf4, weight.bytes.get(), 128, numbers.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int code = codes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
    EXPECT_EQ(numbers[i], factors[i / 64] * quantized::nf4_levels[code]) << i;
  }
}

// ---- what is refused

using Change = std::function<void(json& quantization, io::SafeTensors& file)>;

/// The message when the folder of a method was changed.
std::string refusal(const std::string& method, const Change& change) {
  const std::filesystem::path folder = folder_of(method);
  json config = json::parse(std::ifstream(folder / "config.json"));
  io::SafeTensors file = io::read_safetensors(folder / "model.safetensors");
  change(config["quantization_config"], file);
  std::ofstream(folder / "config.json") << config;
  io::write_safetensors(folder / "model.safetensors", file);
  try {
    (void)load(folder.string());
  } catch (const ExportError& e) {
    return e.what();
  }
  return "";
}

TEST(quantized_folders, say_which_methods_are_read) {
  const auto with_method = [](const char* name) {
    return [=](json& q, io::SafeTensors&) { q["quant_method"] = name; };
  };
  EXPECT_THAT(refusal("gptq", with_method("quanto")),
              testing::AllOf(HasSubstr("quantized by \"quanto\" are not read; mxfp4, fp8"),
                             HasSubstr("--recipe int4-g32")));
  EXPECT_THAT(refusal("gptq", [](json& q, io::SafeTensors&) { q = 7; }),
              HasSubstr("quantization_config must be an object, it is 7"));
  EXPECT_THAT(refusal("awq", [](json& q, io::SafeTensors&) { q["version"] = "gemv"; }),
              HasSubstr("of AWQ, the version \"gemm\" is read"));
  EXPECT_THAT(refusal("gptq", [](json& q, io::SafeTensors&) { q["bits"] = 3; }),
              HasSubstr("quantization_config.bits is 3; 4 and 8 are read"));
  EXPECT_THAT(refusal("gptq", [](json& q, io::SafeTensors&) { q["bits"] = "four"; }),
              HasSubstr("bits must be an integer"));
  EXPECT_THAT(refusal("packed", [](json& q, io::SafeTensors&) { q["format"] = "marlin-24"; }),
              HasSubstr("the format \"marlin-24\" are not read; pack-quantized"));
  const auto set = [](const char* key, const json& value) {
    return
        [=](json& q, io::SafeTensors&) { q["config_groups"]["group_0"]["weights"][key] = value; };
  };
  EXPECT_THAT(refusal("packed", set("symmetric", false)),
              HasSubstr("symmetric integers of 4 bits"));
  EXPECT_THAT(refusal("packed", set("num_bits", 8)), HasSubstr("symmetric integers of 4 bits"));
  EXPECT_THAT(refusal("gptq", [](json& q, io::SafeTensors&) { q["checkpoint_format"] = "marlin"; }),
              HasSubstr("checkpoint_format is \"marlin\"; of GPTQ, \"gptq\" and \"gptq_v2\""));
  for (const json& odd : {json(128), json({128}), json({0, 128}), json({-1, 2}), json({1.5, 2})})
    EXPECT_THAT(refusal("fp8", [&](json& q, io::SafeTensors&) { q["weight_block_size"] = odd; }),
                HasSubstr("weight_block_size must be two sizes, it is " + odd.dump()));
}

constexpr char q_proj[] = "model.layers.0.self_attn.q_proj";

TEST(quantized_folders, name_weights_whose_parts_do_not_fit) {
  const std::string q = q_proj;
  const auto without = [](const std::string& name) {
    return [=](json&, io::SafeTensors& file) { file.tensors.erase(name); };
  };
  const auto with = [](const std::string& name, DType dtype, std::vector<int64_t> sizes) {
    return
        [=](json&, io::SafeTensors& file) { file.tensors[name] = io::Array::zeros(dtype, sizes); };
  };
  EXPECT_THAT(refusal("gptq", without(q + ".scales")),
              HasSubstr("weight " + q + ": .scales is missing"));
  EXPECT_THAT(refusal("gptq", with(q + ".scales", DType::f16, {1, 64})),
              HasSubstr(q + ": its scales do not fit 2 groups of 64 outputs"));
  EXPECT_THAT(refusal("gptq", with(q + ".qzeros", DType::i32, {2, 9})),
              HasSubstr("zero points do not fit"));
  EXPECT_THAT(refusal("gptq", with(q + ".g_idx", DType::i32, {64})),
              HasSubstr("desc_act), which is not read"));
  EXPECT_THAT(refusal("gptq", [](json& c, io::SafeTensors&) { c["group_size"] = 16; }),
              HasSubstr("groups of 16 of 96 inputs do not divide into blocks of 32"));
  EXPECT_THAT(refusal("fp8", without(q + ".weight_scale_inv")),
              HasSubstr("no .weight_scale_inv and no .weight_scale"));
  EXPECT_THAT(refusal("fp8", with(q + ".weight_scale_inv", DType::f32, {5, 2})),
              HasSubstr("its scales do not fit: (64, 64) has not (5, 2) tiles of 32 rows"));
  EXPECT_THAT(refusal("fp8",
                      [](json& c, io::SafeTensors&) {
                        c["weight_block_size"] = {96, 32};
                      }),
              HasSubstr("tiles of 96 rows and 32 columns"));
  EXPECT_THAT(refusal("packed", with(q + ".weight_shape", DType::i64, {2})),
              HasSubstr("its shape does not fit its integers"));
  EXPECT_THAT(refusal("packed", with(q + ".weight_zero_point", DType::i32, {8, 2})),
              HasSubstr("zero points and groups in another order are not read"));
  EXPECT_THAT(
      refusal("mxfp4", with("model.layers.1.mlp.experts.down_proj_scales", DType::u8, {6, 64, 3})),
      HasSubstr("_blocks are not 16 bytes for each element of _scales"));
  EXPECT_THAT(refusal("mxfp8_e4m3", without(q + ".weight_scale")),
              HasSubstr("weight " + q + ": .weight_scale is missing"));
  EXPECT_THAT(refusal("mxfp8_e4m3", with(q + ".weight_scale", DType::u8, {64, 3})),
              HasSubstr(q + ": .weight has not 32 bytes, those of 32 elements, for each element"));
  EXPECT_THAT(refusal("mxfp6_e2m3", with(q + ".weight_packed", DType::u8, {64, 50})),
              HasSubstr(q + ": .weight_packed has not 24 bytes"));
  EXPECT_THAT(refusal("mxfp4_packed", with(q + ".weight_scale", DType::f32, {64, 2})),
              HasSubstr(".weight_scale has 2 dimensions of f32, not 2 of u8"));
  EXPECT_THAT(refusal("mxfp4_packed", with(q + ".weight_zero_point", DType::u8, {64, 2})),
              HasSubstr("zero points are not read"));
  EXPECT_THAT(refusal("gptq", with("model.layers.0.odd.qweight", DType::f32, {8, 8})),
              HasSubstr(".qweight has 2 dimensions of f32, not 2 of i32"));
  EXPECT_THAT(refusal("gptq", with(q + ".weight", DType::f32, {64, 64})),
              HasSubstr("weight " + q + ".weight is in the folder twice"));
}

TEST(quantized_folders, name_weights_of_bitsandbytes_whose_parts_do_not_fit) {
  const std::string q = std::string(q_proj) + ".weight";
  const auto without = [&](const std::string& part) {
    return [=](json&, io::SafeTensors& file) { file.tensors.erase(q + part); };
  };
  const auto with = [&](const std::string& part, DType dtype, std::vector<int64_t> sizes) {
    return [=](json&, io::SafeTensors& file) {
      file.tensors[q + part] = io::Array::zeros(dtype, sizes);
    };
  };
  const auto with_state = [&](const std::string& text) {
    return [=](json&, io::SafeTensors& file) {
      file.tensors[q + ".quant_state.bitsandbytes__nf4"] = io::Array::of<uint8_t>(
          {static_cast<int64_t>(text.size())}, std::vector<uint8_t>(text.begin(), text.end()));
    };
  };
  EXPECT_THAT(refusal("nf4", without(".absmax")),
              HasSubstr("weight.absmax is not one f32 or u8 for each block"));
  EXPECT_THAT(refusal("nf4", with(".absmax", DType::u8, {63})), HasSubstr("for each block"));
  EXPECT_THAT(refusal("nf4", without(".nested_absmax")), HasSubstr("nested_absmax is missing"));
  EXPECT_THAT(refusal("nf4", with(".nested_absmax", DType::f32, {2})), HasSubstr("does not fit"));
  EXPECT_THAT(refusal("nf4", with(".nested_quant_map", DType::f32, {255})),
              HasSubstr("does not fit"));
  EXPECT_THAT(refusal("nf4", with(".quant_map", DType::f32, {16})),
              HasSubstr("the levels in weight.quant_map are not those of NF4"));
  EXPECT_THAT(refusal("nf4", with("", DType::u8, {100})),
              HasSubstr("(64, 64) elements do not fit 100 bytes of weight"));
  EXPECT_THAT(refusal("nf4", with("", DType::u8, {0})), HasSubstr("do not fit 0 bytes"));
  EXPECT_THAT(refusal("nf4", with(".quant_state.bitsandbytes__fp4", DType::u8, {2})),
              HasSubstr("nf4 and integers of 8 bits are read, not fp4"));
  for (const char* damaged : {"{", "[]", "{}", R"({"shape": [64, "x"], "blocksize": 64})"})
    EXPECT_THAT(refusal("nf4", with_state(damaged)), HasSubstr("its quant_state is damaged"));
  EXPECT_THAT(refusal("nf4", with_state(R"({"shape": [64], "blocksize": 64})")),
              HasSubstr("it is no matrix"));
  for (const char* blocks : {"32", "0", "-64", "96"})
    EXPECT_THAT(refusal("nf4", with_state(R"({"shape": [64, 64], "blocksize": )" +
                                          std::string(blocks) + "}")),
                HasSubstr("blocks of " + std::string(blocks) + " elements are not read"));
  EXPECT_THAT(refusal("nf4", with_state(R"({"shape": [128, 32], "blocksize": 64})")),
              HasSubstr("rows of 32 elements do not divide into blocks of 64"));
  for (const char* shape : {"[-64, -64]", "[0, 0]", "[4611686018427387904, 2]", "[1, 4096]"})
    EXPECT_NE(
        refusal("nf4", with_state(R"({"blocksize": 64, "shape": )" + std::string(shape) + "}")), "")
        << shape;
  EXPECT_THAT(refusal("bitsandbytes_8_bits",
                      [](json&, io::SafeTensors& file) {
                        file.tensors[std::string(q_proj) + ".SCB"] =
                            io::Array::zeros(DType::f32, {63});
                      }),
              HasSubstr("SCB is not one f32 for each row"));
}

/// Scales of one byte were read as f32, from behind their end.
TEST(quantized_folders, refuse_scales_that_are_no_floats) {
  for (const DType dtype : {DType::i8, DType::u8, DType::boolean, DType::f64, DType::i32}) {
    const auto give = [&](const std::string& suffix) {
      return [=](json&, io::SafeTensors& file) {
        io::Array& scales = file.tensors[q_proj + suffix];
        scales = io::Array::zeros(dtype, scales.sizes);
      };
    };
    const auto is_refused = HasSubstr(std::string(" is of ") + name_of(dtype) + ", not of f32");
    EXPECT_THAT(refusal("packed", give(".weight_scale")), is_refused);
    EXPECT_THAT(refusal("fp8", give(".weight_scale_inv")), is_refused);
    EXPECT_THAT(refusal("fp8_rows", give(".weight_scale")), is_refused);
  }
}

/// Their other extents may be any, so that products of them overflow.
TEST(quantized_folders, refuse_parts_without_elements) {
  constexpr int64_t huge = int64_t{1} << 61;
  const auto empty = [](const std::string& name, DType dtype, std::vector<int64_t> sizes) {
    return
        [=](json&, io::SafeTensors& file) { file.tensors[name] = io::Array::zeros(dtype, sizes); };
  };
  const std::string q = q_proj;
  EXPECT_THAT(refusal("gptq", empty(q + ".qweight", DType::i32, {huge, 0})), HasSubstr("is empty"));
  EXPECT_THAT(refusal("awq", empty(q + ".qweight", DType::i32, {0, huge})), HasSubstr("is empty"));
  EXPECT_THAT(refusal("packed", empty(q + ".weight_packed", DType::i32, {0, huge})),
              HasSubstr("is empty"));
  EXPECT_THAT(refusal("packed", empty(q + ".weight_scale", DType::f16, {64, 0})),
              HasSubstr("has no .weight_scale"));
  EXPECT_THAT(refusal("fp8", empty(q + ".weight", DType::f8_e4m3fn, {0, huge})),
              HasSubstr("is empty"));
  EXPECT_THAT(refusal("mxfp4", empty("model.layers.0.mlp.experts.down_proj_blocks", DType::u8,
                                     {0, huge, huge, 16})),
              HasSubstr("is empty"));
}

}  // namespace
}  // namespace taper::llm
