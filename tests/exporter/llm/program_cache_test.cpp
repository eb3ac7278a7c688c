// What is kept of language models for the next start.
#include "taper/exporter/llm/program_cache.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/generation.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/tests/exporter/llm/talking_model.h"
#include "taper/tests/support/throw_message.h"

#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace taper::llm {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct EnvironmentVariable {
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* was = std::getenv(name)) before_ = was;
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

fs::path empty_folder(const char* name) {
  const fs::path folder = tests::scratch_file(name);
  fs::remove_all(folder);
  return folder;
}

void change_byte(const fs::path& file, uintmax_t at) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(at));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(byte ^ 1));
}

/// The model `smollm` of the golden data, started again and again.
struct Starts {
  explicit Starts(const fs::path& golden)
      : model(talking_model(golden)), cache(empty_folder("cache")) {}

  /// Starts the model, and expects the recorded answer.
  void start() { start(model.folder); }
  void start(const std::string& folder) {
    notes.clear();
    TextModelOptions options;
    options.context = 64, options.cache = cache;
    options.note = [this](const std::string& text) { notes.push_back(text); };
    const LanguageModel loaded = load_text_model(folder, options);
    Sequence sequence = Sequence::create(loaded).value();
    GenerateOptions greedy;
    greedy.sampling.temperature = 0;
    greedy.max_tokens = static_cast<int64_t>(model.answer.size());
    Generation answer(sequence, model.prompt, greedy);
    while (answer.step()) continue;
    EXPECT_EQ(answer.ids(), model.answer);
    is_right = answer.ids() == model.answer;
  }
  std::vector<ProgramCache::Kept> kept() const { return ProgramCache(cache).models(); }
  fs::path file(const std::string& extension) const {
    for (const auto& entry : fs::directory_iterator(kept().at(0).folder))
      if (entry.path().extension() == extension) return entry.path();
    return {};
  }

  const TalkingModel model;
  const fs::path cache;
  std::vector<std::string> notes;  ///< of the last start
  bool is_right = false;
};

TEST(program_cache, makes_a_program_once) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  Starts starts(golden);
  starts.start();
  EXPECT_THAT(starts.notes,
              ElementsAre(HasSubstr("the next start will be faster: " + starts.cache.string())));
  ASSERT_EQ(starts.kept().size(), 1u);
  EXPECT_LT(starts.kept()[0].size_bytes,
            fs::file_size(starts.model.folder + "/model.safetensors") * 2);
  const fs::path program = starts.file(".taper");
  const auto made = fs::last_write_time(program);
  starts.start();
  EXPECT_THAT(starts.notes, IsEmpty());
  EXPECT_EQ(fs::last_write_time(program), made);
  // a copy of the model, elsewhere
  const fs::path copy = empty_folder("elsewhere") / "talking";
  fs::create_directories(copy.parent_path());
  fs::copy(starts.model.folder, copy);
  for (const auto& entry : fs::directory_iterator(copy))
    fs::last_write_time(entry, fs::last_write_time(starts.model.folder / entry.path().filename()));
  starts.start(copy.string());
  EXPECT_THAT(starts.notes, IsEmpty());
}

TEST(program_cache, keeps_models_apart_whose_files_or_options_differ) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  Starts starts(golden);
  starts.start();
  const fs::path weights = starts.model.folder + "/model.safetensors";
  fs::last_write_time(weights, fs::last_write_time(weights) - hours(1));
  starts.start();
  EXPECT_EQ(starts.notes.size(), 1u);
  std::ofstream(starts.model.folder + "/generation_config.json", std::ios::app) << '\n';
  starts.start();
  EXPECT_EQ(starts.notes.size(), 1u);
  EXPECT_EQ(starts.kept().size(), 3u);

  const ProgramCache cache(starts.cache);
  const fs::path here = cache.folder_of(starts.model.folder, "a");
  EXPECT_EQ(cache.folder_of(starts.model.folder, "a"), here);
  EXPECT_NE(cache.folder_of(starts.model.folder, "b"), here);
  if (cpu_features() == CpuFeatures()) return;  // there is no lesser processor
  const EnvironmentVariable processor("TAPER_CPU", "portable");
  EXPECT_NE(cache.folder_of(starts.model.folder, "a"), here);
}

TEST(program_cache, makes_again_what_is_damaged) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  Starts starts(golden);
  starts.start();
  const fs::path program = starts.file(".taper"), packed = starts.file(".packed");
  const uintmax_t size = fs::file_size(program);
  for (const uintmax_t at : {uintmax_t{3}, uintmax_t{200}, size / 2, size - 100}) {
    change_byte(program, at);
    starts.start();
    ASSERT_EQ(starts.notes.size(), 2u) << at;
    EXPECT_THAT(starts.notes[0], HasSubstr(program.string()));
    starts.start();
    EXPECT_THAT(starts.notes, IsEmpty());
  }
  fs::resize_file(program, size - 64);
  starts.start();
  EXPECT_THAT(starts.notes[0], HasSubstr("cut short"));
  EXPECT_EQ(fs::file_size(program), size);
  if (packed.empty()) return;  // nothing is packed on this processor
  const uintmax_t whole = fs::file_size(packed);
  for (const uintmax_t at : {uintmax_t{64}, whole / 2}) {
    change_byte(packed, at);
    starts.start();
  }
  fs::resize_file(packed, whole / 2);
  starts.start();
  EXPECT_EQ(fs::file_size(packed), whole);
}

TEST(program_cache, does_without_a_folder_that_cannot_be_written) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  Starts starts(golden);
  std::ofstream(starts.cache) << "a file, no folder";
  starts.start();
  EXPECT_THAT(starts.notes,
              ElementsAre(testing::AllOf(
                  HasSubstr("the next start will not be faster: nothing can be kept in "),
                  HasSubstr("Not a directory"))));
}

TEST(program_cache, keeps_nothing_of_a_model_that_is_refused) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  const Starts starts(golden);
  fs::remove(starts.model.folder + "/tokenizer.json");
  TextModelOptions options;
  options.cache = starts.cache;
  EXPECT_EXPORT_ERROR(load_text_model(starts.model.folder, options), "it has no tokenizer");
  EXPECT_TRUE(fs::is_empty(starts.cache));
  EXPECT_EXPORT_ERROR(load_text_model("missing.gguf", options), "missing.gguf: No such file");
}

#ifdef __linux__

/// Runs `body` in another process, and returns its exit code.
template <class Body>
int in_process(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(program_cache, serves_processes_that_start_at_once) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  Starts starts(golden);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int round = 0; round < 3; ++round) starts.start();
      ::_exit(starts.is_right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  ASSERT_EQ(starts.kept().size(), 1u);
  for (const auto& entry : fs::directory_iterator(starts.kept()[0].folder))
    EXPECT_NE(entry.path().extension(), ".partial") << entry.path();
}

TEST(program_cache, does_without_a_disk_that_is_full) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "hf_tiny/smollm");
  constexpr int no_namespace = 77;
  Starts starts(golden);
  fs::create_directories(starts.cache);
  // too few bytes; and so few files that one of them cannot be made
  constexpr const char* three_files = "nr_inodes=3";
  for (const char* limit : {"size=1m", "nr_inodes=2", three_files}) {
    const int code = in_process([&] {
      if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return no_namespace;
      if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("none", starts.cache.c_str(), "tmpfs", 0, limit) != 0)
        return no_namespace;
      starts.start();
      const bool keeps_nothing =
          starts.notes.size() == 1 &&
          starts.notes[0].find("nothing can be kept in") != std::string::npos;
      // three are enough for the program, but not for the packed weights
      return starts.is_right && keeps_nothing == (limit != three_files) ? 0 : 1;
    });
    if (code == no_namespace) GTEST_SKIP() << "this system lets nobody mount a small disk";
    EXPECT_EQ(code, 0) << limit;
  }
}

#endif

/// A model that was used some hours ago.
fs::path kept_model(const fs::path& cache, const char* name, uintmax_t bytes, int hours_ago) {
  const fs::path folder = cache / (std::string(name) + "-0123456789abcdef"),
                 program = folder / ProgramCache::program;
  fs::create_directories(folder);
  std::ofstream(program) << ' ';
  fs::resize_file(program, bytes);  // takes no place
  fs::last_write_time(program, fs::file_time_type::clock::now() - hours(hours_ago));
  return folder;
}

TEST(program_cache, removes_what_was_not_used_for_longest) {
  const ProgramCache cache(empty_folder("cache"));
  constexpr uintmax_t third = ProgramCache::most_bytes / 3;
  const fs::path b = kept_model(cache.folder(), "b", third, 2),
                 a = kept_model(cache.folder(), "a", third, 3),
                 c = kept_model(cache.folder(), "c", third, 1),
                 ancient = kept_model(cache.folder(), "d", 1, 24 * 91);
  const auto folders = [&] {
    std::vector<fs::path> all;
    for (const ProgramCache::Kept& kept : cache.models()) all.push_back(kept.folder);
    return all;
  };
  EXPECT_THAT(folders(), ElementsAre(c, b, a, ancient));
  EXPECT_EQ(cache.make_room(cache.folder() / "e-0123456789abcdef", 1), "");
  EXPECT_THAT(folders(), ElementsAre(c, b, a));
  cache.use(a);
  EXPECT_EQ(cache.make_room(cache.folder() / "e-0123456789abcdef", third), "");
  EXPECT_THAT(folders(), ElementsAre(a, c));
  EXPECT_THAT(cache.make_room(cache.folder() / "e-0123456789abcdef", ProgramCache::most_bytes + 1),
              HasSubstr("are more than the 10.0 GB that are kept"));
  std::ofstream(cache.folder() / "of_somebody_else") << "stays";
  // a program was not finished there, because its process was killed
  const fs::path killed = cache.folder() / "killed-0123456789abcdef";
  fs::create_directories(killed);
  std::ofstream(killed / "program.taper.1.partial") << "half";
  EXPECT_EQ(cache.clear().size(), 3u);
  EXPECT_THAT(folders(), IsEmpty());
  EXPECT_TRUE(fs::exists(cache.folder() / "of_somebody_else"));
  EXPECT_FALSE(fs::exists(killed));
}

TEST(program_cache, leaves_the_folders_of_others) {
  const ProgramCache cache(empty_folder("cache"));
  const char* const others[] = {"models", "my-model", "model-0123456789ABCDEF", "0123456789abcdef",
                                "-0123456789abcdef"};
  for (const char* name : others) {
    fs::create_directories(cache.folder() / name);
    const fs::path program = cache.folder() / name / ProgramCache::program;
    std::ofstream(program) << "mine";
    fs::last_write_time(program, fs::file_time_type::clock::now() - hours(24 * 91));
  }
  EXPECT_THAT(cache.models(), IsEmpty());
  EXPECT_EQ(cache.make_room(cache.folder() / "e-0123456789abcdef", 1), "");
  EXPECT_THAT(cache.clear(), IsEmpty());
  for (const char* name : others)
    EXPECT_TRUE(fs::exists(cache.folder() / name / ProgramCache::program)) << name;
}

TEST(program_cache, lies_where_the_environment_says) {
  const EnvironmentVariable home("HOME", "/home/someone"), shared("XDG_CACHE_HOME", ""),
      own("TAPER_CACHE", "");
  EXPECT_EQ(ProgramCache::default_folder(), "/home/someone/.cache/taper");
  const EnvironmentVariable moved("XDG_CACHE_HOME", "/fast");
  EXPECT_EQ(ProgramCache::default_folder(), "/fast/taper");
  const EnvironmentVariable relative("XDG_CACHE_HOME", "fast");
  EXPECT_EQ(ProgramCache::default_folder(), "/home/someone/.cache/taper");
  const EnvironmentVariable named("TAPER_CACHE", "/models");
  EXPECT_EQ(ProgramCache::default_folder(), "/models");
  const EnvironmentVariable off("TAPER_CACHE", "off");
  EXPECT_EQ(ProgramCache::default_folder(), "");
}

}  // namespace
}  // namespace taper::llm
