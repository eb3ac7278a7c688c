// Files of sequences: what they say about damage, to which models they belong, locks and modes.
#include "taper/runtime/extension/llm/session_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "taper/runtime/program/format.h"
#include "taper/tests/exporter/llm/sequences.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;

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

/// A session of a model, and what restoring it says when the model's config.json was changed.
class OfChangedModel {
 public:
  OfChangedModel(const char* model, const std::string& path)
      : folder_(folder_of(model)), path_(path) {
    Sequence sequence = Sequence::create(loaded(folder_, 1, 40)).value();
    append(sequence, prompt(0, 20));
    EXPECT_EQ(sequence.save(path_), Error::ok);
  }
  const nlohmann::json& config() const { return told_; }
  /// `rows` and `context`: what the changed model is loaded for.
  template <class Change>
  Error error_of(int rows, int context, const Change& change) const {
    nlohmann::json config = told_;
    change(config);
    std::ofstream(file_) << config;
    return Sequence::create(loaded(folder_, rows, context)).value().restore(path_);
  }

 private:
  const std::string folder_, path_;
  const std::filesystem::path file_ = std::filesystem::path(folder_) / "config.json";
  const nlohmann::json told_ = nlohmann::json::parse(std::ifstream(file_));
};

TEST_F(session_file, belongs_to_the_windows_and_the_experts_of_a_model) {
  using Json = nlohmann::json;
  const OfChangedModel model("gpt_oss", path_);
  const auto error_of = [&](auto change) { return model.error_of(3, 60, change); };
  EXPECT_EQ(error_of([](Json&) {}), Error::ok);
  EXPECT_EQ(error_of([](Json& c) { c["sliding_window"] = 5; }), Error::invalid_argument);
  EXPECT_EQ(error_of([](Json& c) { c["num_experts_per_tok"] = 3; }), Error::invalid_argument);
  EXPECT_EQ(error_of([](Json& c) { std::swap(c["layer_types"][0], c["layer_types"][1]); }),
            Error::invalid_argument);
}

/// The windows of Llama 4 jump.
TEST_F(session_file, belongs_to_the_length_of_chunks_of_attention) {
  const OfChangedModel model("llama4_text", path_);
  const auto error_of = [&](int chunk) {
    return model.error_of(1, 40, [&](nlohmann::json& c) { c["attention_chunk_size"] = chunk; });
  };
  EXPECT_EQ(model.config()["attention_chunk_size"], 16);
  EXPECT_EQ(error_of(16), Error::ok);
  EXPECT_EQ(error_of(8), Error::invalid_argument);
  EXPECT_EQ(error_of(17), Error::invalid_argument);
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

}  // namespace
}  // namespace taper::llm
