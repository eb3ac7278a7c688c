// Models out of GGUF files, against transformers on the same weights.
#include <gmock/gmock.h>

#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/support/data.h"

namespace taper::llm {
namespace {

struct Source {
  const char *model, *type;
};

class gguf_model : public testing::TestWithParam<Source> {};
INSTANTIATE_TEST_SUITE_P(of_plain_weights, gguf_model,
                         testing::Values(Source{"llama3", "F32"}, Source{"llama3", "F16"},
                                         Source{"qwen2", "BF16"}),
                         [](const auto& info) {
                           return std::string(info.param.model) + "_" + info.param.type;
                         });

std::string file_of(const Source& s) {
  return std::string("hf_tiny/gguf/") + s.model + "-" + s.type + ".gguf";
}

TEST_P(gguf_model, gives_the_recorded_results_in_eager_and_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, file_of(GetParam()));
  const Model model = load(file.string());
  EXPECT_EQ(model.stored_type, GetParam().type);
  const io::SafeTensors golden = io::read_safetensors(
      file.parent_path() / (std::string(GetParam().model) + ".golden.safetensors"));
  EagerRunner eager_runner(*model.decoder);
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 64, .all_logits = true});
  ProgramRunner program(exporter.write(ExportOptions{.exact = true}));
  for (Runner* runner : {static_cast<Runner*>(&eager_runner), static_cast<Runner*>(&program)}) {
    const auto results = compare_with_golden(*runner, golden, model.stored_type + ".");
    EXPECT_EQ(results.size(), 2u);
    for (const Compared& r : results) EXPECT_TRUE(r.passed()) << r.name << ": " << r.difference;
  }
}

/// Stands for a reader of blocks: all numbers are 0.5.
void halves(uint32_t, std::span<const std::byte>, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = 0.5f;
}

TEST(checkpoint, asks_for_the_numbers_of_quantized_weights) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "hf_tiny/gguf/llama3-Q8_0.gguf");
  const gguf::File opened(file);
  Checkpoint checkpoint(opened, halves);
  const Weight w = Weights(checkpoint)["layers"][0]["attention.q"].matrix(128, 64);
  EXPECT_EQ(w.to_vector<float>(), std::vector<float>(128 * 64, 0.5f));
}

}  // namespace
}  // namespace taper::llm
