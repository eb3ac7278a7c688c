// Where tests find their files.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

namespace taper::tests {

/// A file or folder of tests/data, which is part of the repository.
inline std::filesystem::path test_data(const std::string& path) {
  return std::filesystem::path(TAPER_TEST_DATA) / path;
}

/// A file or folder of the golden results, which are too large for the repository: below the
/// environment variable TAPER_DATA, by default `shared/data` beside the checkout. Where they are
/// not there, the few cases of them in tests/data/golden; empty if there are none of this name.
inline std::filesystem::path golden_data(const std::string& path) {
  const char* chosen = std::getenv("TAPER_DATA");
  const std::filesystem::path folder = chosen != nullptr ? chosen : TAPER_GOLDEN_DATA;
  if (!folder.empty() && std::filesystem::exists(folder / path)) return folder / path;
  const std::filesystem::path shipped = test_data("golden") / path;
  return std::filesystem::exists(shipped) ? shipped : std::filesystem::path();
}

/// A file of this test's own, in a folder of its own below the system's temporary one.
inline std::filesystem::path scratch_file(const std::string& name) {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = std::filesystem::temp_directory_path() /
                      ("taper_" + std::string(info->test_suite_name()) + "_" + info->name());
  std::filesystem::create_directories(folder);
  return folder / name;
}

}  // namespace taper::tests

/// Declares `name` as the path of golden data, or skips the test and says loudly what is missing.
#define TAPER_GOLDEN_DATA_OR_SKIP(name, file)                             \
  const std::filesystem::path name = ::taper::tests::golden_data(file);   \
  if (name.empty()) {                                                     \
    std::cerr << "SKIPPED, nothing was compared: golden data '" << (file) \
              << "' is not there. Set TAPER_DATA to its folder.\n";       \
    GTEST_SKIP() << "needs golden data '" << (file) << "'";               \
  }                                                                       \
  static_assert(true, "ends with a semicolon")
