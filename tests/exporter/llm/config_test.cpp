// Configurations: both spellings, and keys that are missing, wrong or not supported.
#include <gmock/gmock.h>

#include "taper/exporter/base/error.h"
#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/llm/read_config.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/peak_memory.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json tiny_llama() {
  return {{"model_type", "llama"},        {"vocab_size", 32},         {"hidden_size", 16},
          {"num_hidden_layers", 2},       {"num_attention_heads", 4}, {"intermediate_size", 24},
          {"max_position_embeddings", 64}};
}

std::string refusal(const json& config) {
  try {
    (void)read_config(config);
  } catch (const ExportError& e) {
    return e.what();
  }
  return "";
}

json with(const char* key, const json& value) {
  json config = tiny_llama();
  config[key] = value;
  return config;
}

TEST(language_model_config, fills_what_is_absent) {
  const Config c = read_config(tiny_llama());
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_dim, 4);
  EXPECT_EQ(c.attention_scale, 0.5);
  EXPECT_EQ(c.rotary.dims, 4);
  EXPECT_FALSE(c.tied);
  EXPECT_THAT(c.rotary.frequencies, ElementsAre(1.0f, 0.01f));
}

TEST(language_model_config, refuses_families_that_are_unknown) {
  EXPECT_THAT(
      refusal(with("model_type", "zebra")),
      testing::AllOf(HasSubstr("\"zebra\" are not supported"), HasSubstr("these are: llama, ")));
}

// Before weights are read, tables are made for each feature of a head.
TEST(language_model_config, takes_no_memory_for_heads_that_are_too_large) {
  const size_t before = tests::peak_memory();
  EXPECT_EQ(refusal(with("head_dim", 1000000000)),
            "config: 4 heads of 1000000000 features are out of range; a head can have 16384");
  EXPECT_THAT(refusal(with("hidden_size", 1000000000)), HasSubstr("4 heads of 250000000 features"));
  EXPECT_EXPORT_ERROR((void)make_rotary({}, 1000000000, false),
                      "rotary embedding: 1000000000 features; a head can have 16384");
  EXPECT_LT(tests::peak_memory() - before, size_t{16} << 20);
}

TEST(language_model_config, names_keys_that_are_missing_or_wrong) {
  json config = tiny_llama();
  config.erase("hidden_size");
  EXPECT_EQ(refusal(config), "config: hidden_size is missing");
  EXPECT_THAT(refusal(with("vocab_size", "many")), HasSubstr("vocab_size must be an integer"));
  EXPECT_THAT(refusal(with("vocab_size", 1.5)), HasSubstr("vocab_size must be an integer"));
  EXPECT_THAT(refusal(with("rms_norm_eps", "x")), HasSubstr("rms_norm_eps must be a number"));
  EXPECT_THAT(refusal(with("tie_word_embeddings", 1)), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal(with("layer_types", json::array({1, 2}))), HasSubstr("layer_types must be"));
}

TEST(language_model_config, refuses_sizes_that_do_not_fit) {
  EXPECT_THAT(refusal(with("num_key_value_heads", 3)), HasSubstr("3 heads of keys"));
  EXPECT_THAT(refusal(with("num_attention_heads", 0)), HasSubstr("must be positive"));
  EXPECT_THAT(refusal(with("hidden_size", -16)), HasSubstr("config: "));
  EXPECT_THAT(refusal(with("vocab_size", int64_t{1} << 40)), HasSubstr("not in [1, 2^31)"));
  EXPECT_THAT(refusal(with("layer_types", json::array({"full_attention"}))),
              HasSubstr("1 entries for 2 layers"));
}

TEST(language_model_config, refuses_values_that_change_results_and_are_not_supported) {
  EXPECT_THAT(refusal(with("hidden_act", "mish")), HasSubstr("\"mish\" is unknown"));
  EXPECT_THAT(refusal(with("rope_scaling", {{"rope_type", "spiral"}})), HasSubstr("\"spiral\""));
  EXPECT_THAT(refusal(with("rope_scaling", {{"type", "longrope"}, {"short_factor", {1.0}}})),
              HasSubstr("original_max_position_embeddings"));
  EXPECT_THAT(refusal(with("layer_types", json::array({"linear_attention", "full_attention"}))),
              HasSubstr("linear_attention"));
  EXPECT_THAT(refusal(with("use_bidirectional_attention", true)), HasSubstr("later tokens"));
}

json changed(const char* family, const json& keys) {
  json config = with("model_type", family);
  config.update(keys);
  return config;
}

TEST(language_model_config, refuses_what_single_families_cannot_have) {
  EXPECT_THAT(refusal(changed("opt", {{"do_layer_norm_before", false}})),
              HasSubstr("do_layer_norm_before"));
  EXPECT_THAT(refusal(changed("opt", {{"word_embed_proj_dim", 8}})),
              HasSubstr("word_embed_proj_dim"));
  EXPECT_THAT(refusal(changed("olmoe", {{"clip_qkv", 8.0}})), HasSubstr("clip_qkv"));
  EXPECT_THAT(refusal(changed(
                  "gpt_oss",
                  {{"num_local_experts", 4}, {"swiglu_limit", 0.0}, {"num_experts_per_tok", 2}})),
              HasSubstr("swiglu_limit must be above 0"));
  EXPECT_THAT(refusal(changed("llama4_text", {{"no_rope_layer_interval", 0}})),
              HasSubstr("no_rope_layer_interval must be in [1, 2^30]"));
  EXPECT_THAT(refusal(changed("qwen3_moe", {{"num_experts", 4},
                                            {"num_experts_per_tok", 2},
                                            {"moe_intermediate_size", int64_t{1} << 62}})),
              HasSubstr("a size of experts"));
}

TEST(language_model_config, reads_mamba_2) {
  const json mamba = {{"num_heads", 8},
                      {"head_dim", 4},
                      {"n_groups", 2},
                      {"state_size", 6},
                      {"time_step_limit", json::array({0.5, "Infinity"})}};
  const Config c = read_config(changed("mamba2", mamba));
  EXPECT_EQ(c.inner, 32);
  EXPECT_EQ(c.least_step, 0.5);
  EXPECT_EQ(c.most_step, INFINITY);
  const auto refused = [&](const char* key, const json& value) {
    json other = mamba;
    other[key] = value;
    return refusal(changed("mamba2", other));
  };
  EXPECT_THAT(refused("num_heads", 6), HasSubstr("expand times hidden_size"));
  EXPECT_THAT(refused("n_groups", 3), HasSubstr("n_groups must divide"));
  EXPECT_THAT(refused("state_size", int64_t{1} << 40), HasSubstr("state_size must be in"));
  EXPECT_EQ(refused("time_step_limit", "none"), "");
}

/// SmolLM 3's list has 1 for layers with positions, and need not be there.
TEST(language_model_config, refuses_sizes_of_rwkv_that_do_not_fit) {
  const auto told = [](const char* family, const char* key, int64_t value) {
    const gguf::File file(
        tests::test_data(std::string("hf_families/gguf/") + family + ".gguf").string());
    gguf::Content content = file.content();
    content.metadata[std::string(family) + "." + key] = gguf::Value{value};
    try {
      (void)read_config(content);
    } catch (const ExportError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const char* family : {"rwkv6", "rwkv7"}) {
    for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{1} << 62, INT64_MIN})
      EXPECT_THAT(told(family, "wkv.head_size", size), HasSubstr("does not divide"));
    EXPECT_THAT(told(family, "block_count", 0), HasSubstr("a size is 0"));
    EXPECT_THAT(told(family, "block_count", 10001), HasSubstr("10001 layers"));
    EXPECT_THAT(told(family, "token_shift_count", 1), HasSubstr("must be 2"));
  }
  for (const int64_t rank : {int64_t{-1}, int64_t{1} << 31, INT64_MAX, INT64_MIN}) {
    for (const char* key : {"time_mix_extra_dim", "time_decay_extra_dim"})
      EXPECT_THAT(told("rwkv6", key, rank), HasSubstr("a rank of RWKV"));
    for (const char* key : {"attention.decay_lora_rank", "attention.gate_lora_rank"})
      EXPECT_THAT(told("rwkv7", key, rank), HasSubstr("a rank of RWKV"));
  }
}

TEST(language_model_config, knows_layers_without_positions) {
  const Config by_list = read_config(changed("smollm3", {{"no_rope_layers", {0, 1}}}));
  EXPECT_THAT(by_list.turned, ElementsAre(false, true));
  const Config by_rule = read_config(changed("smollm3", {{"no_rope_layer_interval", 2}}));
  EXPECT_THAT(by_rule.turned, ElementsAre(true, false));
}

/// Published files of Gemma 3 say little more than this.
TEST(language_model_config, reads_the_text_of_a_model_with_images) {
  const json file = {{"model_type", "gemma3"},
                     {"text_config",
                      {{"model_type", "gemma3_text"},
                       {"hidden_size", 2560},
                       {"intermediate_size", 10240},
                       {"num_hidden_layers", 34},
                       {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                       {"sliding_window", 1024}}}};
  ASSERT_TRUE(has_text_part(file));
  EXPECT_FALSE(has_text_part(tiny_llama()));
  const Config c = read_text_part_config(file);
  EXPECT_EQ(c.heads, 8);
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_EQ(c.window, 1024);
  EXPECT_EQ(c.attention_scale, 1.0 / 16);
  EXPECT_TRUE(c.tied);
  EXPECT_FLOAT_EQ(c.rotary.frequencies[0], 1 / 8.0f);
  EXPECT_FLOAT_EQ(c.local_rotary.frequencies[0], 1);
  EXPECT_TRUE(c.is_windowed(0));
  EXPECT_FALSE(c.is_windowed(5));
}

/// The frequencies that transformers computed.
TEST(language_model_config, scales_frequencies_as_recorded) {
  for (const char* name : {"llama3", "phi3", "gemma3", "gpt_neox", "qwen3", "stablelm"}) {
    TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + name);
    const Config c = read_config(huggingface::read_json_object(folder / "config.json"));
    const json golden = huggingface::read_json_object(folder / "golden.json");
    const json& recorded = golden["rope_inv_freq"];
    const auto expect = [&](const std::vector<float>& got, const json& want) {
      ASSERT_EQ(got.size(), want.size()) << name;
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[i].get<double>(), 1e-6 * want[i].get<double>()) << name;
    };
    for (const auto& [key, want] : recorded.items())
      expect(key.find("sliding") != std::string::npos ? c.local_rotary.frequencies
                                                      : c.rotary.frequencies,
             want);
  }
}

}  // namespace
}  // namespace taper::llm
