// A language model as a program: pieces, rewinds, rows of different lengths, and its size.
#include "taper/exporter/llm/program.h"

#include <gmock/gmock.h>

#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/execute.h"

namespace taper::llm {
namespace {

std::vector<int64_t> tokens(size_t count) {
  std::vector<int64_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int64_t>(3 + i * 7 % 200));
  return ids;
}

std::vector<std::byte> program_of(const Model& model, int64_t chunk) {
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = chunk, .all_logits = true});
  return exporter.write(ExportOptions{.exact = false});
}

class cut_text : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(models, cut_text, testing::Values("gemma2", "phi3"),
                         [](const auto& info) { return std::string(info.param); });

// Longer than the original context of phi3, which has LongRoPE.
TEST_P(cut_text, gives_the_same_bits) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam());
  const Model model = load(folder.string());
  ProgramRunner program(program_of(model, 128));
  const std::vector<int64_t> all = tokens(110);
  const std::vector<float> want = program.logits(all, 0, false).to_vector<float>();
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{109}}) {
    std::vector<float> got;
    for (size_t at = 0; at < all.size(); at += piece) {
      const size_t end = std::min(at + piece, all.size());
      const auto first = all.begin();
      got = program
                .logits({first + static_cast<int64_t>(at), first + static_cast<int64_t>(end)},
                        static_cast<int64_t>(at), false)
                .to_vector<float>();
    }
    EXPECT_EQ(got, want) << "in pieces of " << piece;
  }
}

TEST(language_model_program, rewinds_by_a_smaller_start) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Model model = load(folder.string());
  ProgramRunner program(program_of(model, 64));
  (void)program.logits(tokens(20), 0, false);
  const std::vector<float> want = program.logits({5}, 20, false).to_vector<float>();
  (void)program.logits({9, 8, 7, 6}, 20, false);
  EXPECT_EQ(program.logits({5}, 20, false).to_vector<float>(), want);
}

TEST(language_model_program, runs_rows_of_different_lengths_in_one_call) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/mistral");
  const Model alone = load(folder.string()), model = load(folder.string(), {.batch = 2});
  EagerRunner one(*alone.decoder);
  const std::vector<int64_t> longer = tokens(9), shorter = tokens(4);
  // behind the shorter row stands padding
  std::vector<int64_t> both = longer;
  both.insert(both.end(), shorter.begin(), shorter.end());
  both.resize(18, 0);
  const auto run = [&](const std::vector<int64_t>& ids, int64_t n, std::vector<int64_t> start) {
    return (*model.decoder)(Tensor::from(ids, {2, n}), Tensor::from(start, {2}),
                            DecoderOptions{.all_logits = true})
        .logits;
  };
  const Tensor first = run(both, 9, {0, 0});
  EXPECT_EQ(first[0].to_vector<float>(), one.logits(longer, 0, true).to_vector<float>());
  EXPECT_EQ(first[1].slice(0, 0, 4).to_vector<float>(),
            one.logits(shorter, 0, true).to_vector<float>());
  // each row goes on where its text ends
  const Tensor next = run({7, 7}, 1, {9, 4});
  EXPECT_EQ(next[1].to_vector<float>(), one.logits({7}, 4, true).to_vector<float>());
}

TEST(language_model_program, refuses_tokens_and_positions_outside) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Model model = load(folder.string(), {.capacity = 32});
  ProgramRunner program(program_of(model, 16));
  EXPECT_THROW((void)program.logits({1}, 32, false), ExportError);
  EXPECT_THROW((void)program.logits({1}, -1, false), ExportError);
  EXPECT_THROW((void)program.logits({256}, 0, false), ExportError);
  EXPECT_THROW((void)program.logits(tokens(17), 0, false), ExportError);
  EXPECT_NO_THROW((void)program.logits({1}, 31, false));
}

TEST(language_model_program, keeps_weights_in_halves_and_caches_without_bytes) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  const Model model = load(folder.string());
  Exporter exporter;
  add_methods(exporter, *model.decoder);
  const std::vector<std::byte> program = exporter.write(ExportOptions{.exact = false});
  size_t weights = 0;
  for (int i = 1; i <= 4; ++i)
    weights += std::filesystem::file_size(
        folder / ("model-0000" + std::to_string(i) + "-of-00004.safetensors"));
  EXPECT_LT(program.size(), weights + 100'000) << "the weights are bf16";

  const Result<Module> module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())));
  ASSERT_TRUE(module.ok());
  EXPECT_THAT(module.value().state_names(),
              testing::UnorderedElementsAre(
                  "layers.0.attention.cache.key", "layers.0.attention.cache.value",
                  "layers.1.attention.cache.key", "layers.1.attention.cache.value"));
}

}  // namespace
}  // namespace taper::llm
