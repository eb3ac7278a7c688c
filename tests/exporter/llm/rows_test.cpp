// Caches with rows for several texts: a token of each in one call, beside each text alone.
#include <gmock/gmock.h>

#include "taper/exporter/llm/program.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using Ids = std::vector<int64_t>;

constexpr int64_t rows = 3, capacity = 40;

/// A text of this length, different for each row.
Ids text(int64_t row, int64_t length) {
  Ids ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(3 + (i * 7 + row * 5) % 45);
  return ids;
}

MemoryProgram program_of(const std::string& folder, int64_t texts, bool exact,
                         CacheType cache = CacheType::f32) {
  const Model model = load(folder, {.capacity = capacity, .batch = texts, .cache = cache});
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 8, .by_row = texts > 1});
  return MemoryProgram(exporter.write(ExportOptions{.exact = exact, .quiet = true}));
}

Tensor list(const Ids& ids) { return Tensor::from(ids, {static_cast<int64_t>(ids.size())}); }
Tensor column(const Ids& ids) { return Tensor::from(ids, {static_cast<int64_t>(ids.size()), 1}); }

/// A text in a program of its own.
class Alone {
 public:
  Alone(const std::string& folder, bool exact, CacheType cache)
      : program_(program_of(folder, 1, exact, cache)) {}
  std::vector<float> read(const Ids& ids) {
    const Tensor logits = program_.execute("forward", {row_of(ids), list({position_})})[0];
    position_ += static_cast<int64_t>(ids.size());
    return logits.to_vector<float>();
  }

 private:
  MemoryProgram program_;
  int64_t position_ = 0;
};

/// Texts of different lengths come, go and come back.
void expect_rows_as_alone(const std::string& folder, bool exact, CacheType cache = CacheType::f32) {
  MemoryProgram together = program_of(folder, rows, exact, cache);
  std::vector<std::unique_ptr<Alone>> alone;
  for (int64_t row = 0; row < rows; ++row)
    alone.push_back(std::make_unique<Alone>(folder, exact, cache));
  std::vector<int64_t> positions(rows, 0);
  const auto read = [&](int64_t row, const Ids& ids) {
    const auto at = static_cast<size_t>(row);
    const Tensor logits =
        together.execute("forward", {row_of(ids), list({positions[at]}), list({row})})[0];
    positions[at] += static_cast<int64_t>(ids.size());
    EXPECT_EQ(logits.to_vector<float>(), alone[at]->read(ids)) << "row " << row << " reads";
  };
  const auto decode = [&](const Ids& of, const Ids& ids) {
    Ids starts;
    for (const int64_t row : of) starts.push_back(positions[static_cast<size_t>(row)]++);
    const Tensor logits = together.execute("decode", {column(ids), list(starts), list(of)})[0];
    for (size_t i = 0; i < of.size(); ++i)
      EXPECT_EQ(logits[static_cast<int64_t>(i)].to_vector<float>(),
                alone[static_cast<size_t>(of[i])]->read({ids[i]}))
          << "row " << of[i] << ", number " << i << " of " << of.size();
  };
  read(2, text(2, 5));
  decode({2}, {9});
  read(0, text(0, 8));
  decode({2, 0}, {11, 12});
  read(1, text(1, 3));
  decode({0, 1, 2}, {13, 14, 15});
  read(1, text(0, 6));  // between the tokens of others
  decode({2, 1}, {16, 17});
  decode({1, 2, 0}, {18, 19, 20});
  // a new text in an old row
  positions[2] = 0;
  alone[2] = std::make_unique<Alone>(folder, exact, cache);
  read(2, text(1, 4));
  decode({0, 2}, {21, 22});
}

class rows_of : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(shipped, rows_of,
                         testing::Values("llama4_text", "gpt_oss", "qwen2_moe", "cohere2",
                                         "phi4_mini", "mamba2", "rwkv", "rwkv6", "rwkv7",
                                         "gpt_bigcode", "smollm3"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(rows_of, give_the_same_bits_as_a_text_alone) {
  const std::filesystem::path file =
      tests::test_data("hf_families/gguf") / (std::string(GetParam()) + ".gguf");
  const bool has_folder = !std::string(GetParam()).starts_with("rwkv6") &&
                          !std::string(GetParam()).starts_with("rwkv7");
  const std::string folder = (has_folder ? tests::formula_model(GetParam()) : file).string();
  expect_rows_as_alone(folder, true);
  expect_rows_as_alone(folder, false);
}

TEST(rows, give_the_same_bits_as_a_text_alone_in_caches_of_fewer_bits) {
  for (const char* family : {"smollm3", "gpt_oss"})
    for (const CacheType cache : {CacheType::f16, CacheType::bf16, CacheType::int8, CacheType::int4,
                                  CacheType::int8_int4}) {
      SCOPED_TRACE(std::string(family) + " " + cache_type_names()[static_cast<size_t>(cache)]);
      expect_rows_as_alone(tests::formula_model(family).string(), false, cache);
    }
}

TEST(caches, must_be_f32_where_scores_have_a_bias) {
  const std::string folder = tests::formula_model("llama4_text").string();
  EXPECT_EXPORT_ERROR(load(folder, {.capacity = 4096, .cache = CacheType::int8}),
                      "caches must be f32 where windows jump; or ask for a context of at most ");
  EXPECT_EXPORT_ERROR(cache_type_named("int3"),
                      "they can be f32, f16, bf16, int8, int4 or int8-int4");
}

class rows_of_golden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(models, rows_of_golden,
                         testing::Values("bloom", "gemma2", "gemma3", "gpt2", "lfm2", "llama3",
                                         "mamba", "mistral", "mixtral", "phi3", "smollm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(rows_of_golden, give_the_same_bits_as_a_text_alone) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  expect_rows_as_alone(folder.string(), false);
}

TEST(rows, refuse_what_is_not_in_the_caches) {
  MemoryProgram program = program_of(tests::formula_model("smollm3").string(), rows, true);
  const auto decode = [&](const Ids& ids, const Ids& starts, const Ids& of) {
    return program.execute("decode", {column(ids), list(starts), list(of)})[0].to_vector<float>();
  };
  const std::vector<float> want = decode({5, 6}, {0, 0}, {1, 2});
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, 0}, {1, 3}), "row 3");
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, 0}, {-1, 2}), "row -1");
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, 0}, {1, 1}), "are both row 1 of the cache");
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, capacity}, {1, 2}), "the cache is full");
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, -1}, {1, 2}), "start -1");
  EXPECT_EXPORT_ERROR(decode({5, 6, 7, 8}, {0, 0, 0, 0}, {0, 1, 2, 3}), "4");
  EXPECT_EXPORT_ERROR(decode({5, 6}, {0, 0}, {0, 1, 2}), "rows");
  // and they remember nothing of it
  EXPECT_EQ(decode({5, 6}, {0, 0}, {1, 2}), want);
}

TEST(rows, have_states_of_all_texts_in_one_session) {
  const Model model = load(tests::formula_model("smollm3").string(), {.capacity = 16, .batch = 4});
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = 8, .states = true, .by_row = true});
  const std::vector<std::byte> program = exporter.write(ExportOptions{.quiet = true});
  const Result<Module> module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())));
  ASSERT_TRUE(module.ok());
  EXPECT_THAT(module.value().method_names(),
              testing::UnorderedElementsAre("forward", "decode", "states"));
  EXPECT_LT(program.size(), 200'000u) << "caches have no bytes in the file";
}

}  // namespace
}  // namespace taper::llm
