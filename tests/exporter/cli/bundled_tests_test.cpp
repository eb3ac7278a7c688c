// Calls that travel in a program with what they give: written, shown, run and cut off.
#include <gmock/gmock.h>

#include "taper/exporter/cli/kernel_table.h"
#include "taper/exporter/cli/taper.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/inspect/extras.h"
#include "taper/exporter/inspect/summary.h"
#include "taper/exporter/io/file.h"
#include "taper/schema/program_generated.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/support/checksums.h"
#include "taper/tests/support/throw_message.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::linear_model;
using tests::scratch_file;

inspect::ProgramFile loaded(std::vector<std::byte> bytes) {
  return {"test.taper", std::move(bytes), eager::all_kernels()};
}

/// y = s + 2 x, after which s is y; two tests of it.
std::vector<std::byte> program_with_tests(const ExportOptions& options = {}) {
  const Tensor s = eager::ones({2});
  s.set_name("s");
  Exporter exporter;
  exporter.method("forward",
                  [s](Tensor x) {
                    Tensor y = s + x * 2;
                    Tensor(s).copy_(y);
                    return y;
                  },
                  {input("x", {2})}, {"y"});
  exporter.test("forward", {eager::ones({2})}, "ones");
  exporter.test("forward", {eager::zeros({2})});
  return exporter.write(options);
}

TEST(bundled_tests, are_read_as_they_were_written) {
  const inspect::ProgramFile file = loaded(program_with_tests());
  const std::vector<io::BundledTest> tests = inspect::bundled_tests(file);
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_EQ(tests[0].method, "forward");
  EXPECT_EQ(tests[0].name, "ones");
  EXPECT_EQ(tests[0].inputs.at(0).sizes, (std::vector<int64_t>{2}));
  EXPECT_EQ(tests[0].outputs.at(0).values<float>()[1], 3);
  // each starts with the state's first value
  EXPECT_EQ(tests[1].outputs.at(0).values<float>()[1], 1);
  EXPECT_GT(tests[0].relative_tolerance, 0);
}

TEST(bundled_tests, are_left_out_where_they_are_large) {
  EXPECT_TRUE(inspect::bundled_tests(loaded(program_with_tests({.test_bytes = 15}))).empty());
  EXPECT_EQ(inspect::bundled_tests(loaded(program_with_tests({.test_bytes = 16}))).size(), 2u);
}

TEST(bundled_tests, are_refused_where_inputs_do_not_fit) {
  Exporter exporter;
  exporter.method("forward", [](Tensor x) { return x * 2; }, {input("x", {2})});
  EXPECT_THROW(exporter.test("forward", {eager::ones({3})}), ExportError);
  EXPECT_THROW(exporter.test("backward", {eager::ones({2})}), ExportError);
}

TEST(bundled_tests, can_be_cut_off_and_nothing_else_with_them) {
  const inspect::ProgramFile file = loaded(program_with_tests());
  const std::vector<std::byte> rest = inspect::without_extras(file);
  EXPECT_LT(rest.size(), file.bytes().size());
  const inspect::ProgramFile stripped = loaded(rest);
  EXPECT_TRUE(inspect::bundled_tests(stripped).empty());
  EXPECT_EQ(stripped.program().method_count(), 1);
  EXPECT_EQ(inspect::without_extras(stripped).size(), rest.size());
  // what was never there is not missed
  const std::vector<std::byte> plain = program_with_tests({.test_bytes = 0});
  EXPECT_EQ(inspect::without_extras(loaded(plain)), plain);
}

// The loader never looks at them, so whoever does must check them.
TEST(bundled_tests, survive_damage_of_every_byte) {
  const std::vector<std::byte> bytes = program_with_tests();
  const size_t begin = inspect::without_extras(loaded(bytes)).size();
  int refused = 0;
  for (size_t i = begin; i < bytes.size(); ++i)
    for (const int flip : {1, 0x80, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(flip);
      tests::write_checksums(damaged);
      try {
        (void)inspect::bundled_tests(loaded(damaged));
      } catch (const ExportError& e) {
        EXPECT_THAT(e.what(), HasSubstr("export it again"));
        ++refused;
      }
    }
  EXPECT_GT(refused, 100);
}

// A small file could ask for much memory.
TEST(bundled_tests, are_refused_where_they_share_bytes) {
  Exporter exporter;
  exporter.method("forward", [](Tensor x) { return x * 2; },
                  {input("x", {Dim::symbol("n", 1, 4096)})});
  exporter.test("forward", {eager::ones({4096})});
  for (int i = 0; i < 50; ++i) exporter.test("forward", {eager::ones({1})});
  std::vector<std::byte> bytes = exporter.write(ExportOptions{});
  EXPECT_EQ(inspect::bundled_tests(loaded(bytes)).size(), 51u);

  const inspect::ProgramFile file = loaded(bytes);
  for (const format::Segment* s : *file.program().table().segments()) {
    if (s->kind() != format::SegmentKind::extras) continue;
    const auto& tests = *flatbuffers::GetRoot<format::Extras>(bytes.data() + s->offset())->tests();
    const format::TensorData& large = *tests.Get(0)->inputs()->Get(0);
    for (uint32_t i = 1; i < tests.size(); ++i) {
      const format::TensorData& small = *tests.Get(i)->inputs()->Get(0);
      *const_cast<int64_t*>(small.sizes()->data()) = 4096;
      *const_cast<format::Piece*>(small.data()) = *large.data();
    }
  }
  tests::write_checksums(bytes);
  EXPECT_EXPORT_ERROR(inspect::bundled_tests(loaded(bytes)), "export it again");
}

TEST(taper_check, runs_the_tests_that_a_program_carries) {
  const std::string program = scratch_file("linear.taper").string();
  const Outcome exported = taper_command("export", linear_model(), "-o", program);
  ASSERT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("1 test "));
  for (const std::string& file : {program, linear_model()}) {
    const Outcome o = taper_command("check", file);
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_THAT(o.out, HasSubstr("ok    forward, div  "));
    EXPECT_THAT(o.out, HasSubstr("1 test passed"));
  }
  EXPECT_THAT(taper_command("inspect", program).out,
              HasSubstr("tests   1, which `taper check` runs\n  forward  example inputs  "));
  EXPECT_THAT(taper_command("inspect", program, "--json").out,
              HasSubstr("\"relative_tolerance\": 0.0001"));
}

TEST(taper_check, fails_where_a_test_expects_something_else) {
  std::vector<std::byte> bytes = program_with_tests();
  // the first expected output stands behind the first input
  const size_t begin = inspect::without_extras(loaded(bytes)).size();
  const float three = 3, four = 4;
  for (size_t i = begin; i + 4 <= bytes.size(); i += 4)
    if (std::memcmp(bytes.data() + i, &three, 4) == 0) std::memcpy(bytes.data() + i, &four, 4);
  tests::write_checksums(bytes);
  const std::string program = scratch_file("wrong.taper").string();
  io::write_file(program, bytes);
  const Outcome o = taper_command("check", program);
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.out, HasSubstr("WRONG forward, y  0.25 of the largest magnitude, more than 0.0001: "
                               "element 0 is 3, not 4"));
  EXPECT_THAT(o.err, HasSubstr("differ from its tests"));
  EXPECT_EQ(taper_command("check", program, "--tolerance", "0.3").code, success);
}

TEST(taper_check, refuses_a_tolerance_that_is_none) {
  for (const char* tolerance : {"nan", "-1", "small"})
    EXPECT_EQ(taper_command("check", linear_model(), "--tolerance", tolerance).code, usage)
        << tolerance;
}

TEST(taper_check, says_where_there_is_nothing_to_run) {
  const std::string program = scratch_file("linear.taper").string();
  EXPECT_EQ(taper_command("export", linear_model(), "-o", program, "--no-tests").code, success);
  const Outcome o = taper_command("check", program);
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("carries no test; give recorded calls"));
  EXPECT_THAT(taper_command("inspect", program).out, Not(HasSubstr("tests")));
}

TEST(taper_export, leaves_tests_out_of_an_array) {
  const std::string program = scratch_file("linear.taper").string();
  const std::string plain = scratch_file("plain.taper").string();
  ASSERT_EQ(taper_command("export", linear_model(), "-o", program).code, success);
  ASSERT_EQ(taper_command("export", linear_model(), "-o", plain, "--no-tests").code, success);
  const LinkedProgram linked = linked_program(program, "", Target("portable"));
  EXPECT_LT(linked.bytes.size(), std::filesystem::file_size(program));
  EXPECT_LE(linked.bytes.size(), std::filesystem::file_size(plain) + 128);
}

TEST(taper_export, writes_weights_in_halves) {
  const std::string program = scratch_file("halves.taper").string(),
                    weights = scratch_file("halves.weights.taper").string(),
                    model = tests::test_data("pt2/weights_of_all_kinds.pt2").string(),
                    calls = tests::test_data("pt2/weights_of_all_kinds.io.safetensors").string();
  ASSERT_EQ(taper_command("export", model, "-o", program).code, success);
  const auto whole = std::filesystem::file_size(program);
  for (const std::string dtype : {"f16", "bf16"}) {
    std::filesystem::remove(weights);
    const auto expect_checked = [&](const Outcome& exported) {
      ASSERT_EQ(exported.code, success) << exported.err;
      const Outcome check = taper_command("check", program, calls);
      EXPECT_EQ(check.code, success) << check.out << check.err;
      EXPECT_THAT(check.out, HasSubstr(dtype == "f16" ? "within 0.02" : "within 0.1"));
      EXPECT_EQ(taper_command("check", program).code, success);
    };
    expect_checked(
        taper_command("export", model, "-o", program, "--dtype", dtype, "--target", "host"));
    expect_checked(
        taper_command("export", model, "-o", program, "--dtype", dtype, "--weights", weights));
    EXPECT_THAT(taper_command("inspect", weights).out, HasSubstr("dense_" + dtype));
    expect_checked(taper_command("export", model, "-o", program, "--dtype", dtype));
    EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("dense_" + dtype));
    // 40 x 16 words, once for look-up and product, and two times 24 x 16 x 3 filters
    EXPECT_LE(std::filesystem::file_size(program), whole - 2 * (640 + 2 * 1152) + 1024);
  }
  const Outcome both = taper_command("export", model, "-o", program, "--dtype", "f16", "--exact");
  EXPECT_EQ(both.code, usage);
  EXPECT_EQ(taper_command("export", model, "-o", program, "--dtype", "f8").code, usage);
}

TEST(taper_export, says_what_it_made) {
  const std::string program = scratch_file("linear.taper").string();
  const std::string out = taper_command("export", linear_model(), "-o", program).out;
  for (const char* part : {"1 method", "forward(x: f32[x.0, ", "in 1..", "operators: 1 ",
                           "activations ", "lower bound", "constants ", "0 states"})
    EXPECT_THAT(out, HasSubstr(part));
}

// A program that an earlier version wrote. Its constants have no layout.
TEST(format_version_1, is_read_and_computes_what_it_computed) {
  const std::string program = tests::test_data("programs/version_1.taper").string();
  EXPECT_THAT(taper_command("inspect", program).out, HasSubstr("format 1"));
  const Outcome o = taper_command("check", program);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("1 test"));
}

}  // namespace
}  // namespace taper::cli
