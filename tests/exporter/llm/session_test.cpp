// Sequences that fork, rewind, take beginnings of others and are kept in files, beside sequences
// that read everything anew.
#include <gmock/gmock.h>

#include <optional>

#include "taper/runtime/extension/llm/generation.h"
#include "taper/tests/exporter/llm/sequences.h"

namespace taper::llm {
namespace {

struct Case {
  const char* name;
  int64_t rows;
  int64_t read;  ///< tokens that sequences share
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name << ' ' << c.rows;
}

class sequence : public testing::TestWithParam<Case> {
 protected:
  LanguageModel load(int64_t rows, int64_t room) const {
    return loaded(folder_, rows, GetParam().read + room);
  }
  Ids shared() const { return prompt(0, GetParam().read); }
  const std::string folder_ = folder_of(GetParam().name);
  const LanguageModel model_ = load(GetParam().rows, 40);
};
// The long ones share pages.
INSTANTIATE_TEST_SUITE_P(families, sequence,
                         testing::Values(Case{"smollm3", 1, 20}, Case{"smollm3", 4, 20},
                                         Case{"smollm3", 1, 1100}, Case{"smollm3", 3, 1100},
                                         Case{"smollm3", 4, 984}, Case{"gpt_oss", 4, 700},
                                         Case{"rwkv", 1, 20}, Case{"rwkv6", 1, 20},
                                         Case{"rwkv7", 3, 20}, Case{"mamba2", 4, 20},
                                         Case{"llama4_text", 1, 20}),
                         [](const auto& info) {
                           return info.param.name + ("_" + std::to_string(info.param.rows)) + "_" +
                                  std::to_string(info.param.read);
                         });

TEST_P(sequence, forks_into_texts_that_go_on_apart) {
  Sequence first = Sequence::create(model_).value();
  append(first, shared());
  Sequence second = first.fork().value();
  EXPECT_EQ(second.tokens(), shared());
  const Logits of_first = append(first, {3, 4, 5});
  Sequence third = first.fork().value(), fourth = second.fork().value();
  EXPECT_EQ(append(second, {7, 8}), anew(model_, {shared(), {7, 8}}));
  EXPECT_EQ(append(third, {9}), anew(model_, {shared(), {3, 4, 5}, {9}}));
  EXPECT_EQ(append(fourth, {3, 4, 5}), of_first);
  EXPECT_EQ(of_first, anew(model_, {shared(), {3, 4, 5}}));
}

TEST_P(sequence, rewinds_beside_its_forks) {
  const int64_t back = model_.text().rewinds ? GetParam().read * 2 / 3 : 0;
  const Ids kept = prompt(0, back), more = prompt(5, 30);
  Sequence first = Sequence::create(model_).value();
  append(first, shared());
  Sequence second = first.fork().value(), third = first.fork().value();
  first.rewind(back);
  second.rewind(0);
  EXPECT_EQ(append(first, more), anew(model_, {kept, more}));
  EXPECT_EQ(append(second, more), anew(model_, {more}));
  EXPECT_EQ(append(third, more), anew(model_, {shared(), more}));
  Sequence fourth = first.fork().value();
  EXPECT_EQ(append(fourth, {6}), anew(model_, {kept, more, {6}}));
  EXPECT_EQ(append(first, {6}), anew(model_, {kept, more, {6}}));
}

TEST_P(sequence, outlives_what_it_was_forked_from) {
  std::optional<Sequence> first(Sequence::create(model_).value());
  append(*first, shared());
  Sequence second = first->fork().value();
  first.reset();
  Sequence other = Sequence::create(model_).value();  // in the place of the first one
  append(other, prompt(3, 25));
  EXPECT_EQ(append(second, {6, 7}), anew(model_, {shared(), {6, 7}}));
}

TEST_P(sequence, takes_the_beginning_of_another_one) {
  Sequence from = Sequence::create(model_).value(), to = Sequence::create(model_).value();
  const Ids own = prompt(2, 9);
  append(from, shared()), append(to, own);
  const int64_t part = GetParam().read - 3;
  if (!model_.text().rewinds) {
    EXPECT_EQ(to.take_prefix(from, part), 0);
    EXPECT_EQ(append(to, {5}), anew(model_, {own, {5}})) << "nothing is forgotten";
    return;
  }
  EXPECT_EQ(to.take_prefix(from, part), part);
  EXPECT_EQ(append(to, {5}), anew(model_, {prompt(0, part), {5}}));
  EXPECT_EQ(to.take_prefix(to, 4), 4);
  EXPECT_EQ(to.take_prefix(from, 100000), GetParam().read);
  EXPECT_EQ(append(to, {5}), append(from, {5}));
  Sequence stranger = Sequence::create(family("gpt_oss", 1)).value();
  append(stranger, {1, 2, 3});
  EXPECT_EQ(to.take_prefix(stranger, 3), 0);
}

TEST_P(sequence, is_kept_in_a_file) {
  const std::string path = tests::scratch_file("kept.session").string();
  {
    Sequence first = Sequence::create(model_).value();
    append(first, shared());
    ASSERT_EQ(first.save(path), Error::ok) << first.message();
  }
  // as another process would load the model: also with room for more texts, and longer ones
  for (const auto& [rows, room] : {std::pair{GetParam().rows, 40}, {GetParam().rows + 1, 53}}) {
    // the windows of Llama 4 are constants, as long as the context
    if (room != 40 && GetParam().name == std::string("llama4_text")) continue;
    const LanguageModel again = load(rows, room);
    Sequence other = Sequence::create(again).value(), second = Sequence::create(again).value();
    append(other, {1, 2}), append(second, {3, 4});
    ASSERT_EQ(second.restore(path), Error::ok) << second.message();
    EXPECT_EQ(second.tokens(), shared());
    EXPECT_EQ(append(second, {6, 7}), anew(model_, {shared(), {6, 7}}));
    EXPECT_EQ(append(other, {5}), anew(model_, {{1, 2}, {5}}));
  }
}

/// What a greedy answer of 150 tokens is, with and without what happens to its sequence meanwhile.
/// Keys of 8 features are so fine in int8 that the text is that of f32.
TEST(stories260k, writes_the_same_text_when_it_forks_rewinds_and_is_kept) {
  Ids in_f32;
  for (const CacheType cache : {CacheType::f32, CacheType::int8}) {
    const LanguageModel model = stories(cache);
    GenerateOptions options;
    options.sampling.temperature = 0, options.max_tokens = 150;
    const Ids begin = model.tokenizer().encode("Once upon a time");
    const auto rest = [&](Sequence& sequence, const Ids& prompt) {
      GenerateOptions o = options;
      o.max_tokens -= static_cast<int64_t>(prompt.size() - begin.size());
      Generation answer(sequence, prompt, o);
      while (answer.step()) continue;
      EXPECT_EQ(answer.error(), Error::ok) << answer.message();
      EXPECT_EQ(answer.statistics().cached_tokens,
                prompt == begin ? 0 : static_cast<int64_t>(prompt.size()) - 1);
      return Ids(prompt.begin() + static_cast<std::ptrdiff_t>(begin.size()), prompt.end()) +
             answer.ids();
    };
    Sequence plain = Sequence::create(model).value();
    const Ids want = rest(plain, begin);
    ASSERT_EQ(want.size(), 150u);
    if (in_f32.empty()) in_f32 = want;
    EXPECT_EQ(want, in_f32);
    const std::string path = tests::scratch_file("story.session").string();
    for (const int64_t written : {20, 101}) {
      const Ids text = begin + Ids(want.begin(), want.begin() + written);
      const Ids read(text.begin(), text.end() - 1);
      Sequence one = Sequence::create(model).value();
      append(one, read);
      ASSERT_EQ(one.save(path), Error::ok);
      Sequence two = one.fork().value();
      append(two, model.tokenizer().encode("The dragon"));
      two.rewind(static_cast<int64_t>(read.size()));
      Sequence three = Sequence::create(stories(cache)).value();
      ASSERT_EQ(three.restore(path), Error::ok) << three.message();
      for (Sequence* sequence : {&one, &two, &three}) EXPECT_EQ(rest(*sequence, text), want);
    }
  }
}

}  // namespace
}  // namespace taper::llm
