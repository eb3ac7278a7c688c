// The perplexity of stories260K with rounded caches, beside what others recorded (accuracy.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/llm/text_scorer.h"
#include "taper/tests/support/data.h"

namespace taper::llm {
namespace {

constexpr double noise = 1.005;  // of the bars

class cache_perplexity : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
    TAPER_GOLDEN_DATA_OR_SKIP(tokens, "quant/stories260K_tokens.safetensors");
    rows_ = nlohmann::json::parse(std::ifstream(json))["stories260K"]["rows"];
    const io::SafeTensors file = io::read_safetensors(tokens);
    windows_ = eager::tensor_of(file.at("tinystories")).to(DType::i64);
  }
  double of(CacheType cache) const {
    TextScorerOptions options;
    options.exact = true, options.window = windows_.size(1).value(), options.cache_type = cache;
    TextScorer scorer(tests::test_data("../../examples/stories/stories260K.gguf").string(),
                      options);
    double sum = 0, count = 0;
    for (int64_t w = 0; w < windows_.size(0).value(); ++w) {
      const auto row = windows_.slice(0, w, w + 1).contiguous().to_vector<int64_t>();
      for (const double p : scorer.log_probabilities({row.begin(), row.end()})) sum -= p, ++count;
    }
    return std::exp(sum / count);
  }
  /// `how`: a part of the configuration.
  double bar(const std::string& method, const std::string& how = "") const {
    for (const auto& row : rows_)
      if (row["method"] == method &&
          row["config"].get<std::string>().find(how) != std::string::npos)
        return row["ppl_tinystories"];
    throw std::runtime_error("no bar for " + method);
  }

  nlohmann::json rows_;
  eager::Tensor windows_;
};

TEST_F(cache_perplexity, of_8_bits_is_that_of_others) {
  EXPECT_NEAR(of(CacheType::f32), bar("float32"), 0.002);
  EXPECT_NEAR(of(CacheType::f16), bar("float32"), 0.005);
  EXPECT_LE(of(CacheType::int8), bar("int8 KV cache") * noise);
  EXPECT_LE(of(CacheType::int8_int4), bar("int8 k, int4 v cache") * noise);
}

/// Keys of 8 features: a cache with a scale for each of them over 32 tokens would have 5.94. Here a
/// token is rounded alone, so that a text has the same bits in any company.
TEST_F(cache_perplexity, of_4_bits_is_that_of_tokens_that_are_rounded_alone) {
  const double got = of(CacheType::int4);
  RecordProperty("perplexity", std::to_string(got));
  EXPECT_LE(got, bar("int4 KV cache", "one group of head size 8") * noise);
}

}  // namespace
}  // namespace taper::llm
