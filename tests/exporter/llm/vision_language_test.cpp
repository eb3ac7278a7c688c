// Models that see images and write a text, against what Hugging Face's transformers gave for small
// ones: in eager and as programs.
#include "taper/exporter/llm/vision_language.h"

#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/exporter/llm/golden_results.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

class vision_language : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, vision_language, testing::Values("llava", "smolvlm"),
                         [](const auto& info) { return std::string(info.param); });

std::vector<std::byte> program_of(VisionLanguage& model) {
  Exporter exporter;
  add_methods(exporter, model, {.chunk = 64, .all_logits = true});
  return exporter.write(ExportOptions{.exact = true});
}

TEST_P(vision_language, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  ASSERT_TRUE(is_vision_language(folder.string()));
  const auto model = load_vision_language(folder.string());
  EagerVisionRunner runner(*model);
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                7);
}

TEST_P(vision_language, gives_the_recorded_results_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const auto model = load_vision_language(folder.string());
  ProgramVisionRunner runner(program_of(*model), model->config.text.image_token);
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                4);
}

TEST_P(vision_language, takes_a_text_in_pieces_with_the_features_of_each) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const auto model = load_vision_language(folder.string());
  const io::SafeTensors file = io::read_safetensors(folder / "golden.safetensors");
  const GoldenValues golden(file);
  MemoryProgram program(program_of(*model));
  const Tensor features = golden.tensor("image_features")[0], ids = golden.tensor("input_ids")[0];
  const std::vector<int64_t> list = golden.ids("input_ids");
  const int64_t token = model->config.text.image_token;
  // the text is cut behind its second image token
  int64_t cut = 0, seen = 0;
  while (seen < 2) seen += list.at(static_cast<size_t>(cut++)) == token;
  const auto piece = [&](int64_t first, int64_t end, const Tensor& given) {
    return program.execute("forward_features",
                           {ids.slice(0, first, end).unsqueeze(0), row_of({first})[0], given})[0];
  };
  const auto count = static_cast<int64_t>(list.size());
  const Tensor whole = piece(0, count, features);
  (void)piece(0, cut, features.slice(0, 0, 2));
  const Tensor last = piece(cut, count, features.slice(0, 2, features.size(0).value()));
  EXPECT_EQ(last.to_vector<float>(), whole.to_vector<float>());
  EXPECT_EXPORT_ERROR(piece(0, count, features.slice(0, 0, 2)), "execute: ");
}

}  // namespace
}  // namespace taper::llm
