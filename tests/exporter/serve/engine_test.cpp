// Texts that the engine writes at once, beside each text alone.
#include "taper/exporter/serve/engine.h"

#include <gmock/gmock.h>

#include <thread>

#include "taper/exporter/llm/text_model.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/exporter/llm/random_adapter.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::serve {
namespace {

using llm::Finish, llm::Ids, testing::HasSubstr;

/// A small model, whose token 7 is the word "t7", with caches for `rows` texts.
llm::LanguageModel model_of(const char* family, int64_t rows, int64_t context = 60) {
  const std::filesystem::path folder = tests::formula_model(family);
  std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(48);
  llm::TextModelOptions options;
  options.rows = rows, options.context = context;
  return llm::load_text_model(folder.string(), options);
}

Ids prompt(int which, int length) {
  Ids ids;
  for (int i = 0; i < length; ++i) ids.push_back(2 + (i * 11 + which * 7) % 45);
  return ids;
}

TextRequest request(int which, const llm::LanguageModel& model) {
  TextRequest r;
  r.prompt = prompt(which, 3 + which * 7 % 30);
  r.options.max_tokens = 5 + which * 5 % 14;
  r.options.sampling.temperature = which % 3 == 0 ? 0 : 1;
  r.options.sampling.top_k = which % 2 == 0 ? 0 : 12;
  r.options.sampling.seed = static_cast<uint64_t>(which);
  if (which % 4 == 1) r.likeliest = 2;
  if (which % 5 == 2)
    r.options.grammar = std::make_shared<llm::GrammarMatcher>(
        llm::Grammar::from_gbnf(R"(root ::= ("t4" | "t11" | "t23") root | "t9")").value(),
        llm::TokenTexts(model.tokenizer()));
  return r;
}

/// A text that does not end by itself.
TextRequest endless(const llm::LanguageModel& model) {
  TextRequest r = request(0, model);
  r.options.max_tokens = 10000;
  r.options.sampling.temperature = 1;
  for (const llm::TokenId end : model.text().ends) r.options.sampling.bias.push_back({{end}, -100});
  return r;
}

struct Written {
  std::string text;
  std::vector<double> chances;
  Finish finish = Finish::none;
  llm::GenerationStatistics statistics;
  std::string message;

  bool operator==(const Written& o) const {
    return text == o.text && chances == o.chances && finish == o.finish && message == o.message;
  }
};
std::ostream& operator<<(std::ostream& out, const Written& w) {
  return out << w.text << " (" << static_cast<int>(w.finish) << ") " << w.message;
}

Written rest_of(Job& job) {
  Written all;
  for (int i = 0; i < 1000 && all.finish == Finish::none; ++i) {
    const Progress came = job.wait(std::chrono::milliseconds(100));
    all.text += came.text, all.finish = came.finish, all.message = came.message;
    for (const TokenChance& chance : came.chances) all.chances.push_back(chance.log_probability);
    all.statistics = came.statistics;
  }
  return all;
}

std::shared_ptr<Job> submit(Engine& engine, TextRequest request) {
  std::vector<TextRequest> one;
  one.push_back(std::move(request));
  return engine.submit(std::move(one))->front();
}

/// Each text by itself, one after the other, in an engine of one sequence.
std::vector<Written> alone(const char* family, int count) {
  Engine engine(model_of(family, 1), {.sequences = 1, .prompt_piece = 8});
  std::vector<Written> all;
  for (int i = 0; i < count; ++i) {
    const auto job = submit(engine, request(i, engine.model()));
    all.push_back(rest_of(*job));
  }
  return all;
}

class engine : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(families, engine, testing::Values("smollm3", "rwkv", "gpt_oss"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(engine, writes_the_same_texts_at_once_as_one_after_the_other) {
  constexpr int count = 14;
  const std::vector<Written> want = alone(GetParam(), count);
  for (const int sequences : {4, 9}) {
    Engine engine(model_of(GetParam(), 4), {.sequences = sequences, .prompt_piece = 8});
    std::vector<TextRequest> requests;
    for (int i = 0; i < count; ++i) requests.push_back(request(i, engine.model()));
    const auto jobs = engine.submit(std::move(requests));
    ASSERT_TRUE(jobs.has_value());
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(rest_of(*(*jobs)[static_cast<size_t>(i)]), want[static_cast<size_t>(i)])
          << "text " << i << " of " << sequences << " sequences";
    EXPECT_EQ(engine.counts().running, 0);
  }
}

TEST_P(engine, lets_texts_come_and_go_while_others_are_written) {
  const std::vector<Written> want = alone(GetParam(), 6);
  Engine engine(model_of(GetParam(), 3, 60), {.sequences = 3, .prompt_piece = 8});
  std::shared_ptr<Job> noise = submit(engine, endless(engine.model()));
  for (int i = 0; i < 6; ++i) {
    const auto job = submit(engine, request(i, engine.model()));
    EXPECT_EQ(rest_of(*job), want[static_cast<size_t>(i)]) << "text " << i;
    if (i % 2 == 1) {
      noise->cancel();
      noise = submit(engine, endless(engine.model()));
    }
  }
}

TEST(engine_of_rows, reads_again_only_what_is_new) {
  Engine engine(model_of("smollm3", 3), {.sequences = 3});
  TextRequest first = request(0, engine.model());
  first.prompt = prompt(1, 20), first.options.max_tokens = 4;
  const Written answer = rest_of(*submit(engine, first));
  EXPECT_EQ(answer.statistics.cached_tokens, 0);
  // another conversation has a row of its own
  TextRequest other = first;
  other.prompt = prompt(2, 10);
  EXPECT_EQ(rest_of(*submit(engine, other)).statistics.cached_tokens, 0);
  TextRequest next = first;
  next.prompt = prompt(1, 24);
  EXPECT_EQ(rest_of(*submit(engine, next)).statistics.cached_tokens, 20);
  EXPECT_EQ(rest_of(*submit(engine, first)), answer);
}

TEST(engine_of_rows, reads_what_prompts_share_once) {
  for (const int64_t rows : {1, 4}) {
    Engine engine(model_of("smollm3", rows, 2000), {.sequences = 4, .prompt_piece = 16});
    std::vector<TextRequest> requests;
    std::vector<Written> want;
    for (int i = 0; i < 4; ++i) {
      TextRequest r = request(i, engine.model());
      r.prompt = prompt(1, 1000);
      const Ids own = prompt(i, i == 1 ? 500 : 20);  // others wait for the longest one, too
      r.prompt.insert(r.prompt.end(), own.begin(), own.end());
      requests.push_back(r);
      Engine alone(model_of("smollm3", 1, 2000), {.sequences = 1});
      want.push_back(rest_of(*submit(alone, r)));
    }
    const auto jobs = engine.submit(requests);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rest_of(*(*jobs)[i]), want[i]) << i;
    const EngineCounts counts = engine.counts();
    EXPECT_EQ(counts.prompt_tokens, 4u * 1000 + 3 * 20 + 500);
    EXPECT_GE(counts.cached_tokens, 3u * 1000);
    EXPECT_LT(counts.cached_tokens, 3u * 1000 + 20);
    // later ones find it, too, and no conversation is lost to them
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < 4; ++i) {
        TextRequest next = requests[i];
        next.prompt.insert(next.prompt.end(), {5, 6});
        EXPECT_GE(rest_of(*submit(engine, next)).statistics.cached_tokens,
                  static_cast<int64_t>(requests[i].prompt.size()) - 1);
      }
  }
}

TEST(engine_of_rows, lets_one_of_equal_prompts_go_first) {
  for (const char* family : {"smollm3", "rwkv"}) {
    Engine engine(model_of(family, 4, 300), {.sequences = 4, .prompt_piece = 16});
    std::vector<TextRequest> requests(4, request(0, engine.model()));
    for (TextRequest& r : requests) r.prompt = prompt(1, 200);
    const auto jobs = engine.submit(requests);
    const Written first = rest_of(*(*jobs)[0]);
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(rest_of(*(*jobs)[i]), first);
    // RWKV cannot rewind, so it gives all that it has read, or nothing
    EXPECT_GE(engine.counts().cached_tokens, engine.model().text().rewinds ? 3u * 199 : 0u);
  }
}

TEST(engine_of_rows, writes_texts_of_several_adapters_at_once) {
  const std::filesystem::path folder = tests::formula_model("smollm3");
  std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(48);
  llm::TextModelOptions options;
  options.rows = 3, options.context = 200;
  for (const char* name : {"a", "b"})
    options.lora.push_back(name + ("=" + tests::peft_folder(folder, {.name = name})));
  const llm::LanguageModel model = llm::load_text_model(folder.string(), options);
  std::vector<TextRequest> requests;
  std::vector<Written> want;
  for (const char* name : {"a", "", "b", "a", "b", ""}) {
    requests.push_back(request(0, model));
    requests.back().prompt = prompt(1, 100), requests.back().adapter = name;
    Engine alone(model, {.sequences = 1});
    want.push_back(rest_of(*submit(alone, requests.back())));
  }
  EXPECT_NE(want[0], want[1]);
  EXPECT_NE(want[0], want[2]);
  Engine engine(model, {.sequences = 3, .prompt_piece = 16});
  const auto jobs = engine.submit(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(rest_of(*(*jobs)[i]), want[i]) << i;
  EXPECT_LE(engine.counts().cached_tokens, 3u * 99) << "each adapter reads the prompt itself";
}

TEST(engine_of_rows, reads_a_long_prompt_between_the_tokens_of_others) {
  Engine engine(model_of("smollm3", 2, 2000), {.sequences = 2, .prompt_piece = 16});
  const auto writer = submit(engine, endless(engine.model()));
  (void)writer->wait(std::chrono::milliseconds(1000));
  TextRequest reads = request(3, engine.model());
  reads.prompt = prompt(3, 1600), reads.options.max_tokens = 1;
  const auto reader = submit(engine, reads);
  // a hundred pieces; a token of the other text comes after each of them
  int64_t meanwhile = 0;
  while (reader->wait(std::chrono::milliseconds(1)).finish == Finish::none) {
    const Progress came = writer->wait(std::chrono::milliseconds(0));
    meanwhile += static_cast<int64_t>(std::ranges::count(came.text, 't'));
    ASSERT_EQ(came.finish, Finish::none);
  }
  EXPECT_GE(meanwhile, 50);
  writer->cancel();
  EXPECT_EQ(rest_of(*writer).finish, Finish::cancelled);
}

TEST(engine_of_rows, fails_one_text_alone) {
  const std::vector<Written> want = alone("smollm3", 2);
  Engine engine(model_of("smollm3", 3), {.sequences = 3, .prompt_piece = 8});
  TextRequest unknown = request(0, engine.model()), too_long = request(0, engine.model());
  unknown.prompt = {5, 48};
  too_long.prompt = prompt(0, 61);
  std::vector<TextRequest> requests;
  requests.push_back(unknown);
  requests.push_back(request(0, engine.model()));
  requests.push_back(too_long);
  requests.push_back(request(1, engine.model()));
  const auto jobs = engine.submit(std::move(requests));
  const Written bad = rest_of(*(*jobs)[0]);
  EXPECT_EQ(bad.finish, Finish::failed);
  EXPECT_THAT(bad.message, HasSubstr("48"));
  EXPECT_EQ(rest_of(*(*jobs)[1]), want[0]);
  EXPECT_THAT(rest_of(*(*jobs)[2]).message, HasSubstr("61 tokens do not fit"));
  EXPECT_EQ(rest_of(*(*jobs)[3]), want[1]);
  EXPECT_EQ(engine.counts().failed, 2u);
}

}  // namespace
}  // namespace taper::serve
