// The option --session: what it refuses, and what it shows.
#include <gmock/gmock.h>

#include <iostream>

#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/session_file.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A small model that chats.
std::string chatting_model() {
  const std::filesystem::path folder = tests::formula_model("smollm3");
  std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(48);
  std::ofstream(folder / "chat_template.jinja")
      << "{% for m in messages %}{{ m.content }} {% endfor %}";
  return folder.string();
}

Outcome chat(const std::string& model, const std::string& session, const std::string& lines) {
  std::istringstream input(lines);
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  const Outcome o = taper_command("chat", model, "--session", session, "--max-tokens", "4",
                                  "--context", "64", "--no-cache");
  std::cin.rdbuf(before);
  std::cin.clear();
  return o;
}

TEST(session_option, lets_generate_leave_conversations_alone) {
  const std::string model = chatting_model(), file = tests::scratch_file("kept.session").string();
  std::filesystem::remove(file);
  ASSERT_EQ(chat(model, file, "t5 t6\n").code, success);
  const std::string before = content(file);
  const Outcome o = taper_command("generate", model, "--prompt", "t5", "--session", file,
                                  "--context", "64", "--no-cache");
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("--session " + file + ": it holds a conversation of `taper chat`"));
  EXPECT_EQ(content(file), before);
  EXPECT_THAT(chat(model, file, "/exit\n").out, HasSubstr("(2 messages"));
}

TEST(session_option, is_tried_before_the_model_is_loaded) {
  const std::string folder = tests::scratch_file("x").parent_path().string();
  for (const char* command : {"chat", "generate"}) {
    const auto refusal = [&](const std::string& file) {
      const std::string prompt = std::string(command) == "chat" ? "--greedy" : "--prompt=a";
      const Outcome o = taper_command(command, "no model", prompt, "--session", file);
      EXPECT_EQ(o.code, failure);
      return o.err;
    };
    const std::string none = folder + "/nodir/s", long_name(300, 's');
    EXPECT_THAT(refusal(none), HasSubstr("--session " + none +
                                         ": it cannot be written: No such file or directory"));
    EXPECT_THAT(refusal(folder), HasSubstr("it cannot be written: it is a folder"));
    EXPECT_THAT(refusal(long_name), HasSubstr("--session " + long_name + ": File name too long"));
    EXPECT_THAT(refusal(long_name), Not(HasSubstr("filesystem error")));
  }
}

TEST(session_option, belongs_to_one_command_at_a_time) {
  const std::string model = chatting_model(), file = tests::scratch_file("busy.session").string(),
                    other = tests::scratch_file("other.session").string();
  std::filesystem::remove(file);
  ASSERT_EQ(chat(model, file, "t5 t6\n").code, success);
  const std::string before = content(file);
  FileLock lock;
  std::string why;
  ASSERT_TRUE(llm::lock_session_file(file, lock, why)) << why;
  const Outcome o = chat(model, file, "t7\n");
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, testing::ContainsRegex("--session " + file +
                                            ": another process \\([0-9]+\\) uses "
                                            "it; give another file"));
  EXPECT_EQ(taper_command("generate", "no model", "--prompt=a", "--session", file).code, failure);
  // a chat may save into files of its own, and read others
  const Outcome saves =
      chat(model, other, "t7\n/save " + file + "\n/save " + other + "\n/load " + file + "\n");
  EXPECT_EQ(saves.code, success);
  EXPECT_THAT(saves.out, HasSubstr("uses it; give another file"));
  EXPECT_THAT(saves.out, HasSubstr("(2 messages; "));
  EXPECT_EQ(content(file), before);
}

TEST(session_option, leaves_the_files_of_others_alone) {
  const std::string model = chatting_model(), file = tests::scratch_file("poetry").string(),
                    saved = tests::scratch_file("saved").string();
  for (const std::string& name : {file, saved}) std::filesystem::remove(name);
  for (const std::string& name : {file + ".lock", saved + ".lock", saved + ".taper-lock"})
    std::ofstream(name) << "x";
  const Outcome o = chat(model, file, "t5\n/save " + saved + "\n");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr(saved + ".taper-lock is in the way: it is no lock of Taper; give "
                                       "another file"));
  EXPECT_FALSE(std::filesystem::exists(saved));
  for (const std::string& name : {file + ".lock", saved + ".lock", saved + ".taper-lock"})
    EXPECT_EQ(content(name), "x") << name;
}

TEST(session_option, shows_no_control_characters_of_a_file) {
  const std::string model = chatting_model(),
                    file = tests::scratch_file("escapes.session").string();
  std::filesystem::remove(file);
  llm::TextModelOptions options;
  options.context = 64;
  llm::Sequence sequence = llm::Sequence::create(llm::load_text_model(model, options)).value();
  ASSERT_EQ(sequence.save(file, R"([{"role": "u\u001b[1m", "content": "a\u001b]0;b\u0007"}])"),
            Error::ok);
  const Outcome o = chat(model, file, "/exit\n");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr(R"(the last one, of the u\x1b[1m: a\x1b]0;b\x07))"));
  EXPECT_THAT(o.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace taper::cli
