// Models of images against what Hugging Face's transformers gave for small ones: in eager and as
// programs.
#include "taper/exporter/llm/image_model.h"

#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/exporter/llm/golden_results.h"
#include "taper/tests/support/data.h"

namespace taper::llm {
namespace {

class image_model : public testing::TestWithParam<Recorded> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, image_model,
                         testing::Values(Recorded{"clip_vision", 5, 2}, Recorded{"siglip", 5, 5}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(image_model, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  ASSERT_TRUE(is_image_model(folder.string()));
  const auto model = load_image_model(folder.string());
  EagerImageRunner runner(*model);
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                GetParam().results_in_eager);
}

TEST_P(image_model, gives_the_recorded_results_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  const auto model = load_image_model(folder.string());
  Exporter exporter;
  add_methods(exporter, *model, 4);
  ProgramImageRunner runner(exporter.write(ExportOptions{.exact = true}));
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                GetParam().results_of_program);
}

TEST(image_models, are_told_by_their_configuration) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/bert");
  EXPECT_FALSE(is_image_model(folder.string()));
  EXPECT_FALSE(is_image_model("/nowhere"));
}

}  // namespace
}  // namespace taper::llm
