#include <gmock/gmock.h>

#include <fstream>

#include "programs.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/support/peak_memory.h"
#include "taper/tests/support/sanitizers.h"
#include "test_kernels.h"
#include "written.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST(module, says_how_much_memory_it_cannot_have) {
  std::string message;
  ModuleOptions options;
  options.message = &message;

  ProgramFile large_batch = sums_program();
  large_batch.methods[0].symbols[0] = {1, int64_t{1} << 50,           0,
                                       0, SymbolSource::input_extent, NumberType::i64};
  Module model = Module::load(written(large_batch.bytes()), kernels, options).value();
  const std::vector<float> x(8);
  std::vector<float> y(2);
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::out_of_memory);
  EXPECT_THAT(model.message(), MatchesRegex(".*maximum, forward needs [0-9]{17} bytes"));
  EXPECT_EQ(model.execute("forward", {{x.data(), {2, 4}}}).error(), Error::out_of_memory);

  ProgramFile large_state;
  large_state.state("cache", {int64_t{1} << 50}, DType::f32);
  EXPECT_EQ(Module::load(written(large_state.bytes()), kernels, options).error(),
            Error::out_of_memory);
  EXPECT_THAT(message, HasSubstr("program.taper: the session needs 45035996273"));
}

#ifdef __linux__
// States are written when a session is created, and a method with fixed sizes uses all of its
// memory: memory that the machine does not have would end the process. With another setting of the
// system, that is what the system was told to do.
TEST(module, refuses_what_surely_needs_more_memory_than_the_machine_has) {
  std::ifstream setting("/proc/sys/vm/overcommit_memory");
  if (setting.get() != '0') GTEST_SKIP() << "the system promises more memory than it has";
  ProgramFile large_state;
  large_state.state("cache", {int64_t{1} << 42}, DType::f32);
  EXPECT_EQ(Module::load(written(large_state.bytes()), kernels).error(), Error::out_of_memory);

  ProgramFile large_method;
  MethodTables m;
  m.buffer(m.literal(int64_t{1} << 44));
  large_method.methods.push_back(m);
  Module model = Module::load(written(large_method.bytes()), kernels).value();
  EXPECT_EQ(model.run("forward", {}, {}), Error::out_of_memory);
  EXPECT_THAT(model.message(), MatchesRegex("forward needs [0-9]{14} bytes"));
}
#endif

// A bound costs address space: memory is that of the sizes which are run.
TEST(module, pays_for_the_batch_it_runs_and_not_for_the_largest) {
#ifdef TAPER_THREAD_SANITIZER
  GTEST_SKIP() << "the sanitizer needs the addresses itself";
#endif
  for (const int64_t largest : {int64_t{1} << 26, int64_t{1} << 40}) {
    ProgramFile p = sums_program();
    p.methods[0].symbols[0] = {1, largest, 0, 0, SymbolSource::input_extent, NumberType::i64};
    const std::string path = written(p.bytes());
    const size_t before = tests::peak_memory();
    Module model = Module::load(path, kernels).value();
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> y(2);
    ASSERT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::ok) << model.message();
    EXPECT_THAT(y, ElementsAre(30, 78));
    EXPECT_LT(tests::peak_memory() - before, size_t{16} << 20) << "of a region of 2 GiB and more";
  }
}

}  // namespace
}  // namespace taper::test
