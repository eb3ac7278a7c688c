#include "taper/runtime/extension/module/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "../support/data.h"
#include "programs.h"
#include "taper/runtime/extension/module/message.h"

namespace taper::test {
namespace {

using format::NumberType;
using format::SymbolSource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string written(const AlignedBytes& file) {
  const std::string path = tests::scratch_file("program.taper").string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return path;
}

ModuleOptions with_test_kernels() {
  ModuleOptions options;
  options.kernels = kernels;
  return options;
}

TEST(module, loads_and_runs_in_three_lines) {
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  Module model = Module::load(written(sums_program().bytes()), with_test_kernels()).value();
  std::array<float, 2> sums;
  Error error = model.forward({{x.data(), {2, 4}}}, {sums});
  EXPECT_EQ(error, Error::ok) << model.message();
  EXPECT_THAT(sums, ElementsAre(30, 78));
}

TEST(module, gives_results_with_memory_of_their_own) {
  Module model = Module::load(written(sums_program().bytes()), with_test_kernels()).value();
  EXPECT_THAT(model.method_names(), ElementsAre("forward"));
  const std::vector<float> x(12, 1.0f);
  Result<std::vector<OwnedTensor>> results = model.execute("forward", {{x.data(), {3, 4}}});
  ASSERT_TRUE(results.ok()) << model.message();
  const OwnedTensor& y = results.value()[0];
  EXPECT_THAT(y.sizes, ElementsAre(3));
  EXPECT_EQ(y.data<float>()[2], 12.0f);
}

TEST(module, says_in_words_what_is_wrong) {
  std::string message;
  ModuleOptions options = with_test_kernels();
  options.message = &message;
  EXPECT_EQ(Module::load("/nowhere/model.taper", options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("/nowhere/model.taper: No such file"));

  ProgramFile unknown = sums_program();
  unknown.kernels[1].op = "aten::special_airy_ai";
  EXPECT_EQ(Module::load(written(unknown.bytes()), options).error(), Error::missing_kernel);
  EXPECT_THAT(message, HasSubstr("aten::special_airy_ai"));

  Module model = Module::load(written(sums_program().bytes()), options).value();
  const std::vector<double> doubles(8);
  const std::vector<float> x(40);
  std::vector<float> y(3);
  EXPECT_EQ(model.forward({{doubles.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("x: an input is f64, and must be f32"));
  EXPECT_EQ(model.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("10"));
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y has 8 bytes, the buffer has 12"));
  EXPECT_EQ(model.forward({}, {y}), Error::invalid_argument);
  EXPECT_EQ(model.run("backward", {}, {}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("backward"));
}

// A few hundred bytes can ask for any amount of memory.
TEST(module, says_how_much_memory_it_cannot_have) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends the program instead";
#endif
  std::string message;
  ModuleOptions options = with_test_kernels();
  options.message = &message;

  ProgramFile large_batch = sums_program();
  large_batch.methods[0].symbols[0] = {1, int64_t{1} << 50,           0,
                                       0, SymbolSource::input_extent, NumberType::i64};
  Module model = Module::load(written(large_batch.bytes()), options).value();
  const std::vector<float> x(8);
  std::vector<float> y(2);
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::out_of_memory);
  EXPECT_THAT(model.message(), MatchesRegex(".*maximum, forward needs [0-9]{17} bytes"));
  EXPECT_EQ(model.execute("forward", {{x.data(), {2, 4}}}).error(), Error::out_of_memory);

  ProgramFile large_state;
  large_state.state("cache", {int64_t{1} << 50}, DType::f32);
  EXPECT_EQ(Module::load(written(large_state.bytes()), options).error(), Error::out_of_memory);
  EXPECT_THAT(message, HasSubstr("program.taper: out_of_memory: the session needs 45035996273"));
}

TEST(module, formats_errors_for_people) {
  ErrorInfo info;
  info.error = Error::invalid_argument, info.instruction = 3,
  info.message = "index {} is outside [0, {})";
  info.values[0] = 7, info.values[1] = 5, info.source = "model.cpp:10", info.subject = "take";
  EXPECT_EQ(describe(info),
            "invalid_argument: take (model.cpp:10, instruction 3): index 7 is outside [0, 5)");
}

TEST(module, reads_and_writes_states_by_path) {
  ProgramFile p;
  p.state("encoder.weight", {2}, DType::f32, p.constant<float>("initial", {2}, {1, 2}));
  Module model = Module::load(written(p.bytes()), with_test_kernels()).value();
  EXPECT_THAT(model.state_names(), ElementsAre("encoder.weight"));
  OwnedTensor w = std::move(model.state("encoder.weight").value());
  EXPECT_EQ(w.data<float>()[1], 2.0f);
  const float changed[] = {3, 4};
  std::memcpy(w.bytes.data(), changed, 8);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::ok);
  EXPECT_EQ(model.state("encoder.weight").value().data<float>()[0], 3.0f);
  EXPECT_EQ(model.state("decoder.weight").error(), Error::invalid_argument);
  w.bytes.resize(4);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("has 8 bytes of f32, the value 4 of f32"));
  w.bytes.resize(8);
  EXPECT_EQ(model.set_state("encoder.weight", w), Error::ok);
  EXPECT_EQ(model.message(), "");
}

}  // namespace
}  // namespace taper::test
