// Families that hf_tiny lacks, against what transformers gave for small models of them: in eager
// and as a program.
#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/exporter/llm/formula_model.h"

namespace taper::llm {
namespace {

using tests::formula_golden, tests::formula_model;

const char* const names[] = {"cohere2",  "ernie4_5",  "exaone4",  "gemma3",      "llama4",
                             "mistral3", "glm",       "glm4",     "gpt_bigcode", "ministral",
                             "olmoe",    "phi4_mini", "seed_oss", "gpt_oss",     "llama4_text",
                             "mamba2",   "olmo3",     "opt",      "rwkv",        "qwen2_moe",
                             "smollm3",  "starcoder2"};

void expect_passed(const std::vector<Compared>& results, size_t count) {
  EXPECT_EQ(results.size(), count);
  for (const Compared& r : results)
    EXPECT_TRUE(r.passed()) << r.name << ": " << r.difference << ", allowed are " << r.tolerance;
}

class recorded_family : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, recorded_family, testing::ValuesIn(names),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(recorded_family, gives_the_recorded_results_in_eager_and_as_a_program) {
  const std::string folder = formula_model(GetParam()).string();
  const bool has_longrope = GetParam() == std::string("phi4_mini");  // recorded with short factors
  const Model model = load(folder, {.capacity = has_longrope ? 64 : 0});
  const io::SafeTensors golden = formula_golden(GetParam());
  EagerRunner eager_runner(*model.decoder);
  expect_passed(compare_with_golden(eager_runner, golden), 5);
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 64, .all_logits = true});
  ProgramRunner program(exporter.write(ExportOptions{.exact = true}));
  expect_passed(compare_with_golden(program, golden), 3);
}

// ---- encoders ----

TEST(modernbert, gives_the_recorded_results_in_eager_and_as_a_program) {
  const std::string folder = formula_model("modernbert").string();
  ASSERT_TRUE(is_encoder(folder));
  const auto encoder = load_encoder(folder);
  const io::SafeTensors golden = formula_golden("modernbert");
  expect_passed(compare_with_golden(*encoder, golden), 4);

  Exporter exporter;
  add_methods(exporter, *encoder, 2);
  MemoryProgram program(exporter.write(ExportOptions{.exact = true}));
  const auto tensor = [&](const char* name) { return eager::tensor_of(golden.at(name)); };
  const std::vector<Tensor> got =
      program.execute("embed", {tensor("batch.input_ids"), tensor("batch.attention_mask")});
  const Compared embedding =
      compare_states("embedding", got.at(0), tensor("batch.mean_pooled_normalized"));
  EXPECT_TRUE(embedding.passed()) << embedding.difference;
}

// ---- images and texts ----

TEST(clip, gives_the_recorded_results_in_eager_and_as_a_program) {
  const std::string folder = formula_model("clip").string();
  ASSERT_TRUE(is_image_model(folder));
  const auto model = load_image_model(folder);
  const io::SafeTensors golden = formula_golden("clip");
  EagerImageRunner eager_runner(*model);
  expect_passed(compare_with_golden(eager_runner, golden), 5);
  Exporter exporter;
  add_methods(exporter, *model, 4);
  ProgramImageRunner program(exporter.write(ExportOptions{.exact = true}));
  expect_passed(compare_with_golden(program, golden), 5);
}

// ---- GGUF files ----

class recorded_gguf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, recorded_gguf,
                         testing::Values("cohere", "cohere2", "ernie4_5", "glm4", "gpt_oss",
                                         "mixtral", "qwen2_moe", "qwen3_moe", "rwkv6", "rwkv7",
                                         "smollm3", "starcoder2"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(recorded_gguf, gives_the_recorded_results_in_eager_and_as_a_program) {
  const std::string stem = tests::test_data("hf_families/gguf").string() + "/" + GetParam();
  const Model model = load(stem + ".gguf");
  const io::SafeTensors golden = io::read_safetensors(stem + ".golden.safetensors");
  EagerRunner eager_runner(*model.decoder);
  expect_passed(compare_with_golden(eager_runner, golden, "Q4_0."), 2);
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 64, .all_logits = true});
  ProgramRunner program(exporter.write(ExportOptions{.exact = true}));
  expect_passed(compare_with_golden(program, golden, "Q4_0."), 2);
}

// They read a text token by token, so the numbers do not depend on what one call reads.
TEST(rwkv, gives_the_same_bits_however_a_text_is_cut) {
  for (const char* name : {"rwkv6", "rwkv7"}) {
    const Model model = load(tests::test_data("hf_families/gguf").string() + "/" + name + ".gguf");
    Exporter exporter;
    add_methods(exporter, *model.decoder, {.chunk = 32});
    ProgramRunner program(exporter.write(ExportOptions()));
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 24; ++i) ids.push_back(1 + i * 7 % 250);
    const std::vector<float> whole = program.logits(ids, 0, false).to_vector<float>();
    for (const size_t cut : {1u, 10u, 23u}) {
      program.logits({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut)}, 0, false);
      const Tensor last =
          program.logits({ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end()},
                         static_cast<int64_t>(cut), false);
      EXPECT_EQ(last.to_vector<float>(), whole) << name << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace taper::llm
