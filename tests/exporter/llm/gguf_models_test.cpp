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
INSTANTIATE_TEST_SUITE_P(
    of_weights, gguf_model,
    testing::Values(Source{"llama3", "F32"}, Source{"llama3", "F16"}, Source{"llama3", "MXFP4"},
                    Source{"llama3", "Q4_0"}, Source{"llama3", "Q4_1"}, Source{"llama3", "Q5_0"},
                    Source{"llama3", "Q5_1"}, Source{"llama3", "Q8_0"}, Source{"gemma2", "Q4_1"},
                    Source{"gemma2", "Q5_0"}, Source{"gemma2", "Q8_0"}, Source{"qwen2", "BF16"},
                    Source{"qwen2", "Q4_0"}, Source{"qwen2", "Q5_1"}, Source{"qwen2", "Q8_0"},
                    Source{"qwen3", "Q8_0"}),
    [](const auto& info) { return std::string(info.param.model) + "_" + info.param.type; });

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

TEST(checkpoint, keeps_blocks_as_they_lie) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "hf_tiny/gguf/llama3-Q8_0.gguf");
  const gguf::File opened(file);
  Checkpoint checkpoint(opened);
  const Weight w = Weights(checkpoint)["layers"][0]["attention.q"].matrix(128, 64);
  EXPECT_EQ(w.layout(), Layout::q8_0);
  EXPECT_EQ(w.ref().data, opened.content().tensors.at("blk.0.attn_q.weight").bytes.data());
}

}  // namespace
}  // namespace taper::llm
