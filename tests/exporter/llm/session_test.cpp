// Sequences that fork, rewind, and are kept in files, beside sequences that read everything anew.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/chat.h"
#include "taper/runtime/extension/llm/draft.h"
#include "taper/runtime/extension/llm/session_file.h"
#include "taper/runtime/extension/module/shared_pages.h"
#include "taper/runtime/program/format.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;

using Logits = std::vector<float>;

LanguageModel loaded(const std::string& folder, int64_t rows, int64_t context) {
  TextModelOptions options;
  options.rows = rows, options.context = context;
  return load_text_model(folder, options);
}

std::string folder_of(const char* name) {
  const std::filesystem::path folder = tests::formula_model(name);
  std::ofstream(folder / "tokenizer.json") << word_tokenizer(48);
  return folder.string();
}

LanguageModel family(const char* name, int64_t rows, int64_t context = 60) {
  return loaded(folder_of(name), rows, context);
}

LanguageModel stories() {
  return load_text_model(tests::test_data("../../examples/stories/stories260K.gguf").string());
}

Ids prompt(int which, int64_t length) {
  Ids ids;
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<TokenId>(2 + (i * 11 + which * 7) % 45));
  return ids;
}

Span<const TokenId> span_of(const Ids& ids) {
  return {ids.data(), static_cast<index_t>(ids.size())};
}

Logits append(Sequence& to, const Ids& ids) {
  Result<Span<float>> logits = to.append(span_of(ids));
  EXPECT_TRUE(logits.ok()) << to.message();
  return logits.ok() ? Logits(logits->begin(), logits->end()) : Logits();
}

/// The logits behind texts of a sequence that has read nothing else.
Logits anew(const LanguageModel& model, const std::vector<Ids>& texts) {
  Sequence sequence = Sequence::create(model).value();
  Logits last;
  for (const Ids& ids : texts)
    if (!ids.empty()) last = append(sequence, ids);
  return last;
}

Ids operator+(Ids a, const Ids& b) { return a.insert(a.end(), b.begin(), b.end()), a; }

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
                                         Case{"rwkv", 1, 20}, Case{"mamba2", 4, 20},
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

#ifdef __linux__
/// The bytes of this process in memory. A page that is mapped twice counts once. Pages of files do
/// not count: their share changes as other processes map the same program.
size_t resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  size_t bytes = 0;
  for (std::string line; std::getline(rollup, line);)
    for (const std::string_view part : {"Pss_Anon:", "Pss_Shmem:"})
      if (line.rfind(part, 0) == 0) bytes += std::stoull(line.substr(part.size())) << 10;
  return bytes;
}

TEST(forks, take_the_memory_of_one) {
  if (resident_bytes() == 0) GTEST_SKIP() << "this system does not tell the memory of a process";
  if (SharedPages::create() == nullptr) GTEST_SKIP() << "this system shares no pages";
  for (const int64_t rows : {1, 9}) {
    const LanguageModel model = family("smollm3", rows, 8192);
    constexpr int64_t length = 6000;
    constexpr size_t of_token = 4 * 2 * 2 * 8 * sizeof(float);  // layers, k and v, heads, features
    std::vector<Sequence> all;
    all.push_back(Sequence::create(model).value());
    const size_t before = resident_bytes();
    append(all[0], prompt(0, length));
    const size_t one = resident_bytes() - before;
    EXPECT_GT(one, length * of_token / 2);
    for (int i = 0; i < 8; ++i) all.push_back(all[0].fork().value());
    for (int i = 0; i < 9; ++i) append(all[static_cast<size_t>(i)], prompt(i, 8));
    EXPECT_LT(resident_bytes() - before, one + 9 * length * of_token / 10) << rows;
    // and what nobody needs is given back
    for (Sequence& s : all) s.rewind(0);
    EXPECT_LT(resident_bytes() - before, one);
  }
}

/// Of this process. The system refuses more than vm.max_map_count.
int64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}
int64_t most_mappings() {
  int64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

TEST(forks, leave_mappings_for_others) {
  if (SharedPages::create() == nullptr) GTEST_SKIP() << "this system shares no pages";
  constexpr int64_t length = 700, runs = 4 * 2 * 2;  // layers, k and v, heads
  const int64_t count = most_mappings() / (2 * runs) + 200, before = mappings();
  if (count > 5000) GTEST_SKIP() << "this system has " << most_mappings() << " mappings";
  const LanguageModel model = family("smollm3", 128, length + 68);
  const auto own = [](size_t i) { return Ids{static_cast<TokenId>(2 + i % 40)}; };
  std::vector<Sequence> all;
  all.push_back(Sequence::create(model).value());
  append(all[0], prompt(0, length));
  // forks of the first one and of forks, which write, rewind and end meanwhile
  for (int64_t i = 1; i < count; ++i) {
    std::string why;
    const bool is_of_fork = i % 3 != 0 && all.back().position() > length;
    Result<Sequence> made = all[is_of_fork ? all.size() - 1 : 0].fork(&why);
    ASSERT_TRUE(made.ok()) << i << ": " << why;
    all.push_back(std::move(made.value()));
    Sequence& last = all.back();
    last.rewind(i % 5 == 0 ? length - 9 : length);
    append(last, own(static_cast<size_t>(i)));
    if (i % 7 == 0) all.pop_back();
    if (i == count / 2) {
      EXPECT_GT(mappings() - before, most_mappings() / 4) << "pages are shared";
    }
  }
  EXPECT_LT(mappings() - before, most_mappings() * 4 / 5);
  std::map<std::pair<int64_t, TokenId>, Logits> want;  // by the tokens
  for (size_t i = 1; i < all.size(); ++i) {
    const int64_t shared = all[i].position() - 1;
    const Ids last = {all[i].tokens().back()};
    Logits& expected = want[{shared, last[0]}];
    if (expected.empty()) expected = anew(model, {prompt(0, shared), last, {5}});
    ASSERT_EQ(append(all[i], {5}), expected) << i;
  }
  // what ends gives its mappings back, and others share again
  all.erase(all.begin() + 1, all.end());
  EXPECT_LT(mappings() - before, 2000);
  for (int i = 0; i < 20; ++i) all.push_back(all[0].fork().value());
  EXPECT_GT(mappings() - before, 20 * runs);
  EXPECT_EQ(append(all.back(), {5}), append(all.front(), {5}));
}
#endif

/// What a greedy answer of 150 tokens is, with and without what happens to its sequence meanwhile.
TEST(stories260k, writes_the_same_text_when_it_forks_rewinds_and_is_kept) {
  const LanguageModel model = stories();
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
    Sequence three = Sequence::create(stories()).value();
    ASSERT_EQ(three.restore(path), Error::ok) << three.message();
    for (Sequence* sequence : {&one, &two, &three}) EXPECT_EQ(rest(*sequence, text), want);
  }
}

class session_file : public testing::Test {
 protected:
  session_file() {
    append(sequence_, prompt(0, 10));
    EXPECT_EQ(sequence_.save(path_), Error::ok);
    std::ifstream file(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& bytes) {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  /// The message without the path.
  std::string refusal(const std::string& bytes) {
    write(bytes);
    EXPECT_EQ(sequence_.restore(path_), Error::invalid_argument);
    EXPECT_THAT(sequence_.message(), testing::StartsWith(path_ + ": "));
    return sequence_.message().substr(path_.size() + 2);
  }
  static std::string with_number(std::string bytes, size_t at, uint64_t value) {
    return bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
  }

  static constexpr size_t header_bytes = 80;
  const std::string folder_ = folder_of("smollm3");
  const LanguageModel model_ = loaded(folder_, 1, 60);
  const std::string path_ = tests::scratch_file("a.session").string();
  Sequence sequence_ = Sequence::create(model_).value();
  std::string bytes_;
};

TEST_F(session_file, is_as_long_as_what_was_read) {
  // header, tokens, and for each of them a key and a value: 4 layers of 2 heads of 8 features
  EXPECT_EQ(bytes_.size(), header_bytes + 10 * (4 + 2 * 4 * 2 * 8 * sizeof(float)));
}

TEST_F(session_file, is_refused_if_anything_is_wrong) {
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal("TAPRSES"), "it is no session");
  EXPECT_THAT(refusal(bytes_.substr(0, 60)), HasSubstr("it is damaged"));
  EXPECT_EQ(refusal("x" + bytes_.substr(1)), "it is no session");
  EXPECT_EQ(refusal(with_number(bytes_, 8, 1)),
            "it is a session of version 1; this is version 2: go on with the Taper that wrote it, "
            "or remove it");
  for (size_t size = header_bytes; size < bytes_.size(); size += 97)
    EXPECT_THAT(refusal(bytes_.substr(0, size)), HasSubstr("it is damaged"));
  EXPECT_THAT(refusal(bytes_ + "x"), HasSubstr("it is damaged"));
  for (const size_t at : {32, 40, 48, 56})  // tokens; bytes of the name, the note and the caches
    for (const uint64_t value : {uint64_t{0}, uint64_t{9}, uint64_t{11}, uint64_t{1} << 30,
                                 uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} / 4 + 2})
      if (const std::string lie = with_number(bytes_, at, value); lie != bytes_) {
        EXPECT_THAT(refusal(lie), HasSubstr("it is damaged")) << at;
      }
  for (size_t at = 0; at < bytes_.size(); at += 7) {
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    refusal(changed);
  }
  // a caller may go on with what it had
  EXPECT_EQ(sequence_.tokens(), prompt(0, 10));
  EXPECT_EQ(append(sequence_, {5}), anew(model_, {prompt(0, 10), {5}}));
}

/// Somebody computes the checksum, too.
TEST_F(session_file, may_lie) {
  const auto forged = [&](uint64_t tokens, uint64_t note, uint64_t name = 0) {
    const uint64_t rest = bytes_.size() - header_bytes - tokens * 4 - note - name;
    std::string lie = with_number(with_number(bytes_, 32, tokens), 40, name);
    return with_number(with_number(lie, 48, note), 56, rest);
  };
  EXPECT_EQ(refusal(forged(9, 0)), "it is damaged: its caches do not fit its tokens");
  EXPECT_EQ(refusal(forged(0, 0)), "it is damaged: its caches do not fit its tokens");
  EXPECT_EQ(refusal(forged(10, 4)), "it is damaged: its caches do not fit its tokens");
  EXPECT_EQ(refusal(forged(1000, 0)), "its 1000 tokens do not fit into a context of 60");
  // the caches are numbers, and no text
  EXPECT_THAT(refusal(forged(10, 0, 8)),
              testing::AnyOf(HasSubstr("has control characters"),
                             HasSubstr("saved with an adapter that the model lacks")));
  const auto with_token = [&](TokenId id) {
    std::string lie = bytes_;
    lie.replace(header_bytes, sizeof id, reinterpret_cast<const char*>(&id), sizeof id);
    const auto* const body = reinterpret_cast<const std::byte*>(lie.data()) + header_bytes;
    const auto size = static_cast<index_t>(lie.size() - header_bytes);
    const uint64_t sum = checksum(Span<const std::byte>(body, size));
    return with_number(lie, 64, sum);
  };
  const TokenId first = prompt(0, 1)[0];
  EXPECT_EQ(with_token(first), bytes_) << "the checksum is the one that is stored";
  for (const TokenId id : {-1, 48, 1 << 30})
    EXPECT_EQ(refusal(with_token(id)),
              "it is damaged: token " + std::to_string(id) + " is not one of the vocabulary's 48");
  EXPECT_THAT(refusal(with_number(bytes_, 24, 5)),
              HasSubstr("saved with another adapter of the name"));
}

TEST_F(session_file, belongs_to_a_model) {
  const auto refused_by = [&](const LanguageModel& model) {
    Sequence other = Sequence::create(model).value();
    EXPECT_EQ(other.restore(path_), Error::invalid_argument);
    return other.message();
  };
  append(sequence_, prompt(1, 40));
  ASSERT_EQ(sequence_.save(path_), Error::ok);
  EXPECT_EQ(refused_by(loaded(folder_, 1, 49)),
            path_ + ": its 50 tokens do not fit into a context of 49");
  const std::string of_another =
      path_ + ": it was saved with another model, or with other options of this one";
  TextModelOptions options;
  options.context = 60, options.exact = true;
  EXPECT_EQ(refused_by(load_text_model(folder_, options)), of_another);
  options.exact = false, options.cache_type = CacheType::int8;
  EXPECT_EQ(refused_by(load_text_model(folder_, options)), of_another);
  EXPECT_EQ(refused_by(family("gpt_oss", 1)), of_another);  // in the same folder
}

TEST_F(session_file, belongs_to_what_a_model_computes_and_not_to_its_files) {
  namespace fs = std::filesystem;
  const auto error_of = [&](const std::string& folder) {
    return Sequence::create(loaded(folder, 3, 80)).value().restore(path_);
  };
  const fs::path weights = fs::path(folder_) / "model.safetensors",
                 copy = fs::path(path_).parent_path() / "copy_of_model";
  fs::last_write_time(weights, fs::last_write_time(weights) + std::chrono::hours(1));
  EXPECT_EQ(error_of(folder_), Error::ok);
  fs::remove_all(copy);
  fs::copy(folder_, copy);
  EXPECT_EQ(error_of(copy.string()), Error::ok);
  const auto changed = [&](const char* file, const std::string& from, const std::string& to) {
    std::ifstream in(fs::path(folder_) / file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NE(bytes.find(from), std::string::npos) << file;
    bytes.replace(bytes.find(from), from.size(), to);
    std::ofstream(copy / file, std::ios::binary) << bytes;
  };
  // the model is the same; its epsilon is a number of the formulas
  changed("tokenizer.json", "t7", "T7");
  EXPECT_EQ(error_of(copy.string()), Error::ok);
  io::SafeTensors tensors = io::read_safetensors(weights);
  tensors.tensors.begin()->second.values<float>()[0] += 0.5f;
  io::write_safetensors(copy / "model.safetensors", tensors);
  EXPECT_EQ(error_of(copy.string()), Error::invalid_argument);
  fs::copy_file(weights, copy / "model.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_EQ(error_of(copy.string()), Error::ok);
  const auto with_config = [&](auto change) {
    nlohmann::json config = nlohmann::json::parse(std::ifstream(fs::path(folder_) / "config.json"));
    change(config);
    std::ofstream(copy / "config.json") << config;
    return error_of(copy.string());
  };
  using Json = nlohmann::json;
  EXPECT_EQ(with_config([](Json& c) { c["rms_norm_eps"] = 2e-6; }), Error::invalid_argument);
  EXPECT_EQ(with_config([](Json& c) { c["rope_parameters"]["rope_theta"] = 1e6; }),
            Error::invalid_argument);
  EXPECT_EQ(with_config([](Json& c) { c["transformers_version"] = "6"; }), Error::ok);
}

TEST_F(session_file, belongs_to_the_windows_and_the_experts_of_a_model) {
  using Json = nlohmann::json;
  const std::string folder = folder_of("gpt_oss");
  const std::filesystem::path file = std::filesystem::path(folder) / "config.json";
  const auto told = Json::parse(std::ifstream(file));
  Sequence sequence = Sequence::create(loaded(folder, 1, 40)).value();
  append(sequence, prompt(0, 20));
  ASSERT_EQ(sequence.save(path_), Error::ok);
  const auto error_of = [&](auto change) {
    Json config = told;
    change(config);
    std::ofstream(file) << config;
    return Sequence::create(loaded(folder, 3, 60)).value().restore(path_);
  };
  EXPECT_EQ(error_of([](Json&) {}), Error::ok);
  EXPECT_EQ(error_of([](Json& c) { c["sliding_window"] = 5; }), Error::invalid_argument);
  EXPECT_EQ(error_of([](Json& c) { c["num_experts_per_tok"] = 3; }), Error::invalid_argument);
  EXPECT_EQ(error_of([](Json& c) { std::swap(c["layer_types"][0], c["layer_types"][1]); }),
            Error::invalid_argument);
}

TEST_F(session_file, is_locked_while_somebody_goes_on_with_it) {
  std::string why;
  const std::string link = tests::scratch_file("locked.link").string();
  std::filesystem::remove(link);
  std::filesystem::create_symlink(std::filesystem::path(path_).filename(), link);
  {
    FileLock one, other;
    ASSERT_TRUE(lock_session_file(path_, one, why)) << why;
    for (const std::string& name : {path_, link}) {
      EXPECT_FALSE(lock_session_file(name, other, why));
      EXPECT_THAT(why, testing::MatchesRegex(name + ": another process \\([0-9]+\\) uses it"));
    }
    ASSERT_EQ(sequence_.save(path_), Error::ok) << "the file is another one then";
    EXPECT_FALSE(lock_session_file(path_, other, why));
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".taper-lock"));
  std::ofstream(path_ + ".taper-lock") << "4711";  // that a killed process left
  FileLock again;
  EXPECT_TRUE(lock_session_file(path_, again, why)) << why;
  FileLock nowhere;
  EXPECT_FALSE(lock_session_file("/nowhere/a.session", nowhere, why));
  EXPECT_EQ(why, "/nowhere/a.session: /nowhere/a.session.taper-lock: No such file or directory");
}

TEST_F(session_file, is_not_locked_in_place_of_somebodys_file) {
  namespace fs = std::filesystem;
  const std::string name = path_ + ".taper-lock", of_another_program = path_ + ".lock";
  const auto is_refused = [&] {
    FileLock lock;
    std::string why;
    EXPECT_FALSE(lock_session_file(path_, lock, why));
    EXPECT_EQ(why, path_ + ": " + name + " is in the way: it is no lock of Taper");
  };
  for (const std::string text : {"x", "4711\n", "123456789012345678901", "[[package]]\n"}) {
    std::ofstream(name) << text;
    is_refused();
    std::ifstream file(name);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  }
  for (const char* target : {"a.session.taper-lock", "a.session", "nothing"}) {
    fs::remove(name), fs::create_symlink(target, name);
    is_refused();
    EXPECT_EQ(fs::read_symlink(name), target);
  }
  fs::remove(name);
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  is_refused();
  EXPECT_TRUE(fs::is_fifo(name));
  fs::remove(name), fs::create_directory(name);
  is_refused();
  fs::remove(name);
  std::ofstream(of_another_program) << "x";
  {
    FileLock lock;
    std::string why;
    EXPECT_TRUE(lock_session_file(path_, lock, why)) << why;
    fs::remove(name), std::ofstream(name) << "x";  // somebody does so meanwhile
  }
  EXPECT_TRUE(fs::exists(name));
  EXPECT_TRUE(fs::exists(of_another_program));
}

TEST_F(session_file, is_written_whole_or_not_at_all) {
  EXPECT_EQ(sequence_.save("/nowhere/a.session"), Error::invalid_argument);
  EXPECT_EQ(sequence_.message(),
            "/nowhere/a.session: it cannot be written: No such file or directory");
  std::filesystem::remove(path_);
  EXPECT_EQ(sequence_.restore(path_), Error::invalid_argument);
  EXPECT_THAT(sequence_.message(), HasSubstr(path_));
  append(sequence_, {5});
  ASSERT_EQ(sequence_.save(path_), Error::ok);
  ASSERT_EQ(sequence_.save(path_), Error::ok);
  EXPECT_EQ(sequence_.restore(path_), Error::ok);
  EXPECT_EQ(sequence_.position(), 11);
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()))
    EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
}

TEST_F(session_file, is_for_its_owner_and_keeps_a_mode_and_a_link) {
  namespace fs = std::filesystem;
  using fs::perms;
  const auto mode_of = [](const std::string& path) { return fs::status(path).permissions(); };
  fs::remove(path_);
  ASSERT_EQ(sequence_.save(path_), Error::ok);
  EXPECT_EQ(mode_of(path_), perms::owner_read | perms::owner_write);
  const perms shared = perms::owner_read | perms::owner_write | perms::group_read;
  fs::permissions(path_, shared);
  const std::string link = tests::scratch_file("link.session").string();
  const std::string later = tests::scratch_file("later.session").string();
  fs::remove(link), fs::remove(later);
  fs::create_symlink(fs::path(path_).filename(), link);
  append(sequence_, {5});
  ASSERT_EQ(sequence_.save(link), Error::ok);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(mode_of(path_), shared);
  sequence_.rewind(0);
  ASSERT_EQ(sequence_.restore(path_), Error::ok);
  EXPECT_EQ(sequence_.position(), 11);
  fs::remove(link), fs::create_symlink(fs::path(later).filename(), link);
  ASSERT_EQ(sequence_.save(link), Error::ok);
  EXPECT_TRUE(fs::is_regular_file(later));
}

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
