// Texts that choose among LoRA adapters, beside models into which an adapter is merged.
#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/base/error.h"
#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/chat.h"
#include "taper/tests/exporter/llm/random_adapter.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using tests::RandomAdapter, tests::peft_folder, tests::merged_model;

using Logits = std::vector<float>;

const RandomAdapter pirate{"pirate", 2, 3, "_proj.weight"}, poet{"poet", 5, 4, "q_proj.weight"};

class named_adapters : public testing::TestWithParam<const char*> {
 protected:
  named_adapters() : folder_(tests::formula_model(GetParam())) {
    std::ofstream(folder_ / "tokenizer.json") << word_tokenizer(48);
    std::ofstream(folder_ / "chat_template.jinja")
        << "{% for m in messages %}{{ m.content }} {% endfor %}";
  }
  LanguageModel load(int64_t rows = 1) const {
    TextModelOptions options;
    options.rows = rows, options.context = 60;
    options.lora = {"pirate=" + peft_folder(folder_, pirate), "poet=" + peft_folder(folder_, poet)};
    return load_text_model(folder_.string(), options);
  }
  static LanguageModel load(const std::string& folder) {
    TextModelOptions options;
    options.context = 60;
    return load_text_model(folder, options);
  }
  std::string refusal(const std::vector<std::string>& lora) const {
    TextModelOptions options;
    options.lora = lora;
    try {
      load_text_model(folder_.string(), options);
    } catch (const ExportError& e) {
      return e.what();
    }
    return "";
  }
  const std::filesystem::path folder_;
};
INSTANTIATE_TEST_SUITE_P(families, named_adapters, testing::Values("smollm3", "cohere2", "olmo3"),
                         [](const auto& info) { return std::string(info.param); });

Sequence with(const LanguageModel& model, const std::string& adapter) {
  Sequence sequence = Sequence::create(model).value();
  EXPECT_EQ(sequence.use_adapter(adapter), Error::ok) << sequence.message();
  return sequence;
}

Logits append(Sequence& to, const Ids& ids) {
  Result<Span<float>> logits = to.append({ids.data(), static_cast<index_t>(ids.size())});
  EXPECT_TRUE(logits.ok()) << to.message();
  return logits.ok() ? Logits(logits->begin(), logits->end()) : Logits();
}

double difference(const Logits& a, const Logits& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

const Ids text = {3, 9, 41, 17, 5, 30, 8};

TEST_P(named_adapters, compute_as_models_into_which_they_are_merged) {
  const LanguageModel model = load();
  EXPECT_THAT(model.text().adapters, testing::ElementsAre("pirate", "poet"));
  const auto logits_of = [](const LanguageModel& m, const std::string& adapter) {
    Sequence sequence = with(m, adapter);
    return append(sequence, text);
  };
  const Logits plain = logits_of(load(folder_.string()), "");
  EXPECT_EQ(logits_of(model, ""), plain);
  for (const RandomAdapter& adapter : {pirate, poet}) {
    const Logits have = logits_of(model, adapter.name),
                 want = logits_of(load(merged_model(folder_, adapter)), "");
    EXPECT_LT(difference(have, want), 1e-4) << adapter.name;
    EXPECT_GT(difference(have, plain), 1e-2) << adapter.name;
  }
}

TEST_P(named_adapters, share_a_call) {
  const LanguageModel model = load(4);
  std::vector<Sequence> together, alone;
  for (const char* adapter : {"poet", "", "pirate", "poet"}) {
    together.push_back(with(model, adapter)), alone.push_back(with(model, adapter));
    append(together.back(), text), append(alone.back(), text);
  }
  for (const TokenId id : {7, 12, 40}) {
    std::vector<NextToken> next;
    for (Sequence& sequence : together) next.push_back({&sequence, id, Error::ok, {}});
    Sequence::append_each(next);
    for (size_t i = 0; i < together.size(); ++i) {
      ASSERT_EQ(next[i].error, Error::ok) << together[i].message();
      EXPECT_EQ(Logits(next[i].logits.begin(), next[i].logits.end()), append(alone[i], {id}));
    }
  }
}

TEST_P(named_adapters, share_nothing_that_they_have_read) {
  const LanguageModel model = load();
  Sequence one = with(model, "pirate"), other = with(model, "poet");
  const Logits want = append(one, text);
  EXPECT_EQ(other.take_prefix(one, 5), 0);
  Sequence fork = one.fork().value();
  EXPECT_EQ(fork.adapter(), "pirate");
  EXPECT_EQ(append(fork, {4}), append(one, {4}));
  const std::string path = tests::scratch_file("adapter.session").string();
  ASSERT_EQ(one.save(path), Error::ok);
  EXPECT_EQ(fork.restore(path), Error::ok);
  EXPECT_EQ(one.use_adapter("pirate"), Error::ok);
  EXPECT_EQ(one.position(), static_cast<int64_t>(text.size()) + 1);
  EXPECT_EQ(one.use_adapter("poet"), Error::ok);
  EXPECT_EQ(one.position(), 0);
  EXPECT_NE(append(one, text), want);
  EXPECT_EQ(one.use_adapter("Anna"), Error::invalid_argument);
  EXPECT_EQ(one.message(), "there is no adapter Anna; the model has pirate, poet");
  EXPECT_EQ(one.adapter(), "poet");
}

TEST_P(named_adapters, go_on_from_a_file_in_any_company) {
  const std::string path = tests::scratch_file("adapter.session").string(),
                    one = "pirate=" + peft_folder(folder_, pirate),
                    other = "poet=" + peft_folder(folder_, poet);
  Sequence sequence = with(load(), "pirate");
  append(sequence, text);
  ASSERT_EQ(sequence.save(path), Error::ok);
  const Logits want = append(sequence, {4});
  for (const std::vector<std::string>& lora : {std::vector{other, one}, std::vector{one}}) {
    TextModelOptions options;
    options.rows = 2, options.context = 70, options.lora = lora;
    Sequence again = Sequence::create(load_text_model(folder_.string(), options)).value();
    ASSERT_EQ(again.restore(path), Error::ok) << again.message();
    EXPECT_EQ(again.adapter(), "pirate");
    EXPECT_EQ(append(again, {4}), want);
  }
  const auto refused_by = [&](const std::vector<std::string>& lora) {
    TextModelOptions options;
    options.context = 60, options.lora = lora;
    Sequence again = Sequence::create(load_text_model(folder_.string(), options)).value();
    EXPECT_EQ(again.restore(path), Error::invalid_argument);
    EXPECT_EQ(again.adapter(), "");
    return again.message();
  };
  EXPECT_EQ(refused_by({other}), path +
                                     ": it was saved with an adapter that the model lacks: there "
                                     "is no adapter pirate; the model has poet");
  EXPECT_THAT(refused_by({}), HasSubstr("there is no adapter pirate; the model has none"));
  RandomAdapter trained = pirate;
  trained.alpha = 3.1;
  EXPECT_EQ(refused_by({"pirate=" + peft_folder(folder_, trained)}),
            path + ": it was saved with another adapter of the name pirate");
  // and the model itself is the same, whatever adapters stand beside it
  Sequence plain = with(load(), "");
  const Logits of_plain = append(plain, text);
  ASSERT_EQ(plain.save(path), Error::ok);
  Sequence bare = Sequence::create(load(folder_.string())).value();
  ASSERT_EQ(bare.restore(path), Error::ok) << bare.message();
  EXPECT_EQ(append(bare, {4}), append(plain, {4}));
}

TEST_P(named_adapters, answer_on_in_a_chat_that_was_kept) {
  const std::string path = tests::scratch_file("adapter.session").string();
  Chat chat = Chat::create(load()).value();
  chat.options().sampling.temperature = 0, chat.options().max_tokens = 6;
  ASSERT_EQ(chat.use_adapter("poet"), Error::ok);
  chat.say("t3 t9").text();
  ASSERT_EQ(chat.save(path), Error::ok);
  Chat again = Chat::create(load(2)).value(), bare = Chat::create(load(folder_.string())).value();
  again.options() = chat.options();
  std::string why;
  ASSERT_EQ(again.restore(path, &why), Error::ok) << why;
  EXPECT_EQ(again.adapter(), "poet");
  ChatAnswer answer = again.say("t5");
  EXPECT_EQ(answer.text(), chat.say("t5").text());
  EXPECT_GT(answer.statistics().cached_tokens, 0);
  EXPECT_EQ(bare.restore(path, &why), Error::invalid_argument);
  EXPECT_EQ(why, path + ": the adapter poet answers in it, and the model has none of that name");
  EXPECT_EQ(bare.history().size(), 0u);
}

TEST_P(named_adapters, change_in_a_conversation) {
  Chat chat = Chat::create(load()).value();
  chat.options().sampling.temperature = 0, chat.options().max_tokens = 6;
  chat.say("t3 t9").text();
  ASSERT_EQ(chat.use_adapter("pirate"), Error::ok);
  ChatAnswer answer = chat.say("t5");
  answer.text();
  EXPECT_EQ(answer.error(), Error::ok) << answer.message();
  EXPECT_EQ(answer.statistics().cached_tokens, 0);
  EXPECT_EQ(chat.history().size(), 4u);
  std::string why;
  EXPECT_EQ(chat.use_adapter("Anna", &why), Error::invalid_argument);
  EXPECT_THAT(why, HasSubstr("no adapter Anna"));
}

TEST_P(named_adapters, are_refused_if_nobody_can_tell_them_apart) {
  const std::string one = peft_folder(folder_, pirate);
  EXPECT_THAT(refusal({"a=" + one, "a=" + one}), HasSubstr("two adapters have the name `a`"));
  EXPECT_THAT(refusal({one, "a=" + one}), HasSubstr("several adapters need names"));
  EXPECT_THAT(refusal({"a=nowhere"}), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace taper::llm
