#include "taper/exporter/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

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

TEST(write_file, refuses_a_folder) {
  const auto folder = empty_folder();
  EXPECT_THROW(write(folder, "x"), FileError);
  EXPECT_THROW(write(folder / "nowhere" / "x", "x"), FileError);
  EXPECT_EQ(files_in(folder), 0);
}

}  // namespace
}  // namespace taper::io
