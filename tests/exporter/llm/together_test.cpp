// Answers that are written together, a token of each in one call, beside each answer alone.
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/embedder.h"
#include "taper/runtime/extension/llm/generation.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;

/// A small model of a family, whose token 7 is the word "t7".
std::string talking_family(const char* family) {
  const std::filesystem::path folder = tests::formula_model(family);
  std::ofstream(folder / "tokenizer.json") << word_tokenizer(48);
  return folder.string();
}

LanguageModel loaded(const std::string& path, int64_t rows, int64_t context = 60) {
  TextModelOptions options;
  options.rows = rows, options.context = context, options.states = rows > 1;
  return load_text_model(path, options);
}

Ids prompt(int which, int length) {
  Ids ids;
  for (int i = 0; i < length; ++i) ids.push_back(2 + (i * 11 + which * 7) % 45);
  return ids;
}

/// How an answer is written. Each one differs from the others.
struct Wish {
  Ids prompt;
  GenerateOptions options;
};

std::shared_ptr<GrammarMatcher> words_of(const LanguageModel& model, const char* grammar) {
  return std::make_shared<GrammarMatcher>(Grammar::from_gbnf(grammar).value(),
                                          TokenTexts(model.tokenizer()));
}

std::vector<Wish> wishes(const LanguageModel& model) {
  std::vector<Wish> list;
  for (int i = 0; i < 7; ++i) {
    GenerateOptions o;
    o.max_tokens = 6 + i * 5 % 9, o.prompt_piece = 4;
    o.sampling.temperature = i % 3 == 0 ? 0 : 0.7f + static_cast<float>(i) / 10;
    o.sampling.top_k = i % 2 == 0 ? 0 : 20;
    o.sampling.seed = static_cast<uint64_t>(i);
    if (i == 2) o.sampling.repetition_penalty = 1.3f;
    if (i == 5) o.grammar = words_of(model, R"(root ::= (" t4" | " t5" | " t6") root | " t9")");
    list.push_back({prompt(i, 3 + i * 4 % 13), o});
  }
  return list;
}

struct Written {
  Ids ids;
  std::string text;
  Finish finish;
  bool operator==(const Written& o) const {
    return ids == o.ids && text == o.text && finish == o.finish;
  }
};
std::ostream& operator<<(std::ostream& out, const Written& w) {
  return out << w.text << " (" << static_cast<int>(w.finish) << ")";
}

Written written(const Generation& g) { return {g.ids(), g.text(), g.finish()}; }

Written alone(const LanguageModel& model, const Wish& wish) {
  Sequence sequence = Sequence::create(model).value();
  Generation answer(sequence, wish.prompt, wish.options);
  while (answer.step()) continue;
  EXPECT_EQ(answer.error(), Error::ok) << answer.message();
  return written(answer);
}

/// Writes all of them in `places` sequences: a new one begins where one has ended.
std::vector<Written> together(const LanguageModel& model, const std::vector<Wish>& list,
                              size_t places) {
  struct Place {
    Sequence sequence;
    std::optional<Generation> answer;
    size_t wish = 0;
  };
  std::vector<Place> all;
  for (size_t i = 0; i < places; ++i) all.push_back({Sequence::create(model).value(), {}, 0});
  std::vector<Written> results(list.size());
  size_t next = 0;
  while (true) {
    std::vector<Generation*> steps;
    for (Place& place : all) {
      if (!place.answer && next < list.size()) {
        place.answer.emplace(place.sequence, list[next].prompt, list[next].options);
        place.wish = next++;
      }
      if (place.answer) steps.push_back(&*place.answer);
    }
    if (steps.empty()) return results;
    step_each(steps);
    for (Place& place : all) {
      if (!place.answer || place.answer->finish() == Finish::none) continue;
      EXPECT_EQ(place.answer->error(), Error::ok) << place.answer->message();
      results[place.wish] = written(*place.answer);
      place.answer.reset();
    }
  }
}

class answers_together : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(families, answers_together,
                         testing::Values("smollm3", "gpt_oss", "rwkv", "mamba2", "llama4_text"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(answers_together, are_those_that_each_would_have_alone) {
  const std::string path = talking_family(GetParam());
  const LanguageModel one = loaded(path, 1), rows = loaded(path, 4);
  EXPECT_EQ(one.rows(), 1);
  EXPECT_EQ(rows.rows(), 4);
  EXPECT_NEAR(static_cast<double>(rows.cache_bytes()), static_cast<double>(one.cache_bytes()), 500)
      << "but for the tables of a session";
  std::vector<Written> want;
  for (const Wish& wish : wishes(one)) {
    want.push_back(alone(one, wish));
    EXPECT_FALSE(want.back().ids.empty());
  }
  EXPECT_EQ(together(rows, wishes(rows), 3), want);
  EXPECT_EQ(together(rows, wishes(rows), 6), want) << "two sessions";
  EXPECT_EQ(together(one, wishes(one), 3), want) << "a session for each";
}

class together_test : public testing::Test {
 protected:
  void SetUp() override {
    path_ = talking_family("smollm3");
    model_.emplace(loaded(path_, 3));
    alone_.emplace(loaded(path_, 1));
  }
  std::string path_;
  std::optional<LanguageModel> model_, alone_;
};

using sequences_together = together_test;

TEST_F(sequences_together, rewind_and_keep_a_prefix_in_their_rows) {
  Sequence a = Sequence::create(*model_).value(), b = Sequence::create(*model_).value(),
           one = Sequence::create(*alone_).value();
  const Ids text = prompt(1, 9);
  ASSERT_TRUE(a.append({text.data(), 9}).ok());
  ASSERT_TRUE(b.append({text.data(), 4}).ok());
  ASSERT_TRUE(one.append({text.data(), 6}).ok());
  a.rewind(6);
  NextToken next[] = {{&b, 5, Error::ok, {}}, {&a, 17, Error::ok, {}}};
  Sequence::append_each(next);
  ASSERT_EQ(next[1].error, Error::ok) << a.message();
  const TokenId id = 17;
  const Result<Span<float>> want = one.append({&id, 1});
  ASSERT_TRUE(want.ok());
  EXPECT_TRUE(std::equal(want.value().begin(), want.value().end(), next[1].logits.begin(),
                         next[1].logits.end()));
  EXPECT_EQ(a.position(), 7);
  EXPECT_EQ(a.keep_prefix({text.data(), 9}), 6);
}

TEST_F(sequences_together, fail_alone_if_their_token_is_wrong) {
  Sequence a = Sequence::create(*model_).value(), b = Sequence::create(*model_).value(),
           full = Sequence::create(*model_).value(), one = Sequence::create(*alone_).value();
  const Ids long_text = prompt(2, 60);
  ASSERT_TRUE(full.append({long_text.data(), 60}).ok());
  NextToken next[] = {{&a, 48, Error::ok, {}}, {&b, 5, Error::ok, {}}, {&full, 5, Error::ok, {}}};
  Sequence::append_each(next);
  EXPECT_EQ(next[0].error, Error::invalid_argument);
  EXPECT_THAT(a.message(), HasSubstr("token 48 is not one of the vocabulary's 48"));
  EXPECT_EQ(next[2].error, Error::invalid_argument);
  EXPECT_THAT(full.message(), HasSubstr("do not fit behind 60 in a context of 60"));
  ASSERT_EQ(next[1].error, Error::ok);
  const TokenId id = 5;
  const Result<Span<float>> want = one.append({&id, 1});
  EXPECT_TRUE(std::equal(want.value().begin(), want.value().end(), next[1].logits.begin(),
                         next[1].logits.end()));
  EXPECT_EQ(a.position(), 0);

  NextToken twice[] = {{&a, 5, Error::ok, {}}, {&a, 6, Error::ok, {}}};
  Sequence::append_each(twice);
  EXPECT_EQ(twice[0].error, Error::invalid_argument);
  EXPECT_THAT(a.message(), HasSubstr("rows 0 and 1 of the batch are both row 0 of the cache"));
  EXPECT_EQ(a.position(), 0);
}

TEST_F(sequences_together, give_their_rows_back) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Sequence> some;
    for (int i = 0; i < 7; ++i) some.push_back(Sequence::create(*model_).value());
    some.erase(some.begin() + 2, some.begin() + 5);
    const Ids text = prompt(round, 5);
    for (Sequence& sequence : some) ASSERT_TRUE(sequence.append({text.data(), 5}).ok());
  }
}

// One thread writes, another one computes embeddings in a row of the same session.
TEST_F(sequences_together, may_belong_to_several_threads) {
  const std::vector<Wish> list = wishes(*alone_);
  std::vector<Written> want;
  for (const Wish& wish : list) want.push_back(alone(*alone_, wish));
  LanguageModelEmbedder embedder(*model_, Pooling::mean);
  const Ids text = prompt(3, 20);
  const auto vector = [&] {
    std::string why;
    const Result<std::vector<float>> v = embedder.embed({text.data(), 20}, &why);
    EXPECT_TRUE(v.ok()) << why;
    return v.ok() ? v.value() : std::vector<float>();
  };
  const std::vector<float> first = vector();
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(vector(), first);
  });
  EXPECT_EQ(together(*model_, wishes(*model_), 2), want);
  other.join();
}

using generations_together = together_test;

TEST_F(generations_together, end_alone_if_a_hook_throws_or_they_are_cancelled) {
  Sequence a = Sequence::create(*model_).value(), b = Sequence::create(*model_).value(),
           c = Sequence::create(*model_).value();
  std::vector<Wish> list = wishes(*model_);
  const Written want = alone(*alone_, list[1]);
  std::atomic<bool> cancel{false};
  list[0].options.max_tokens = list[2].options.max_tokens = 40;
  list[0].options.before_token = [&](Span<float> logits, Span<const TokenId> tokens) {
    for (const TokenId end : model_->text().ends) logits[end] = -INFINITY;
    if (tokens.size() > 6) throw std::runtime_error("enough");
  };
  list[2].options.cancel = &cancel;
  for (const TokenId end : model_->text().ends)
    list[2].options.sampling.bias.push_back({{end}, -100});
  Generation one(a, list[0].prompt, list[0].options), two(b, list[1].prompt, list[1].options),
      three(c, list[2].prompt, list[2].options);
  Generation* all[] = {&one, &two, &three};
  for (int i = 0; two.finish() == Finish::none && i < 100; ++i) {
    if (i == 5) cancel = true;
    step_each(all);
  }
  EXPECT_EQ(written(two), want);
  EXPECT_EQ(one.finish(), Finish::failed);
  EXPECT_EQ(one.message(), "enough");
  EXPECT_EQ(a.position(), 0) << "it forgets what it cannot know";
  EXPECT_EQ(three.finish(), Finish::cancelled);
}

}  // namespace
}  // namespace taper::llm
