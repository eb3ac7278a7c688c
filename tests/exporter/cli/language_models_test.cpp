// Language models: exported, and compared with golden results.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(taper_check, compares_a_language_model_with_golden_results) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const std::string golden = (folder / "golden.safetensors").string();
  const Outcome o = taper_command("check", folder.string(), golden);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("ok    eager   hidden.layer_1"));
  EXPECT_THAT(o.out, HasSubstr("ok    program decode.logits"));
  EXPECT_THAT(o.out, Not(HasSubstr("WRONG")));
}

TEST(taper_check, compares_longrope_in_both_contexts) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/phi3");
  const Outcome o =
      taper_command("check", folder.string(), (folder / "golden.safetensors").string());
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("ok    program long.logits"));
  EXPECT_THAT(o.out, HasSubstr("ok    program decode.logits"));
  EXPECT_THAT(o.out, Not(HasSubstr("WRONG")));
}

TEST(taper_check, says_which_result_of_a_language_model_differs) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  io::SafeTensors golden = io::read_safetensors(folder / "golden.safetensors");
  golden.tensors.at("logits").values<float>()[7] += 0.001f;
  const std::string changed = tests::scratch_file("changed.safetensors").string();
  io::write_safetensors(changed, golden);
  const Outcome o = taper_command("check", folder.string(), changed);
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.out, HasSubstr("WRONG eager   logits"));
  EXPECT_THAT(o.out, HasSubstr("ok    eager   greedy.tokens"));
  EXPECT_THAT(o.err, HasSubstr("differ from"));
}

TEST(taper_check, needs_golden_results_for_a_language_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const Outcome none = taper_command("check", folder.string());
  EXPECT_EQ(none.code, failure);
  EXPECT_THAT(none.err, HasSubstr("give golden results"));
  const std::string weights = (folder / "model.safetensors").string();
  EXPECT_THAT(taper_command("check", folder.string(), weights).err,
              HasSubstr("nothing to compare"));
}

TEST(taper_export, makes_a_program_of_a_language_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const std::string program = tests::scratch_file("smollm.taper").string();
  const Outcome o = taper_command("export", folder.string(), "-o", program, "--context", "100");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("forward(ids: i64[1, n], start: i64[1]) -> logits: f32[1, 1, 256]"));
  EXPECT_THAT(o.out, HasSubstr("n in 1..100"));
  EXPECT_THAT(o.out, HasSubstr("a context of 100 tokens takes 38.4 kB: 384 B for each token"));
  EXPECT_TRUE(std::filesystem::exists(program));
}

TEST(taper_export, says_that_a_model_without_attention_needs_no_cache) {
  const std::string model = tests::test_data("hf_families/gguf/rwkv7.gguf").string();
  const std::string program = tests::scratch_file("rwkv7.taper").string();
  const Outcome o = taper_command("export", model, "-o", program);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("each text takes the same memory, however long it is"));
}

TEST(taper_export, refuses_what_it_lacks_of_rwkv) {
  const std::filesystem::path folder = tests::scratch_file("config.json").parent_path();
  io::SafeTensors none;
  none.tensors["x"] = io::Array::zeros(DType::f32, {1});
  io::write_safetensors(folder / "model.safetensors", none);
  std::ofstream(folder / "config.json") << R"({"model_type": "rwkv7"})";
  const std::string program = tests::scratch_file("x.taper").string();
  EXPECT_THAT(taper_command("export", folder.string(), "-o", program).err,
              HasSubstr("llama.cpp's convert_hf_to_gguf.py"));
  std::ofstream(folder / "config.json") << R"({"model_type": "rwkv5"})";
  EXPECT_THAT(taper_command("export", folder.string(), "-o", program).err,
              HasSubstr("the family \"rwkv5\" are not supported; these are: "));
}

// Rows of 8 features take 32 bytes in f32. Blocks have 32 features.
TEST(taper_export, gives_a_language_model_smaller_caches) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const std::string program = tests::scratch_file("smollm.taper").string();
  const auto bytes_with = [&](const char* command, const char* option, const char* value) {
    const Outcome o = taper_command(command, folder.string(), "-o", program, option, value);
    EXPECT_EQ(o.code, success) << o.err;
    return o.out;
  };
  EXPECT_THAT(bytes_with("export", "--cache-dtype", "f16"), HasSubstr("192 B for each token"));
  EXPECT_THAT(bytes_with("export", "--cache-dtype", "int8"), HasSubstr("408 B for each token"));
  EXPECT_THAT(bytes_with("export", "--cache-dtype", "int8-int4"),
              HasSubstr("312 B for each token"));
  EXPECT_THAT(bytes_with("quantize", "--recipe", "kv-int8"), HasSubstr("408 B for each token"));
  EXPECT_THAT(bytes_with("quantize", "--recipe", "kv-int4"), HasSubstr("216 B for each token"));
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("u8[1, 3, 256, 18]"));
  EXPECT_THAT(taper_command("generate", program, "--prompt", "t1", "--cache-dtype", "int8").err,
              HasSubstr("export it again, with --context, --exact, --cache-dtype"));
  const Outcome encoder = taper_command("export", tests::golden_data("hf_tiny/bert").string(), "-o",
                                        program, "--cache-dtype", "int8");
  EXPECT_THAT(encoder.err, HasSubstr("--cache-dtype is for models that write; this one has no "
                                     "caches"));
  const Outcome other = taper_command("quantize", tests::golden_data("pt2/lenet.pt2").string(),
                                      "-o", program, "--recipe", "kv-int8");
  EXPECT_THAT(other.err, HasSubstr("recipe kv-int8 is for the caches of language models"));
}

TEST(taper_generate, continues_a_text_with_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const llm::TalkingModel talking = llm::talking_model(folder);
  const std::string program = tests::scratch_file("talking.taper").string();
  const Outcome exported =
      taper_command("export", talking.folder, "-o", program, "--context", "100", "--exact");
  EXPECT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("3 assets"));
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("  tokenizer.json"));
  for (const std::string& model : {program, talking.folder}) {
    const Outcome o = taper_command("generate", model, "--prompt", talking.question(), "--greedy",
                                    "--json", "--max-tokens", "24");
    EXPECT_EQ(o.code, success) << o.err;
    const nlohmann::json answer = nlohmann::json::parse(o.out);
    EXPECT_EQ(answer["prompt_ids"], nlohmann::json(talking.prompt));
    EXPECT_EQ(answer["ids"], nlohmann::json(talking.answer));
    EXPECT_EQ(answer["text"], llm::words(talking.answer));
  }
  EXPECT_THAT(taper_command("generate", program, "--prompt", "t1", "--context", "50").err,
              HasSubstr("the exactness and the weights that it was exported with"));
}

TEST(taper_export, gives_a_language_model_rows_for_several_texts) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const llm::TalkingModel talking = llm::talking_model(folder);
  const std::string program = tests::scratch_file("talking.taper").string();
  const Outcome o = taper_command("export", talking.folder, "-o", program, "--context", "100",
                                  "--exact", "--parallel", "3", "--states");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("decode(ids: i64[batch, 1], start: i64[batch], rows: i64[batch]) -> "
                               "logits: f32[batch, 1, 256]"));
  EXPECT_THAT(o.out, HasSubstr("batch in 1..4"));
  EXPECT_THAT(o.out, HasSubstr("the caches hold 4 texts: 153.6 kB if all are that long"));
  const Outcome answer = taper_command("generate", program, "--prompt", talking.question(),
                                       "--greedy", "--json", "--max-tokens", "24");
  EXPECT_EQ(answer.code, success) << answer.err;
  EXPECT_EQ(nlohmann::json::parse(answer.out)["ids"], nlohmann::json(talking.answer));
}

TEST(taper_export, refuses_options_that_a_language_model_does_not_have) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const std::string program = tests::scratch_file("smollm.taper").string();
  const auto refusal = [&](const char* option, const char* value) {
    const Outcome o = taper_command("export", folder.string(), "-o", program, option, value);
    EXPECT_NE(o.code, success) << option;
    return o.err;
  };
  EXPECT_THAT(refusal("--dim", "x.0=1..2"), HasSubstr("for .pt2 files"));
  EXPECT_THAT(refusal("--context", "0"), HasSubstr("--context: it must be positive"));
  EXPECT_THAT(refusal("--chunk", "0"), HasSubstr("at least one token"));
  EXPECT_THAT(refusal("--parallel", "0"), HasSubstr("--parallel: it must be from 1 to 256"));
  EXPECT_THAT(refusal("--parallel", "257"), HasSubstr("--parallel: it must be from 1 to 256"));
  EXPECT_THAT(taper_command("export", folder.string()).err, HasSubstr("--output FILE.taper"));
}

}  // namespace
}  // namespace taper::cli
