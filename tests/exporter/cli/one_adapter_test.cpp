// The option --lora of `eval` and `embed`, beside a model that the adapter is merged into.
#include <gmock/gmock.h>

#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/exporter/llm/random_adapter.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;

std::vector<float> floats_of(const std::string& file) {
  std::vector<float> all;
  for (auto& [name, array] : io::read_safetensors(file).tensors)
    for (const float x : array.values<float>()) all.push_back(x);
  return all;
}

class one_adapter : public testing::Test {
 protected:
  static std::filesystem::path writing_model() {
    const std::filesystem::path folder = tests::formula_model("smollm3");
    std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(48);
    return folder;
  }
  static std::string written(const char* name, const std::string& text) {
    const std::string path = tests::scratch_file(name).string();
    std::ofstream(path) << text;
    return path;
  }
  const std::filesystem::path folder_ = writing_model();
  const tests::RandomAdapter random_{"pirate", 2, 3, "_proj.weight"};
  const std::string adapter_ = tests::peft_folder(folder_, random_),
                    merged_ = tests::merged_model(folder_, random_);
};

TEST_F(one_adapter, changes_a_perplexity_as_the_merged_model_does) {
  const std::string text = written("text.txt", "t3 t9 t41 t17 t5 t30 t8 t12 t40 t7 t6");
  const auto perplexity_of = [&](const std::string& model, auto... lora) {
    const Outcome o = taper_command("eval", model, "--text", text, "--json", lora...);
    EXPECT_EQ(o.code, success) << o.err;
    return nlohmann::json::parse(o.out)["perplexity"].get<double>();
  };
  const double want = perplexity_of(merged_);
  EXPECT_NEAR(perplexity_of(folder_.string(), "--lora", adapter_), want, want * 1e-4);
  EXPECT_GT(std::abs(perplexity_of(folder_.string()) - want), want * 1e-2);
}

TEST_F(one_adapter, changes_embeddings_as_the_merged_model_does) {
  const std::string texts = written("texts.json", R"(["t3 t9 t41", "t17 t5"])"),
                    output = tests::scratch_file("embeddings.safetensors").string();
  const auto embeddings_of = [&](const std::string& model, auto... lora) {
    const Outcome o =
        taper_command("embed", model, "--texts", texts, "-o", output, "--no-cache", lora...);
    EXPECT_EQ(o.code, success) << o.err;
    return floats_of(output);
  };
  const std::vector<float> want = embeddings_of(merged_), plain = embeddings_of(folder_.string());
  EXPECT_THAT(embeddings_of(folder_.string(), "--lora", adapter_),
              testing::Pointwise(testing::FloatNear(1e-4f), want));
  EXPECT_THAT(plain, testing::Not(testing::Pointwise(testing::FloatNear(1e-3f), want)));
}

TEST_F(one_adapter, is_refused_if_it_has_a_name_or_is_not_there) {
  const std::string text = written("text.txt", "t3 t9"), texts = written("texts.json", "[\"t3\"]"),
                    output = tests::scratch_file("none.safetensors").string();
  const auto refusal = [&](const std::string& model, const std::string& lora) {
    const std::string of_eval = taper_command("eval", model, "--text", text, "--lora", lora).err;
    const std::string of_embed =
        taper_command("embed", model, "--texts", texts, "-o", output, "--lora", lora).err;
    EXPECT_EQ(of_eval.substr(of_eval.find(": ")), of_embed.substr(of_embed.find(": ")));
    return of_eval;
  };
  EXPECT_THAT(refusal(folder_.string(), "a=" + adapter_),
              HasSubstr("this command uses one adapter; give it without a name"));
  EXPECT_THAT(refusal(folder_.string(), "nowhere"), HasSubstr("--lora nowhere: there is no file"));
  const std::string program = tests::scratch_file("m.taper").string();
  ASSERT_EQ(taper_command("export", folder_.string(), "-o", program, "--states").code, success);
  EXPECT_THAT(refusal(program, adapter_), HasSubstr("export it again with --lora"));
}

TEST(one_adapter_of_an_encoder, changes_embeddings_as_the_merged_model_does) {
  const std::filesystem::path folder = tests::formula_model("modernbert");
  std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(48);
  const tests::RandomAdapter random{"words", 2, 3, "Wo.weight"};
  const std::string adapter = tests::peft_folder(folder, random),
                    merged = tests::merged_model(folder, random),
                    texts = tests::scratch_file("texts.json").string(),
                    output = tests::scratch_file("embeddings.safetensors").string();
  std::ofstream(texts) << R"(["t3 t9 t41", "t17 t5"])";
  const auto embeddings_of = [&](const std::string& model, auto... lora) {
    const Outcome o = taper_command("embed", model, "--texts", texts, "-o", output, lora...);
    EXPECT_EQ(o.code, success) << o.err;
    return floats_of(output);
  };
  const std::vector<float> want = embeddings_of(merged);
  EXPECT_THAT(embeddings_of(folder.string(), "--lora", adapter),
              testing::Pointwise(testing::FloatNear(1e-5f), want));
  EXPECT_THAT(embeddings_of(folder.string()),
              testing::Not(testing::Pointwise(testing::FloatNear(1e-3f), want)));
  const std::string program = tests::scratch_file("m.taper").string(), named = "a=" + adapter;
  const auto refusal = [&](auto... command) { return taper_command(command...).err; };
  EXPECT_THAT(refusal("export", folder.string(), "-o", program, "--lora", named),
              HasSubstr("it takes one adapter; give --lora without a name"));
  EXPECT_THAT(refusal("serve", folder.string(), "--port", "0", "--lora", named),
              HasSubstr("an encoder takes one adapter; give --lora without a name"));
  EXPECT_EQ(taper_command("export", folder.string(), "-o", program, "--lora", adapter).code,
            success);
}

}  // namespace
}  // namespace taper::cli
