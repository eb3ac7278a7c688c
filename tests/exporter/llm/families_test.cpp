// Every family against what Hugging Face's transformers gave for a small model of it: in eager and
// as a program, with both spellings of the configuration, and from GGUF files.
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/support/data.h"

namespace taper::llm {
namespace {

const char* const names[] = {"bloom", "cohere",   "falcon",    "gemma",  "gemma2",  "gemma3",
                             "gpt2",  "gpt_neox", "granite",   "lfm2",   "llama2",  "llama3",
                             "mamba", "mistral",  "mixtral",   "olmo2",  "phi2",    "phi3",
                             "qwen2", "qwen3",    "qwen3_moe", "smollm", "stablelm"};

void expect_passed(const std::vector<Compared>& results) {
  EXPECT_FALSE(results.empty());
  for (const Compared& r : results)
    EXPECT_TRUE(r.passed()) << r.name << ": " << r.difference << ", allowed are " << r.tolerance;
}

io::SafeTensors golden_of(const std::filesystem::path& folder) {
  return io::read_safetensors(folder / "golden.safetensors");
}

class family : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, family, testing::ValuesIn(names),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(family, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const Model model = load(folder.string());
  EagerRunner runner(*model.decoder);
  expect_passed(compare_with_golden(runner, golden_of(folder)));
}

TEST_P(family, reads_the_older_spelling_of_its_configuration) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  if (!std::filesystem::exists(folder / "config_old_style.json"))
    GTEST_SKIP() << "has one spelling";
  const Model model = load(folder.string(), {.config = "config_old_style.json"});
  EagerRunner runner(*model.decoder);
  expect_passed(compare_with_golden(runner, golden_of(folder)));
}

TEST_P(family, gives_the_recorded_results_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const Model model = load(folder.string());
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 128, .all_logits = true});
  ProgramRunner runner(exporter.write(ExportOptions{.exact = true}));
  expect_passed(compare_with_golden(runner, golden_of(folder)));
}

}  // namespace
}  // namespace taper::llm
