// An adapter in models that do more than write, or do not write: the results are those of the model
// that the adapter is merged into.
#include <gmock/gmock.h>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/encoder.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/image_model.h"
#include "taper/exporter/llm/seq2seq.h"
#include "taper/tests/exporter/llm/random_adapter.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using tests::formula_golden, tests::formula_model;

/// `result_of(model, adapter)` beside the same of the merged model, and of the model alone.
template <class ResultOf>
void expect_merged(const std::filesystem::path& model, const tests::RandomAdapter& adapter,
                   const ResultOf& result_of) {
  const std::string alone = model.string();
  const std::vector<float> want = result_of(tests::merged_model(model, adapter), ""),
                           got = result_of(alone, tests::peft_folder(model, adapter));
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-4f), want));
  EXPECT_THAT(result_of(alone, ""),
              testing::Not(testing::Pointwise(testing::FloatNear(1e-2f), want)));
}

TEST(one_adapter, changes_an_encoder_as_the_merged_model_does) {
  const Tensor ids = eager::tensor_of(formula_golden("modernbert").tensors.at("input_ids"));
  expect_merged(formula_model("modernbert"), {"words", 2, 3, "Wo.weight"},
                [&](const std::string& path, const std::string& lora) {
                  const auto encoder = load_encoder(path, lora);
                  return encoder->forward(ids, eager::ones_like(ids), {}).last.to_vector<float>();
                });
}

TEST(one_adapter, changes_both_towers_of_images_and_texts) {
  const io::SafeTensors golden = formula_golden("clip");
  const Tensor pixels = eager::tensor_of(golden.tensors.at("pixel_values")),
               ids = eager::tensor_of(golden.tensors.at("input_ids"));
  const std::filesystem::path folder = formula_model("clip");
  for (const bool sees : {true, false})
    expect_merged(folder, {"eyes", 2, 3, "fc1.weight"},
                  [&](const std::string& path, const std::string& lora) {
                    const auto model = load_image_model(path, lora);
                    const TowerResult result =
                        sees ? model->embed_image(pixels) : model->embed_text(ids);
                    return result.last.to_vector<float>();
                  });
}

TEST(one_adapter, changes_a_model_that_reads_a_source) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/whisper");
  const std::filesystem::path folder = tests::scratch_file("whisper");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(source / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  io::SafeTensors weights = io::read_safetensors(source / "model.safetensors");
  for (auto& [name, array] : weights.tensors)  // which are bf16
    array = eager::array_of(eager::tensor_of(array).to(DType::f32));
  io::write_safetensors(folder / "model.safetensors", weights);
  const io::SafeTensors file = io::read_safetensors(source / "golden.safetensors");
  const GoldenValues golden(file);
  expect_merged(folder, {"accent", 2, 3, "q_proj.weight"},
                [&](const std::string& path, const std::string& lora) {
                  const auto model = load_seq2seq(path, {.lora = lora});
                  EagerSeq2SeqRunner runner(*model);
                  (void)runner.encode(golden.tensor("input_features"));
                  return runner.logits(golden.ids("decoder_input_ids"), 0, true).to_vector<float>();
                });
  const LoadOptions named = {.adapters = {{"a", "somewhere"}}};
  EXPECT_EXPORT_ERROR(load_seq2seq(folder.string(), named), "give --lora without a name");
}

TEST(one_adapter, belongs_to_products_that_an_encoder_has) {
  const std::filesystem::path folder = formula_model("modernbert");
  const std::string adapter = tests::peft_folder(folder, {"odd", 2, 3, "tok_embeddings.weight"});
  EXPECT_EXPORT_ERROR(load_encoder(folder.string(), adapter), "the model has no product with");
}

}  // namespace
}  // namespace taper::llm
