// Models that read a source and write a text, against what Hugging Face's transformers gave for a
// small model of each family: in eager and as a program.
#include "taper/exporter/llm/seq2seq.h"

#include "taper/exporter/eager/files.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/program.h"
#include "taper/tests/exporter/llm/golden_results.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

class seq2seq : public testing::TestWithParam<Recorded> {};
INSTANTIATE_TEST_SUITE_P(of_transformers, seq2seq,
                         testing::Values(Recorded{"t5", 11, 5}, Recorded{"whisper", 10, 4}),
                         [](const auto& info) { return std::string(info.param.name); });

std::vector<std::byte> program_of(Seq2Seq& model) {
  Exporter exporter;
  add_methods(exporter, model, {.chunk = 64, .all_logits = true});
  return exporter.write(ExportOptions{.exact = true});
}

TEST_P(seq2seq, gives_the_recorded_results_in_eager) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  ASSERT_TRUE(is_seq2seq(folder.string()));
  const auto model = load_seq2seq(folder.string());
  EagerSeq2SeqRunner runner(*model);
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                GetParam().results_in_eager);
}

TEST_P(seq2seq, gives_the_recorded_results_as_a_program) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  const auto model = load_seq2seq(folder.string());
  ProgramSeq2SeqRunner runner(program_of(*model));
  expect_passed(compare_with_golden(runner, io::read_safetensors(folder / "golden.safetensors")),
                GetParam().results_of_program);
}

TEST_P(seq2seq, gives_the_same_bits_however_a_text_is_cut) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  const auto model = load_seq2seq(folder.string());
  ProgramSeq2SeqRunner runner(program_of(*model));
  const io::SafeTensors file = io::read_safetensors(folder / "golden.safetensors");
  const GoldenValues golden(file);
  (void)runner.encode(golden.tensor(golden.has("input_features") ? "input_features" : "input_ids"));
  const std::vector<int64_t> ids = golden.ids("decoder_input_ids");
  const std::vector<float> want = runner.logits(ids, 0, false).to_vector<float>();
  for (const size_t piece : {size_t{1}, size_t{7}}) {
    std::vector<float> got;
    for (size_t at = 0; at < ids.size(); at += piece) {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(at);
      const auto count = static_cast<std::ptrdiff_t>(std::min(piece, ids.size() - at));
      got =
          runner.logits({first, first + count}, static_cast<int64_t>(at), false).to_vector<float>();
    }
    EXPECT_EQ(got, want) << "in pieces of " << piece;
  }
}

/// How far logits with a deviation of 3 may be from those of f32.
struct SmallCache {
  CacheType type;
  DType dtype;
  double tolerance;
};

TEST_P(seq2seq, keeps_the_source_in_small_caches) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  const io::SafeTensors file = io::read_safetensors(folder / "golden.safetensors");
  const GoldenValues golden(file);
  for (const SmallCache& c : {SmallCache{CacheType::f16, DType::f16, 0.01},
                              {CacheType::bf16, DType::bf16, 0.1},
                              {CacheType::int8, DType::u8, 0.2},
                              {CacheType::int8_int4, DType::u8, 1.0}}) {
    SCOPED_TRACE(static_cast<int>(c.type));
    const auto model = load_seq2seq(folder.string(), {.cache = c.type});
    const eager::NamedTensors state = model->state_dict();
    EXPECT_EQ(state.at("decoder.layers.0.cross.cache.key").dtype(), c.dtype);
    const bool has_buckets = model->config.decoder.distance_buckets > 0;
    EXPECT_EQ(state.at("decoder.layers.0.attention.cache.key").dtype(),
              has_buckets ? DType::f32 : c.dtype);
    ProgramSeq2SeqRunner runner(program_of(*model));
    (void)runner.encode(
        golden.tensor(golden.has("input_features") ? "input_features" : "input_ids"));
    const Compared logits = golden.logits(
        "logits", runner.logits(golden.ids("decoder_input_ids"), 0, true).unsqueeze(0));
    EXPECT_LE(logits.difference, c.tolerance);
    EXPECT_GT(logits.difference, 2e-4) << "the caches are read";
  }
}

TEST_P(seq2seq, needs_a_source) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, std::string("hf_tiny/") + GetParam().name);
  const auto model = load_seq2seq(folder.string());
  ProgramSeq2SeqRunner runner(program_of(*model));
  EXPECT_EXPORT_ERROR(runner.logits({1}, 0, false), "execute: ");
}

TEST(seq2seq_t5, reads_padded_sources_of_several_rows) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/t5");
  const auto model = load_seq2seq(folder.string(), {.batch = 2});
  const io::SafeTensors file = io::read_safetensors(folder / "golden.safetensors");
  const GoldenValues golden(file);
  MemoryProgram program(program_of(*model));
  const Tensor lengths = eager::sum(golden.tensor("batch.attention_mask"), {1});
  ASSERT_NE(lengths[0].item<int64_t>(), lengths[1].item<int64_t>());
  (void)program.execute("encode", {golden.tensor("batch.input_ids"), lengths});
  const Tensor start = eager::zeros({2}, DType::i64);
  const Tensor logits =
      program.execute("forward_all", {golden.tensor("batch.decoder_input_ids"), start})[0];
  const Compared compared = golden.logits("batch.logits", logits);
  EXPECT_TRUE(compared.passed()) << compared.difference;
}

/// The buckets, and for how many neighbouring distances each of them stands.
std::vector<std::pair<int64_t, int>> runs(const std::vector<int64_t>& buckets) {
  std::vector<std::pair<int64_t, int>> list;
  for (const int64_t b : buckets)
    if (list.empty() || list.back().first != b)
      list.emplace_back(b, 1);
    else
      ++list.back().second;
  return list;
}

/// As transformers' T5Attention._relative_position_bucket gives them.
TEST(distance_buckets, are_those_of_transformers) {
  using Runs = std::vector<std::pair<int64_t, int>>;
  EXPECT_EQ(runs(distance_buckets(8, 20, false)),
            (Runs{{7, 7}, {6, 5}, {5, 3}, {4, 2}, {3, 1}, {2, 1}, {1, 1}, {0, 21}}));
  EXPECT_EQ(runs(distance_buckets(8, 20, true)),
            (Runs{{3, 14}, {2, 5}, {1, 1}, {0, 1}, {5, 1}, {6, 5}, {7, 14}}));
  EXPECT_EQ(runs(distance_buckets(32, 128, false)),
            (Runs{{31, 16}, {30, 14}, {29, 12}, {28, 10}, {27, 10}, {26, 8}, {25, 7}, {24, 6},
                  {23, 6},  {22, 5},  {21, 4},  {20, 4},  {19, 3},  {18, 3}, {17, 2}, {16, 3},
                  {15, 1},  {14, 1},  {13, 1},  {12, 1},  {11, 1},  {10, 1}, {9, 1},  {8, 1},
                  {7, 1},   {6, 1},   {5, 1},   {4, 1},   {3, 1},   {2, 1},  {1, 1},  {0, 129}}));
  EXPECT_EQ(runs(distance_buckets(32, 128, true)),
            (Runs{{15, 38}, {14, 27}, {13, 18}, {12, 14}, {11, 9},  {10, 7},  {9, 4},  {8, 4},
                  {7, 1},   {6, 1},   {5, 1},   {4, 1},   {3, 1},   {2, 1},   {1, 1},  {0, 1},
                  {17, 1},  {18, 1},  {19, 1},  {20, 1},  {21, 1},  {22, 1},  {23, 1}, {24, 4},
                  {25, 4},  {26, 7},  {27, 9},  {28, 14}, {29, 18}, {30, 27}, {31, 38}}));
}

}  // namespace
}  // namespace taper::llm
