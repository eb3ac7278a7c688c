// Stored programs stay readable: those in fuzz/corpus/program load and run.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "taper/runtime/extension/module/module.h"

namespace taper {
namespace {

TEST(corpus, holds_programs_that_load_and_run) {
  int files = 0, methods = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TAPER_CORPUS)) {
    if (!entry.is_regular_file()) continue;  // those of `hostile` are refused
    const std::string path = entry.path().string();
    ++files;
    std::string why;
    ModuleOptions options;
    options.message = &why;
    Result<Module> module = Module::load(path, options);
    ASSERT_TRUE(module.ok()) << path << ": " << why;
    EXPECT_EQ(module->program().verify_segments(), Error::ok) << path;
    for (const std::string& name : module->method_names()) {
      Result<Method> method = module->method(name);
      ASSERT_TRUE(method.ok()) << path << ": " << module->message();
      for (index_t i = 0; i < method->input_count(); ++i)
        std::memset(method->input(i).data, 0, static_cast<size_t>(method->input(i).size_bytes()));
      EXPECT_EQ(method->execute(), Error::ok) << path << ": " << name;
      ++methods;
    }
  }
  EXPECT_GE(files, 9);
  EXPECT_GE(methods, 11);
}

}  // namespace
}  // namespace taper
