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

/// Checks a model in the context that it was trained for, and one with LongRoPE in its original
/// one, too, whose texts are turned otherwise.
template <class RunnerOf>
void expect_golden(const std::filesystem::path& folder, LoadOptions options, RunnerOf runner_of) {
  const io::SafeTensors golden = golden_of(folder);
  const auto check = [&](const Model& model) {
    auto runner = runner_of(*model.decoder);
    expect_passed(compare_with_golden(runner, results_of_context(model.config, golden)));
  };
  const Model model = load(folder.string(), options);
  check(model);
  if (model.config.rotary.long_frequencies.empty()) return;
  EXPECT_TRUE(model.config.rotary.is_long(model.config.capacity));
  options.capacity = model.config.rotary.original_context;
  check(load(folder.string(), options));
}

class family : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, family, testing::ValuesIn(names),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(family, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  expect_golden(folder, {}, [](Decoder& decoder) { return EagerRunner(decoder); });
}

TEST_P(family, reads_the_older_spelling_of_its_configuration) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  if (!std::filesystem::exists(folder / "config_old_style.json"))
    GTEST_SKIP() << "has one spelling";
  expect_golden(folder, {.config = "config_old_style.json"},
                [](Decoder& decoder) { return EagerRunner(decoder); });
}

TEST_P(family, gives_the_recorded_results_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  expect_golden(folder, {}, [](Decoder& decoder) {
    Exporter exporter;
    add_methods(exporter, decoder, {.chunk = 128, .all_logits = true});
    return ProgramRunner(exporter.write(ExportOptions{.exact = true}));
  });
}

}  // namespace
}  // namespace taper::llm
