// BERT against transformers, in eager and as a program.
#include "taper/exporter/llm/encoder.h"

#include <gmock/gmock.h>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/program.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;

TEST(encoder, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/bert");
  ASSERT_TRUE(is_encoder(folder.string()));
  const auto encoder = load_encoder(folder.string());
  const auto results =
      compare_with_golden(*encoder, io::read_safetensors(folder / "golden.safetensors"));
  EXPECT_EQ(results.size(), 7u);
  for (const Compared& r : results)
    EXPECT_TRUE(r.passed()) << r.name << ": " << r.difference << " of " << r.tolerance;
}

TEST(encoder, gives_the_recorded_embeddings_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/bert");
  const auto encoder = load_encoder(folder.string());
  Exporter exporter;
  add_methods(exporter, *encoder, 4);
  const std::vector<std::byte> program = exporter.write(ExportOptions{.exact = true});
  Result<Module> module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())));
  ASSERT_TRUE(module.ok());

  const io::SafeTensors golden = io::read_safetensors(folder / "golden.safetensors");
  const Tensor ids = eager::tensor_of(golden.at("batch.input_ids")),
               mask = eager::tensor_of(golden.at("batch.attention_mask"));
  const auto embedded = module.value().execute("embed", {Input(ids.ref()), Input(mask.ref())});
  ASSERT_TRUE(embedded.ok()) << module.value().message();
  const auto want = golden.at("batch.mean_pooled_normalized").values<float>();
  ASSERT_EQ(embedded.value()[0].numel(), static_cast<index_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(embedded.value()[0].data<float>()[i], want[i], 1e-5);
}

TEST(encoder, is_told_by_its_configuration) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama2");
  EXPECT_FALSE(is_encoder(folder.string()));
  EXPECT_FALSE(is_encoder("/nowhere"));
  EXPECT_THROW((void)load_encoder("/nowhere"), ExportError);
}

}  // namespace
}  // namespace taper::llm
