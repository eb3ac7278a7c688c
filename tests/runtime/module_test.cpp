#include "taper/runtime/extension/module/module.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "../support/data.h"
#include "../support/environment.h"
#include "programs.h"
#include "taper/runtime/extension/module/message.h"
#include "test_kernels.h"
#include "written.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

TEST(module, loads_and_runs_in_three_lines) {
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
  std::array<float, 2> sums;
  Error error = model.forward({{x.data(), {2, 4}}}, {sums});
  EXPECT_EQ(error, Error::ok) << model.message();
  EXPECT_THAT(sums, ElementsAre(30, 78));
}

TEST(module, gives_results_with_memory_of_their_own) {
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
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
  ModuleOptions options;
  options.message = &message;
  EXPECT_EQ(Module::load("/nowhere/model.taper", kernels, options).error(),
            Error::invalid_argument);
  EXPECT_EQ(message, "/nowhere/model.taper: No such file or directory");
  const std::string folder = tests::scratch_file("").string();
  EXPECT_EQ(Module::load(folder, kernels, options).error(), Error::invalid_argument);
  EXPECT_EQ(message, folder + ": is a folder, not a file");

  ProgramFile unknown = sums_program();
  unknown.kernels[1].op = "aten::special_airy_ai";
  EXPECT_EQ(Module::load(written(unknown.bytes()), kernels, options).error(),
            Error::missing_kernel);
  EXPECT_THAT(message, HasSubstr("aten::special_airy_ai"));

  Module model = Module::load(written(sums_program().bytes()), kernels, options).value();
  const std::vector<double> doubles(8);
  const std::vector<float> x(40);
  std::vector<float> y(3);
  EXPECT_EQ(model.forward({{doubles.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(),
              StrEq("x (input 0): an input is f64, and must be f32; given f64 (2, 4)"));
  EXPECT_EQ(model.forward({Input::number(1.5)}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(),
              StrEq("x (input 0) takes a tensor, not a number: f32 of 2 dimensions"));
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y has 8 bytes, the buffer has 12"));
  EXPECT_EQ(model.forward({}, {y}), Error::invalid_argument);
  EXPECT_EQ(model.run("backward", {}, {}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("backward"));
}

#if defined(__x86_64__)
TEST(module, refuses_a_cpu_feature_that_does_not_exist) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const tests::Environment wrong("TAPER_CPU", "avx1024");
  const Result<Module> model = Module::load(written(sums_program().bytes()), kernels, options);
  EXPECT_EQ(model.error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("TAPER_CPU is avx1024; it can be portable, or names"));
}
#endif

TEST(module, names_the_range_that_a_batch_is_outside) {
  ProgramFile p = sums_program();
  p.methods[0].symbol_names = {"batch"};
  Module model = Module::load(written(p.bytes()), kernels).value();
  const std::vector<float> x(40);
  std::vector<float> y(10);
  EXPECT_EQ(model.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), StrEq("x (input 0): batch = 10 is outside 1..8; given f32 (10, 4)"));
  EXPECT_EQ(model.forward({{x.data(), {0, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("batch = 0 is outside 1..8"));
  EXPECT_EQ(model.forward({{x.data(), {2, 5}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("x (input 0): dimension 1 is 5, and must be 4"));

  Module nameless = Module::load(written(sums_program().bytes()), kernels).value();
  EXPECT_EQ(nameless.forward({{x.data(), {10, 4}}}, {y}), Error::invalid_argument);
  EXPECT_THAT(nameless.message(),
              StrEq("x (input 0): a size is 10, and must lie in 1..8; given f32 (10, 4)"));
}

// forward(a: f32[2], b: f32[2]) -> a + b
ProgramFile two_inputs_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t two = m.literal(2);
  const uint32_t a = io_tensor(m, {two}), b = io_tensor(m, {two}), y = io_tensor(m, {two});
  m.run(add, {m.tensor(a), m.tensor(b), m.tensor(y)});
  m.input("a", a), m.input("b", b);
  m.output("y", y);
  return p;
}

TEST(module, names_the_input_that_takes_a_number) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.inputs.push_back({"input 0", none, m.symbol(format::SymbolSource::input_number, 1, 0, 1, 4),
                      format::NumberType::i64});
  Module model = Module::load(written(p.bytes()), kernels).value();
  const std::array<float, 8> x = {};
  std::array<float, 2> y;
  const auto refused = [&](const Input& number) {
    EXPECT_EQ(model.forward({{x.data(), {2, 4}}, number}, {y}), Error::invalid_argument);
    return model.message();
  };
  EXPECT_EQ(refused({x.data(), {2, 4}}),
            "input 0 (input 1) takes a number, not a tensor; given f32 (2, 4)");
  EXPECT_EQ(refused(Input::number(1.5)),
            "input 0: input 1 takes an integer, not a number with a fraction");
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}, Input::number(int64_t{3})}, {y}), Error::ok)
      << model.message();
}

TEST(module, takes_as_many_inputs_as_the_method_has) {
  Module model = Module::load(written(two_inputs_program().bytes()), kernels).value();
  const std::array<float, 2> x = {1, 2};
  const Input input(x.data(), {2});
  std::array<float, 2> y = {7, 7};
  for (const size_t count : {0, 1, 3}) {
    const std::vector<Input> inputs(count, input);
    const std::string why = "forward takes 2 inputs, not " + std::to_string(count);
    EXPECT_EQ(model.forward(inputs, {y}), Error::invalid_argument);
    EXPECT_EQ(model.message(), why);
    EXPECT_EQ(model.execute("forward", inputs).error(), Error::invalid_argument);
    EXPECT_EQ(model.message(), why);
  }
  EXPECT_THAT(y, ElementsAre(7, 7)) << "nothing was computed";
  EXPECT_EQ(model.forward({input, input}, {y}), Error::ok) << model.message();
  EXPECT_THAT(y, ElementsAre(2, 4));
}

TEST(module, writes_an_output_to_a_buffer_of_its_dtype_only) {
  Module model = Module::load(written(two_inputs_program().bytes()), kernels).value();
  const std::array<float, 2> x = {1, 2};
  const std::vector<Input> inputs(2, Input(x.data(), {2}));
  std::array<int32_t, 2> integers = {7, 7};
  EXPECT_EQ(model.forward(inputs, {integers}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y is f32, the buffer is i32"));
  EXPECT_THAT(integers, ElementsAre(7, 7));
  std::array<float, 1> small = {7};
  EXPECT_EQ(model.forward(inputs, {small}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("output y has 8 bytes, the buffer has 4"));
  std::array<float, 2> y;
  EXPECT_EQ(model.forward(inputs, {y, y}), Error::invalid_argument);
  EXPECT_THAT(model.message(), HasSubstr("forward has 1 outputs"));
}

TEST(module, copies_no_number_to_a_buffer) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.outputs.push_back({"batch", none, m.of_symbol(0), format::NumberType::i64});
  Module model = Module::load(written(p.bytes()), kernels).value();
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 2> sums;
  std::array<int64_t, 1> batch = {7};
  const std::vector<Input> inputs = {{x.data(), {2, 4}}};
  EXPECT_EQ(model.forward(inputs, {sums, batch}), Error::invalid_argument);
  EXPECT_EQ(model.message(), "output batch is a number: use execute");
  EXPECT_THAT(batch, ElementsAre(7));
  const std::vector<OwnedTensor> results = model.execute("forward", inputs).value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].dtype, DType::i64);
  EXPECT_EQ(*results[1].data<int64_t>(), 2);
}

TEST(module, verifies_the_weights_if_it_is_told_to) {
  ProgramFile p;
  p.state("weight", {4}, DType::f32, p.constant<float>("initial", {4}, {1, 2, 3, 4}));
  AlignedBytes file = p.bytes();
  std::string message;
  ModuleOptions options;
  options.verify = true;
  options.message = &message;
  EXPECT_TRUE(Module::load(written(file), kernels, options).ok()) << message;

  const float three = 3;
  std::byte* at = file.data();
  while (std::memcmp(at, &three, 4) != 0) at += 4;
  *at ^= std::byte{1};
  const std::string path = written(file);
  EXPECT_TRUE(Module::load(path, kernels).ok()) << "weights are not read at load";
  for (const Loading loading : {Loading::map, Loading::read}) {
    options.loading = loading;
    EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_program);
    EXPECT_THAT(message, HasSubstr("program.taper: the checksum of the weights ("));
    EXPECT_THAT(message, HasSubstr("the file is damaged; copy it again"));
  }
  const Span<const std::byte> bytes = file;
  EXPECT_EQ(Module::load(bytes, kernels, options).error(), Error::invalid_program);
}

TEST(module, that_read_its_file_does_not_care_what_becomes_of_it) {
  const std::string path = written(sums_program().bytes());
  ModuleOptions options;
  options.loading = Loading::read;
  Module model = Module::load(path, kernels, options).value();
  std::filesystem::resize_file(path, 0);  // `forward` reads the tables of its method
  const std::array<float, 8> x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 2> sums;
  EXPECT_EQ(model.forward({{x.data(), {2, 4}}}, {sums}), Error::ok) << model.message();
  EXPECT_THAT(sums, ElementsAre(30, 78));
  EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
}

TEST(module, refuses_what_is_no_file_and_does_not_wait_for_it) {
  const std::string pipe = written(sums_program().bytes()) + ".pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string message;
  ModuleOptions options;
  options.message = &message;
  for (const Loading loading : {Loading::map, Loading::read}) {
    options.loading = loading;
    for (const std::string& path : {pipe, std::string("/tmp"), std::string("/dev/zero")}) {
      EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
      EXPECT_EQ(message,
                path + (path == "/tmp" ? ": is a folder, not a file" : ": is not a regular file"));
    }
  }
}

// As docs/running.md says how to replace a file.
TEST(module, keeps_the_file_that_it_mapped_when_another_takes_its_name) {
  const std::string path = written(sums_program().bytes());
  Module old = Module::load(path, kernels).value();
  ProgramFile other = sums_program();
  other.methods[0].name = "other";
  std::filesystem::rename(written(other.bytes(), "new"), path);
  EXPECT_THAT(Module::load(path, kernels).value().method_names(), ElementsAre("other"));
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<float, 1> sums;
  EXPECT_EQ(old.forward({{x.data(), {1, 4}}}, {sums}), Error::ok) << old.message();
}

TEST(module, formats_errors_for_people) {
  ErrorInfo info;
  info.error = Error::invalid_argument, info.instruction = 3,
  info.message = "index {} is outside [0, {})";
  info.values[0] = 7, info.values[1] = 5, info.source = "model.cpp:10", info.subject = "take";
  EXPECT_EQ(describe(info), "take (model.cpp:10, instruction 3): index 7 is outside [0, 5)");
  info.message = nullptr;
  EXPECT_EQ(describe(info), "take (model.cpp:10, instruction 3): an argument does not fit");
}

TEST(module, reads_and_writes_states_by_path) {
  ProgramFile p;
  p.state("encoder.weight", {2}, DType::f32, p.constant<float>("initial", {2}, {1, 2}));
  Module model = Module::load(written(p.bytes()), kernels).value();
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

// As many bytes of another dtype would be other numbers.
TEST(module, gives_a_state_a_value_of_its_dtype_only) {
  ProgramFile p;
  p.state("weight", {2}, DType::f32, p.constant<float>("initial", {2}, {1, 2}));
  Module model = Module::load(written(p.bytes()), kernels).value();
  for (const DType dtype : {DType::i32, DType::f16, DType::f64, DType::i8}) {
    OwnedTensor value{dtype, {8 / size_bytes(dtype)}, std::vector<std::byte>(8, std::byte{1})};
    EXPECT_EQ(model.set_state("weight", value), Error::invalid_argument);
    EXPECT_EQ(model.message(), std::string("state weight has 8 bytes of f32, the "
                                           "value 8 of ") +
                                   name_of(dtype));
  }
  const OwnedTensor w = std::move(model.state("weight").value());
  EXPECT_EQ(w.data<float>()[0], 1.0f);
  EXPECT_EQ(w.data<float>()[1], 2.0f);
}

}  // namespace
}  // namespace taper::test
