#include "taper/exporter/io/file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/io/internal/new_file.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

using testing::HasSubstr;
using tests::scratch_file;

void write(const std::filesystem::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// A new folder for each run.
std::filesystem::path empty_folder() {
  const std::filesystem::path folder = scratch_file("folder");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(read_file, refuses_what_is_no_file_and_does_not_wait_for_it) {
  const auto pipe = empty_folder() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, std::filesystem::path("/dev/zero")}) {
    try {
      (void)read_file(path);
      ADD_FAILURE() << path << " was read";
    } catch (const FileError& e) {
      EXPECT_THAT(e.what(), HasSubstr(path.string() + ": is a pipe or a device, not a file"));
    }
  }
}

TEST(write_file, replaces_a_file_and_leaves_nothing_beside_it) {
  const auto folder = empty_folder();
  write(folder / "a.txt", "first");
  std::filesystem::permissions(
      folder / "a.txt", std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  write(folder / "a.txt", "second");
  EXPECT_EQ(content(folder / "a.txt"), "second");
  EXPECT_EQ(std::filesystem::status(folder / "a.txt").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(files_in(folder), 1);
}

TEST(write_file, keeps_the_owner_of_a_file_that_root_replaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const auto file = empty_folder() / "a";
  write(file, "first");
  ASSERT_EQ(::chown(file.c_str(), 1234, 5678), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  write(file, "second");
  struct stat after {};
  ASSERT_EQ(::stat(file.c_str(), &after), 0);
  EXPECT_EQ(after.st_uid, 1234u);
  EXPECT_EQ(after.st_gid, 5678u);
  EXPECT_EQ(after.st_mode & 07777u, 0600u);
}

TEST(write_file, follows_links_and_keeps_them) {
  const auto folder = empty_folder();
  write(folder / "file", "old");
  std::filesystem::create_directory(folder / "below");
  std::filesystem::create_symlink("../file", folder / "below" / "link");
  std::filesystem::create_symlink("below/link", folder / "link");
  std::filesystem::create_symlink("new", folder / "dangling");
  write(folder / "link", "new content");
  write(folder / "dangling", "a new file");
  EXPECT_EQ(content(folder / "file"), "new content");
  EXPECT_EQ(content(folder / "new"), "a new file");
  for (const char* link : {"link", "below/link", "dangling"})
    EXPECT_TRUE(std::filesystem::is_symlink(folder / link)) << link;
}

TEST(write_file, writes_to_a_device_and_reports_a_full_one) {
  // Through links: a mistake here would replace the link, not the machine's device.
  const auto folder = empty_folder();
  std::filesystem::create_symlink("/dev/null", folder / "null");
  std::filesystem::create_symlink("/dev/full", folder / "full");
  if (!std::filesystem::is_character_file(folder / "full")) GTEST_SKIP() << "there is no /dev/full";
  write(folder / "null", "nobody reads this");
  try {
    write(folder / "full", "nobody stores this");
    FAIL() << "stored on a full device";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("full: cannot write: No space left on device"));
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(files_in(folder), 2);
}
TEST(write_file, writes_into_a_pipe_that_only_a_link_of_the_system_names) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write("/proc/self/fd/" + std::to_string(ends[1]), "through the pipe");
  char bytes[32] = {};
  EXPECT_EQ(::read(ends[0], bytes, sizeof bytes), 16);
  EXPECT_STREQ(bytes, "through the pipe");
  ::close(ends[0]), ::close(ends[1]);
}

TEST(write_file, refuses_a_folder) {
  const auto folder = empty_folder();
  EXPECT_THROW(write(folder, "x"), FileError);
  EXPECT_THROW(write(folder / "nowhere" / "x", "x"), FileError);
  EXPECT_EQ(files_in(folder), 0);
}

// Runs `write` in a child that the system kills at the `limit`-th byte of a file. Returns the
// signal.
template <class Write>
int signal_of_killed(rlim_t limit, const Write& write) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0}, small{limit, limit};
    (void)::setrlimit(RLIMIT_CORE, &none);
    (void)::setrlimit(RLIMIT_FSIZE, &small);
    (void)std::signal(SIGXFSZ, SIG_DFL);
    write();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

const std::vector<std::byte> large(1 << 20, std::byte{7});

TEST(write_file, leaves_nothing_if_the_program_is_killed) {
  const auto folder = empty_folder();
  write(folder / "a", "old");
  const auto rewrite = [&] { write_file(folder / "a", large); };
  ASSERT_EQ(signal_of_killed(1 << 16, rewrite), SIGXFSZ);
  EXPECT_EQ(content(folder / "a"), "old");
  // where files without a name do not exist, the next write clears up
  rewrite();
  EXPECT_EQ(content(folder / "a").size(), large.size());
  EXPECT_EQ(files_in(folder), 1);
}

TEST(write_file, leaves_the_old_file_if_the_disk_takes_no_more) {
  const auto folder = empty_folder();
  write(folder / "a", "old");
  const int killed_by = signal_of_killed(1 << 16, [&] {
    (void)std::signal(SIGXFSZ, SIG_IGN);  // then writing fails instead
    try {
      write_file(folder / "a", large);
    } catch (const FileError&) {
      ::raise(SIGUSR1);
    }
  });
  EXPECT_EQ(killed_by, SIGUSR1);
  EXPECT_EQ(content(folder / "a"), "old");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(new_file, removes_what_killed_programs_left_and_nothing_else) {
  using internal::NewFile;
  const auto folder = empty_folder();
  const auto write_partial = [&](const std::filesystem::path& target) {
    NewFile file(target, target.string(), NewFile::Name::partial);
    file.write(0, large);
    file.replace_target();
  };
  ASSERT_EQ(signal_of_killed(1 << 16, [&] { write_partial(folder / "a"); }), SIGXFSZ);
  EXPECT_EQ(files_in(folder), 1) << "a.<number>.partial";
  write(folder / "b.1.partial", "of another target");
  write(folder / "a.b.partial", "no number");
  std::ofstream(folder / "a.1.partial") << "killed before it was locked";
  {
    NewFile writing(folder / "a", "a", NewFile::Name::partial);
    writing.write(0, large);
    write(folder / "a", "meanwhile");
    EXPECT_EQ(files_in(folder), 4) << "who still writes keeps his file";
    writing.replace_target();
  }
  EXPECT_EQ(content(folder / "a").size(), large.size());
  EXPECT_EQ(files_in(folder), 3);

  write_partial(folder / "a");
  { const NewFile forgotten(folder / "a", "a", NewFile::Name::partial); }
  EXPECT_EQ(files_in(folder), 3);
}

TEST(new_file, has_no_name_before_it_is_complete) {
  const auto folder = empty_folder();
  internal::NewFile file(folder / "a", "a");
  file.write(0, large);
  if (files_in(folder) > 0) GTEST_SKIP() << "this file system has no files without a name";
  file.replace_target();
  EXPECT_EQ(content(folder / "a").size(), large.size());
}

}  // namespace
}  // namespace taper::io
