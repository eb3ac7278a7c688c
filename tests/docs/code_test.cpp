// The blocks of C++ on the pages run in a folder of their own, which has the files that they name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

class PageFolder : public testing::Environment {
 public:
  void SetUp() override {
    fs::copy(DOCS_FILES, folder_, fs::copy_options::recursive);
    fs::create_directory_symlink(fs::path(TAPER_SOURCE_FOLDER) / "tests", folder_ / "tests");
    fs::create_directory_symlink(fs::path(TAPER_SOURCE_FOLDER) / "examples", folder_ / "examples");
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }

 private:
  const fs::path folder_ =
      fs::temp_directory_path() / ("taper_pages_" + std::to_string(::getpid()));
};

const testing::Environment* const page_folder = testing::AddGlobalTestEnvironment(new PageFolder);

}  // namespace
