// The model of stories that the repository ships: its text, and drafts for it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "taper/runtime/extension/llm/adapter_file.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using nlohmann::json;
using testing::AllOf, testing::HasSubstr, testing::Not;

const std::string model = tests::test_data("../../examples/stories/stories260K.gguf").string();

template <class... Options>
json generate_up_to(const char* most, const std::string& prompt, const Options&... options) {
  const Outcome o = taper_command("generate", model, "--prompt", prompt, "--json", "--statistics",
                                  "--max-tokens", most, options...);
  EXPECT_EQ(o.code, success) << o.err;
  return json::parse(o.out);
}
template <class... Options>
json generate(const std::string& prompt, const Options&... options) {
  return generate_up_to("150", prompt, options...);
}

// What the authors print (karpathy/llama2.c, doc/stories260K.md), whole. Keys have 8 features, so
// that caches of int8 hold three digits of each.
TEST(stories, writes_the_text_of_its_authors) {
  const std::string text =
      ", there was a little girl named Lily. She loved to play outside in the park. One day, she "
      "saw a big, red ball. She wanted to play with it, but it was too high.\nLily's mom said, "
      "\"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She said, \"I want "
      "to play with your ball, but I can't find it.\"\nLily was sad and didn't know what to do. "
      "She said, \"I'm sorry, Lily. I didn't know what to do.\"\nLily didn't want to help her mom, "
      "so she said, \"I'm sorry, mom. I didn't know what to do.\" Her mom said, \"Don't worry, "
      "Lily. We can help you.";
  for (const char* way : {"--exact", "--greedy", "--cache-dtype=f16", "--cache-dtype=bf16",
                          "--cache-dtype=int8", "--quantize=kv-int8"}) {
    const json have = generate_up_to("260", "Once upon a time", "--greedy", way);
    EXPECT_EQ(have["text"].get<std::string>().substr(0, text.size()), text) << way;
  }
}

// Whole texts of up to 512 tokens.
TEST(stories, writes_what_llama2c_writes) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "llm/golden/stories260K_greedy.json");
  const json recorded_runs = json::parse(content(file))["runs"];
  for (const char* cache : {"--cache-dtype=f32", "--cache-dtype=int8"}) {
    int runs = 0;
    for (const json& run : recorded_runs) {
      if (run["prompt"] == "") continue;  // the command wants a text
      const json have = generate_up_to("512", run["prompt"], "--greedy", "--exact", cache);
      const std::vector<int> ids = have["prompt_ids"], want = run["prompt_tokens"];
      EXPECT_EQ(ids, want);
      const std::vector<int> answer = have["ids"], recorded = run["tokens"];
      ASSERT_GE(recorded.size(), want.size());
      // the recorded tokens follow the first one, with those of the prompt among them
      const auto begin = recorded.begin() + static_cast<std::ptrdiff_t>(want.size()) - 1;
      const auto count = std::min<std::ptrdiff_t>(recorded.end() - begin,
                                                  static_cast<std::ptrdiff_t>(answer.size()));
      EXPECT_GT(count, 50);
      EXPECT_TRUE(std::equal(begin, begin + count, answer.begin())) << run["prompt"] << cache;
      ++runs;
    }
    EXPECT_GE(runs, 5);
  }
}

TEST(stories, has_equal_texts_with_every_draft) {
  const std::vector<std::vector<std::string>> ways = {{"--greedy", "--seed=1"},
                                                      {"--temperature=0.8", "--seed=7"},
                                                      {"--temperature=1", "--top-k=5"}};
  for (const std::string dtype : {"f32", "int8", "int4"})
    for (const std::vector<std::string>& way : ways) {
      const std::string cache = "--cache-dtype=" + dtype;
      const json plain = generate("Lily and her dog", way[0], way[1], cache);
      EXPECT_EQ(plain["steps"], plain["ids"].size());
      for (const std::string& draft : {std::string("lookup"), model}) {
        const json drafted = generate("Lily and her dog", way[0], way[1], cache, "--draft", draft);
        EXPECT_EQ(drafted["ids"], plain["ids"]) << draft;
        EXPECT_LE(drafted["steps"], plain["steps"]);
      }
    }
  // its own guesses are right, except where two tokens are about as likely
  const json drafted = generate("Lily and her dog", "--greedy", "--draft", model);
  EXPECT_LT(drafted["steps"].get<int>() * 2, static_cast<int>(drafted["ids"].size()));
}

/// An adapter of the rank 3 for a square matrix of 64 features.
std::string adapter_of(const std::string& matrix) {
  const std::vector<float> numbers(192, 0.5f);
  const float* const n = numbers.data();
  const std::string path = tests::scratch_file(matrix + ".gguf").string();
  EXPECT_EQ(llm::write_adapter(path, {6, "llama", {{matrix, 3, 64, 64, n, n}}}), "");
  return path;
}

/// An adapter of the rank 3 for the queries and the last products of the first layer.
std::string random_adapter() {
  std::vector<float> numbers;
  for (int i = 0; i < 1024; ++i) numbers.push_back(static_cast<float>(i * 7919 % 101) / 101 - 0.5f);
  const float* const n = numbers.data();
  const std::string path = tests::scratch_file("adapter.gguf").string();
  EXPECT_EQ(
      llm::write_adapter(path, {.alpha = 6,
                                .architecture = "llama",
                                .matrices = {{"blk.0.attn_q", 3, 64, 64, n, n + 200},
                                             {"blk.0.ffn_down", 3, 172, 64, n + 9, n + 600}}}),
      "");
  return path;
}

TEST(stories, takes_an_adapter_into_the_room_of_a_program) {
  const std::string adapter = random_adapter(),
                    program = tests::scratch_file("room.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", program, "--lora-slots", "4").code, success);
  const auto text = [](const std::string& from, const std::string& option) {
    const Outcome o = taper_command("generate", from, "--prompt", "Lily and her dog", "--greedy",
                                    "--max-tokens", "60", option);
    EXPECT_EQ(o.code, success) << o.err;
    return o.out;
  };
  const std::string plain = text(model, "--seed=1"), changed = text(model, "--lora=" + adapter);
  EXPECT_NE(changed, plain);
  EXPECT_EQ(text(program, "--seed=1"), plain);
  EXPECT_EQ(text(program, "--lora=" + adapter), changed);

  // slots in f16, and beside weights of 8 bits
  const std::string half = tests::scratch_file("half.taper").string(),
                    blocks = tests::scratch_file("blocks.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", half, "--lora-slots=3", "--dtype=f16").code,
            success);
  EXPECT_EQ(text(half, "--lora=" + adapter).substr(0, 60), changed.substr(0, 60));
  ASSERT_EQ(
      taper_command("export", model, "-o", blocks, "--lora-slots=3", "--recipe=int8-weights").code,
      success);
  EXPECT_NE(text(blocks, "--lora=" + adapter), text(blocks, "--seed=1"));

  const auto refusal = [&](const std::string& from, const std::string& lora) {
    return taper_command("generate", from, "--prompt", "a", "--lora", lora).err;
  };
  const std::string small = tests::scratch_file("small.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", small, "--lora-slots", "2").code, success);
  EXPECT_THAT(refusal(small, adapter),
              HasSubstr("has the rank 3, and the program has room for 2; export it again with "
                        "--lora-slots 3"));
  EXPECT_THAT(refusal(program, "a=" + adapter),
              HasSubstr("a program with slots takes one adapter, without a name"));
  EXPECT_THAT(
      refusal(program, adapter_of("output")),
      HasSubstr("the program has no slot for output.weight; slots are in the layers. Export "
                "the model again, with --lora"));
  const std::string damaged = tests::scratch_file("damaged.taper").string();
  std::ofstream(damaged, std::ios::binary) << content(program).substr(0, 5000);
  EXPECT_THAT(refusal(damaged, adapter),
              AllOf(HasSubstr("damaged.taper: "), Not(HasSubstr("has no room"))));
  const std::string none = tests::scratch_file("no_room.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", none).code, success);
  EXPECT_THAT(refusal(none, adapter), HasSubstr("has no room for an adapter; export it again"));
  EXPECT_THAT(refusal(none, "a=" + adapter), HasSubstr("export it again, with --context"));
  EXPECT_THAT(
      taper_command("export", model, "-o", none, "--lora-slots", "2", "--lora", adapter).err,
      HasSubstr("--lora-slots leaves room for an adapter that is given later"));
}

TEST(stories, takes_a_program_as_a_draft_beside_a_context) {
  const std::string program = tests::scratch_file("draft.taper").string();
  ASSERT_EQ(taper_command("export", model, "-o", program, "--context", "256").code, success);
  const json plain = generate("Lily and her dog", "--greedy", "--context", "256");
  const json drafted =
      generate("Lily and her dog", "--greedy", "--context", "256", "--draft", program);
  EXPECT_EQ(drafted["ids"], plain["ids"]);
  EXPECT_LT(drafted["steps"], plain["steps"]);
}

TEST(stories, refuses_options_that_contradict_and_adapters_that_are_not_there) {
  const std::string program = tests::scratch_file("none.taper").string();
  const std::vector<std::vector<std::string>> commands = {{"generate", "--prompt=a", "--quantize"},
                                                          {"export", "-o" + program, "--recipe"}};
  for (const std::vector<std::string>& c : commands) {
    EXPECT_THAT(
        taper_command(c[0], model, c[1], c[2], "kv-int8", "--cache-dtype", "int4").err,
        HasSubstr("--cache-dtype: caches of int4 contradict the recipe kv-int8; give one of them"));
    const auto refusal = [&](const char* adapter) {
      return taper_command(c[0], model, c[1], "--lora", adapter).err;
    };
    EXPECT_THAT(refusal("a="), HasSubstr("--lora a=: behind the name an adapter is missing"));
    EXPECT_THAT(refusal("a=nowhere"),
                HasSubstr("--lora a=nowhere: there is no file or folder nowhere"));
    EXPECT_THAT(refusal("nowhere"), HasSubstr("--lora nowhere: there is no file or folder"));
  }
}

TEST(stories, refuses_a_draft_of_other_tokens) {
  const std::string other = tests::scratch_file("other.gguf").string();
  std::string bytes = content(model);
  const std::string piece = "\xe2\x96\x81Lily";
  ASSERT_NE(bytes.find(piece), std::string::npos);
  bytes.replace(bytes.find(piece), piece.size(), "\xe2\x96\x81Lila");
  std::ofstream(other) << bytes;
  const Outcome o = taper_command("generate", model, "--prompt", "a", "--draft", other);
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("--draft " + other +
                               ": a draft needs a model with the same tokens: token "));
  EXPECT_THAT(o.err, HasSubstr("is '\xe2\x96\x81Lila', not '\xe2\x96\x81Lily'"));
  EXPECT_THAT(taper_command("generate", "no model", "--prompt", "a", "--draft", "nowhere").err,
              HasSubstr("--draft nowhere: there is no such file"));
}

}  // namespace
}  // namespace taper::cli
