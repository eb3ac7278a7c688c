// Conversations with a program: the answers are greedy decoding's, which transformers recorded.
#include "taper/runtime/extension/llm/chat.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <tuple>

#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_assets.h"
#include "taper/runtime/extension/llm/user_text.h"
#include "taper/runtime/extension/module/asset.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::llm {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// Exports the talking model, with a chunk that its prompts do not fit into.
std::string exported(const TalkingModel& talking, int64_t context = 200) {
  LoadOptions load;
  load.capacity = context;
  const Model model = llm::load(talking.folder, load);
  Exporter exporter;
  for (const io::Asset& asset : text_assets(talking.folder, model.config)) exporter.asset(asset);
  add_methods(exporter, *model.decoder, {.chunk = 7});
  const std::string path = tests::scratch_file("talking.taper").string();
  exporter.write(path, ExportOptions{.quiet = true});
  return path;
}

Chat greedy_chat(const LanguageModel& model, size_t max_tokens = 24) {
  Chat chat = Chat::create(model).value();
  chat.options().sampling.temperature = 0;
  chat.options().max_tokens = static_cast<int64_t>(max_tokens);
  return chat;
}

/// The model of each test, in a program.
class chat : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
    talking_ = talking_model(source);
    std::string why;
    ModuleOptions options;
    options.message = &why;
    Result<LanguageModel> model = LanguageModel::load(exported(talking_), options);
    ASSERT_TRUE(model.ok()) << why;
    model_.emplace(model.value());
  }
  TalkingModel talking_;
  std::optional<LanguageModel> model_;
};

TEST_F(chat, answers_as_recorded) {
  Chat chat = greedy_chat(*model_);
  std::string pieces;
  ChatAnswer answer = chat.say(talking_.question());
  for (const std::string_view piece : answer) pieces += piece;
  EXPECT_EQ(answer.ids(), talking_.answer);
  EXPECT_EQ(pieces, words(talking_.answer));
  EXPECT_EQ(answer.text(), pieces);
  EXPECT_EQ(answer.finish(), Finish::max_tokens);
  EXPECT_EQ(answer.error(), Error::ok) << answer.message();
  EXPECT_EQ(answer.statistics().prompt_tokens, 16);
  EXPECT_EQ(answer.statistics().answer_tokens, 24);
  ASSERT_EQ(chat.history().size(), 2u);
  EXPECT_EQ(chat.history()[1].role, "assistant");
  EXPECT_EQ(chat.history()[1].content, pieces);
}

TEST_F(chat, reads_nothing_twice) {
  Chat chat = greedy_chat(*model_, 4);
  EXPECT_EQ(chat.say(talking_.question()).text(), words({202, 41, 41, 183}));
  ChatAnswer second = chat.say("t183 t183");
  EXPECT_EQ(second.text(), words({2, 202, 41, 41}));  // as if the first answer had gone on
  EXPECT_EQ(second.statistics().prompt_tokens, 16 + 4 + 2);
  EXPECT_EQ(second.statistics().cached_tokens, 16 + 3);
}

TEST_F(chat, takes_back_what_was_said) {
  Chat chat = greedy_chat(*model_, 4);
  chat.say(talking_.question()).text();
  const std::string second = chat.say("t1 t2").text();
  chat.say("t9").text();
  chat.rewind(2);
  EXPECT_EQ(chat.history().size(), 2u);
  EXPECT_EQ(chat.say("t1 t2").text(), second);
  chat.clear("t5");
  ASSERT_EQ(chat.history().size(), 1u);
  EXPECT_EQ(chat.history()[0].role, "system");
  EXPECT_EQ(chat.say("t1").statistics().prompt_tokens, 2);
}

TEST_F(chat, keeps_conversations_of_one_model_apart) {
  Chat one = greedy_chat(*model_), two = greedy_chat(*model_), three = greedy_chat(*model_);
  ChatAnswer first = one.say(talking_.question()), second = two.say("t1 t2 t3"),
             third = three.say(talking_.question());
  auto a = first.begin(), b = second.begin(), c = third.begin();
  for (; a != first.end(); ++a, ++b, ++c) EXPECT_EQ(*a, *c);
  EXPECT_EQ(first.ids(), talking_.answer);
  EXPECT_EQ(third.ids(), talking_.answer);
  EXPECT_EQ(second.ids().size(), 24u);
  EXPECT_NE(second.ids(), talking_.answer);
}

TEST_F(chat, ends_an_answer_that_nobody_reads) {
  Chat chat = greedy_chat(*model_);
  for (const std::string_view piece : chat.say(talking_.question()))
    if (piece == " t183") break;
  ASSERT_EQ(chat.history().size(), 2u);
  EXPECT_EQ(chat.history()[1].content, words({202, 41, 41, 183}));
  ChatAnswer left = chat.say("t1");
  ChatAnswer next = chat.say("t2");  // ends the one before, which nobody read
  EXPECT_EQ(left.finish(), Finish::cancelled);
  EXPECT_EQ(left.text(), "");
  EXPECT_EQ(next.ids().size(), 0u);
  EXPECT_EQ(next.text().empty(), false);
}

TEST_F(chat, outlives_nothing_that_its_answer_needs) {
  std::optional<Chat> chat(greedy_chat(*model_));
  ChatAnswer answer = chat->say(talking_.question());
  EXPECT_EQ(*answer.begin(), "t202");
  chat.reset();
  EXPECT_EQ(answer.text(), "t202");
  EXPECT_EQ(answer.finish(), Finish::cancelled);
}

TEST_F(chat, is_cancelled_by_another_thread) {
  Chat chat = greedy_chat(*model_, 150);
  ChatAnswer answer = chat.say(talking_.question());
  auto at = answer.begin();
  std::thread([&] { chat.cancel(); }).join();
  EXPECT_TRUE(++at == answer.end());
  EXPECT_EQ(answer.finish(), Finish::cancelled);
  EXPECT_EQ(answer.error(), Error::ok);
  EXPECT_EQ(answer.text(), "t202");
}

TEST_F(chat, ends_before_a_stop_string) {
  Chat chat = greedy_chat(*model_);
  chat.options().stop = {"t183 t183 t183"};
  ChatAnswer answer = chat.say(talking_.question());
  EXPECT_EQ(answer.text(), "t202 t41 t41 ");
  EXPECT_EQ(answer.finish(), Finish::stop);
}

TEST_F(chat, says_that_the_context_is_full) {
  Chat chat = greedy_chat(*model_, 500);
  ChatAnswer answer = chat.say(talking_.question());
  EXPECT_EQ(answer.text().substr(0, 8), "t202 t41");
  EXPECT_EQ(answer.finish(), Finish::context_full);
  EXPECT_EQ(answer.ids().size(), 200u - 16 + 1);
  ChatAnswer refused = chat.say("t1");
  EXPECT_EQ(refused.text(), "");
  EXPECT_EQ(refused.error(), Error::invalid_argument);
  EXPECT_EQ(refused.finish(), Finish::failed);
  EXPECT_THAT(refused.message(), HasSubstr("do not fit behind"));
  EXPECT_EQ(chat.history().size(), 2u);  // as before
  chat.clear();
  EXPECT_EQ(chat.say(talking_.question()).begin() != refused.end(), true);
}

TEST_F(chat, refuses_an_empty_prompt) {
  Chat chat = greedy_chat(*model_);
  ChatAnswer answer = chat.say("");
  EXPECT_EQ(answer.text(), "");
  EXPECT_EQ(answer.message(), "there is no token to continue");
}

TEST_F(chat, calls_hooks_around_each_token) {
  Sequence sequence = Sequence::create(*model_).value();
  Ids seen;
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 3;
  options.before_token = [](Span<float> logits, Span<const TokenId> tokens) {
    if (tokens.size() == 17) logits[41] = -std::numeric_limits<float>::infinity();
  };
  options.after_token = [&](TokenId id) { seen.push_back(id); };
  Generation answer(sequence, talking_.prompt, options);
  while (answer.step()) continue;
  EXPECT_EQ(seen, answer.ids());
  EXPECT_EQ(seen[0], 202);
  EXPECT_NE(seen[1], 41);
}

/// A tokenizer of letters with the special token <|end|>, number 9.
Tokenizer letters() {
  return Tokenizer::from_json(R"({
    "added_tokens": [{"id": 9, "content": "<|end|>", "special": true}],
    "model": {"type": "BPE", "merges": [], "vocab":
        {"<": 0, "|": 1, "e": 2, "n": 3, "d": 4, ">": 5, "a": 6, "\ufffd": 7}}})")
      .value();
}

// A grammar makes a model of bytes write exactly this.
TEST_F(chat, shows_the_thoughts_of_all_families_alike) {
  std::ofstream(talking_.folder + "/tokenizer.json") << byte_tokenizer();
  const std::tuple<const char*, const char*, const char*> forms[] = {
      {"<|channel|>final<|message|>",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi!",
       "<think>\nHm.\n</think>\n\nHi!"},
      {"<|channel|>final<|message|>", "<|channel|>final<|message|>Hi!", "Hi!"},
      {"<|START_RESPONSE|>",
       "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Hi!<|END_RESPONSE|>",
       "<think>\nHm.\n</think>\n\nHi!"},
      {"[THINK]x[/THINK]", "[THINK]Hm.[/THINK]Hi!", "<think>\nHm.\n</think>\n\nHi!"}};
  for (const auto& [answer, written, shown] : forms) {
    std::ofstream(talking_.folder + "/chat_template.jinja")
        << "{% for m in messages %}{% if m.role == 'assistant' %}" << answer
        << "{% endif %}{{ m.content }}{% endfor %}";
    const LanguageModel model = LanguageModel::load(exported(talking_)).value();
    Chat chat = greedy_chat(model, 150);
    const Grammar grammar = Grammar::from_gbnf("root ::= \"" + std::string(written) + "\"").value();
    chat.options().grammar =
        std::make_shared<GrammarMatcher>(grammar, TokenTexts(model.tokenizer()));
    std::string pieces;
    for (const std::string_view piece : chat.say("a")) pieces += piece;
    EXPECT_EQ(pieces, shown) << written;
    EXPECT_EQ(chat.history().back().content, "Hi!");
    EXPECT_EQ(chat.say("b").text(), shown);
  }
}

TEST(user_text, is_never_a_special_token) {
  const Tokenizer tokenizer = letters();
  const UserText user(tokenizer);
  const auto content = [&](const json& message) {
    const json marked = json::parse(user.mark_messages(json::array({message}).dump()));
    const json& content = marked[0]["content"];
    return (content.is_array() ? content[0]["text"] : content).get<std::string>();
  };
  const Ids characters = {6, 0, 1, 2, 3, 4, 1, 5, 6}, token = {6, 9, 6};
  EXPECT_EQ(user.encode(content({{"role", "user"}, {"content", "a<|end|>a"}})), characters);
  EXPECT_EQ(user.encode(content(
                {{"role", "tool"}, {"content", {{{"type", "text"}, {"text", "a<|end|>a"}}}}})),
            characters);
  EXPECT_EQ(user.encode(content({{"role", "assistant"}, {"content", "a<|end|>a"}})), token);
  EXPECT_EQ(user.encode("a<|end|>a"), token);  // what the template writes
  // nobody can write a mark
  EXPECT_EQ(user.encode(content({{"role", "user"}, {"content", "a\uFDD00\uFDD1a"}})),
            (Ids{6, 7, 7, 6}));
  EXPECT_EQ(user.mark_messages("{"), "{");
  const std::string deep(100000, '[');
  EXPECT_EQ(user.mark_messages(deep), deep);
}

TEST(language_model, uses_what_its_authors_recommend) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
  const json settings = {
      {"do_sample", true}, {"temperature", 0.6}, {"top_k", 20}, {"eos_token_id", {183, 7}}};
  const std::string path = exported(talking_model(source, settings));
  const LanguageModel model = LanguageModel::load(path).value();
  EXPECT_FLOAT_EQ(model.text().sampling.temperature, 0.6f);
  EXPECT_EQ(model.text().sampling.top_k, 20);
  EXPECT_EQ(model.text().sampling.top_p, 1);
  EXPECT_TRUE(model.ends(7));
  Chat chat = greedy_chat(model);
  ChatAnswer answer = chat.say(talking_model(source).question());
  EXPECT_EQ(answer.text(), words({202, 41, 41}));
  EXPECT_EQ(answer.ids(), (Ids{202, 41, 41, 183}));
  EXPECT_EQ(answer.finish(), Finish::end);
}

TEST(language_model, refuses_a_program_that_writes_no_text) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
  const Model model = llm::load(source.string());
  Exporter exporter;
  add_methods(exporter, *model.decoder);
  const std::string path = tests::scratch_file("silent.taper").string();
  exporter.write(path, ExportOptions{.quiet = true});
  std::string why;
  ModuleOptions options;
  options.message = &why;
  EXPECT_EQ(LanguageModel::load(path, options).error(), Error::invalid_argument);
  EXPECT_EQ(why,
            path + ": it has no tokenizer: export it from a folder or a .gguf file that has one");
  EXPECT_EQ(Chat::load("missing.taper", options).error(), Error::invalid_argument);
  EXPECT_THAT(why, HasSubstr("missing.taper"));
}

TEST(assets, are_read_as_they_were_written) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
  const Module module = Module::load(exported(talking_model(source))).value();
  std::vector<std::string> names;
  const std::vector<Asset> assets = assets_of(module.program()).value();
  for (const Asset& asset : assets) names.emplace_back(asset.name);
  EXPECT_THAT(names, ElementsAre("tokenizer.json", "language_model.json", "chat_template.jinja"));
  const Asset settings = find_asset(module.program(), "language_model.json").value();
  EXPECT_EQ(settings.media_type, "application/json");
  const auto* text = reinterpret_cast<const char*>(settings.bytes.data());
  const json parsed = json::parse(text, text + settings.bytes.size());
  EXPECT_EQ(parsed["context"], 200);
  EXPECT_EQ(find_asset(module.program(), "labels.txt").error(), Error::invalid_argument);
}

/// Changes single bytes of a file behind its weights. Loading must succeed or refuse.
TEST(assets, may_be_damaged) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
  std::ifstream file(exported(talking_model(source)), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t first = bytes.find("{\"added_tokens\"");
  ASSERT_NE(first, std::string::npos);
  alignas(64) static std::byte copy[1 << 20];
  ASSERT_LT(bytes.size(), sizeof copy);
  int refused = 0;
  const auto load_changed = [&](size_t at, int change) {
    std::memcpy(copy, bytes.data(), bytes.size());
    copy[at] ^= static_cast<std::byte>(change);
    const Module module =
        Module::load(Span<const std::byte>(copy, static_cast<index_t>(bytes.size())))
            .value();  // it needs no assets
    std::string why;
    if (read_text_parts(module.program(), &why).ok()) return;
    EXPECT_NE(why, "");
    ++refused;
  };
  for (size_t at = first; at < bytes.size(); at += 13) load_changed(at, 0x80);
  for (size_t at = bytes.size() - 400; at < bytes.size(); ++at) load_changed(at, 0x41);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace taper::llm
