// Conversations that fork, and are kept in files.
#include <gmock/gmock.h>

#include <fstream>

#include "taper/runtime/extension/llm/chat.h"
#include "taper/runtime/extension/llm/draft.h"
#include "taper/tests/exporter/llm/sequences.h"

namespace taper::llm {
namespace {

class kept_chat : public testing::Test {
 protected:
  kept_chat() {
    std::ofstream(folder_ + "/chat_template.jinja")
        << "{% for m in messages %}{{ m.content }} {% endfor %}";
  }
  Chat chat(bool exact = false) const {
    TextModelOptions options;
    options.context = 400, options.exact = exact;
    Chat made = Chat::create(load_text_model(folder_, options)).value();
    made.options().sampling.temperature = 0, made.options().max_tokens = 9;
    return made;
  }
  const std::string folder_ = folder_of("smollm3");
};

TEST_F(kept_chat, goes_on_in_a_fork_and_from_a_file) {
  const std::string path = tests::scratch_file("chat.session").string();
  Chat first = chat();
  first.clear("t9 t8");
  first.say(words(prompt(0, 30))).text();
  ASSERT_EQ(first.save(path), Error::ok);
  Chat second = first.fork().value(), third = chat();
  third.say("t1 t2").text();
  std::string why;
  ASSERT_EQ(third.restore(path, &why), Error::ok) << why;
  EXPECT_EQ(third.history().size(), 3u);
  EXPECT_EQ(third.history()[0].role, "system");
  second.say("t30").text();
  const std::string want = first.say("t5 t6").text();
  ChatAnswer answer = third.say("t5 t6");
  EXPECT_EQ(answer.text(), want);
  EXPECT_GE(answer.statistics().cached_tokens, 32);
  EXPECT_EQ(second.history().size(), 5u);
  second.rewind(3);
  EXPECT_EQ(second.say("t5 t6").text(), want);
}

TEST_F(kept_chat, follows_a_grammar_beside_its_fork) {
  Chat first = chat();
  const TokenTexts texts(first.model().tokenizer());
  first.options().grammar = std::make_shared<GrammarMatcher>(
      Grammar::from_gbnf(R"(root ::= " t4" " t8" " t6" " t9" " t5")").value(), texts);
  first.options().draft = lookup_draft();
  Chat second = first.fork().value();
  EXPECT_EQ(second.options().draft, nullptr);
  ChatAnswer one = first.say("t5 t6"), two = second.say("t7");
  auto piece = one.begin(), other = two.begin();
  for (; piece != one.end(); ++piece)
    if (other != two.end()) ++other;
  two.text();
  EXPECT_THAT(one.ids(), testing::ElementsAre(4, 8, 6, 9, 5));
  EXPECT_EQ(two.ids(), one.ids());
  EXPECT_EQ(one.finish(), Finish::end);
  EXPECT_EQ(two.finish(), Finish::end);
}

TEST_F(kept_chat, is_read_anew_by_another_model) {
  const std::string path = tests::scratch_file("chat.session").string();
  Chat first = chat();
  first.say(words(prompt(0, 30))).text();
  ASSERT_EQ(first.save(path), Error::ok);
  Chat second = chat(true);
  ASSERT_EQ(second.restore(path), Error::ok);
  EXPECT_EQ(second.history().size(), 2u);
  ChatAnswer answer = second.say("t5 t6");
  EXPECT_EQ(answer.text().substr(0, 1), "t");
  EXPECT_EQ(answer.statistics().cached_tokens, 0);
}

TEST_F(kept_chat, refuses_a_note_that_is_no_conversation) {
  const std::string path = tests::scratch_file("chat.session").string();
  Chat talking = chat();
  talking.say("t7").text();
  Sequence sequence = Sequence::create(talking.model()).value();
  append(sequence, {1, 2});
  std::string nested;
  for (int i = 0; i < 1 << 20; ++i) nested += "[{\"a\":";
  for (const std::string& note :
       {std::string(), std::string("{}"), std::string("[1]"), std::string(R"([{"role": "user"}])"),
        std::string(R"([{"role": "user", "content": 3}])"),
        std::string(R"([{"role": "user", "content": ["a"]}])"), nested, std::string("[\xff]")}) {
    ASSERT_EQ(sequence.save(path, note), Error::ok);
    std::string why;
    EXPECT_EQ(talking.restore(path, &why), Error::invalid_argument);
    EXPECT_EQ(why, path + ": it holds no conversation");
  }
  EXPECT_EQ(talking.history().size(), 2u);
  ASSERT_EQ(sequence.save(path, "[]"), Error::ok);
  EXPECT_EQ(talking.restore(path), Error::ok);
  EXPECT_EQ(talking.history().size(), 0u);
}

}  // namespace
}  // namespace taper::llm
