// `taper compare`.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "taper/exporter/cli/taper.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::scratch_file;

template <class... T>
Outcome compare_command(const T&... arguments) {
  return taper_command("compare", arguments...);
}

void expect_failure(const Outcome& outcome, const std::string& why) {
  EXPECT_EQ(outcome.code, failure) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(why));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

/// The model of tests/data, its recorded call, and a program made of it.
const std::string model = tests::test_data("pt2/v2_9_linear.pt2").string(),
                  recorded = tests::test_data("pt2/v2_9_linear.io.safetensors").string();
std::string program() {
  const std::string path = scratch_file("linear.taper").string();
  std::ostringstream out, err;
  EXPECT_EQ(run({"export", model, "--exact", "-o", path}, out, err), success) << err.str();
  return path;
}

bool reads_models() {
  std::ostringstream out, err;
  return run({"inspect", model}, out, err) == success;
}

TEST(taper_compare, finds_a_program_equal_to_its_model) {
  if (!reads_models()) GTEST_SKIP() << "this build does not read .pt2";
  const Outcome o = compare_command(model, program());
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("inputs: the example inputs of " + model));
  EXPECT_THAT(o.out, HasSubstr("every node gives the same"));
  EXPECT_THAT(o.out, HasSubstr("all within 0.0001"));
}

TEST(taper_compare, takes_inputs_and_outputs_of_recorded_calls) {
  if (!reads_models()) GTEST_SKIP() << "this build does not read .pt2";
  for (const std::string& other : {model, program()}) {
    for (const bool first : {true, false}) {
      const Outcome o = first ? compare_command(recorded, other) : compare_command(other, recorded);
      EXPECT_EQ(o.code, success) << o.err;
      EXPECT_THAT(o.out, HasSubstr("inputs: recorded in " + recorded));
      EXPECT_THAT(o.out, HasSubstr("only outputs are compared"));
    }
  }
}

TEST(taper_compare, shows_every_node_in_order_if_asked) {
  const std::string a = tests::classifier().string(), x = npy("x.npy", {1, 2}, {1, 0});
  const Outcome some = compare_command(a, a, "--input", x),
                all = compare_command(a, a, "--input", x, "--all");
  EXPECT_THAT(some.out, Not(HasSubstr("addmm")));
  EXPECT_THAT(all.out, HasSubstr("addmm"));
  EXPECT_EQ(all.code, success);
}

TEST(taper_compare, says_that_inputs_are_random) {
  const std::string a = tests::classifier().string();
  const Outcome o = compare_command(a, a);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(
      o.out,
      HasSubstr("inputs: random numbers (always the same), zeros for integers: x: f32 (1, 2)"));
}

TEST(taper_compare, fails_if_an_output_is_beyond_the_tolerance) {
  const std::string a = tests::classifier().string(), x = npy("x.npy", {1, 2}, {1, 0});
  const std::string wrong = npy("wrong.npy", {1, 3}, {1, 5.01f, 0});
  const Outcome o = compare_command(wrong, a, "--input", x);
  expect_failure(o, "beyond the tolerance of 0.0001");
  EXPECT_THAT(o.out, HasSubstr("scores"));
  EXPECT_EQ(compare_command(wrong, a, "--input", x, "--tolerance", "0.01").code, success);
  EXPECT_EQ(compare_command(npy("right.npy", {1, 3}, {1, 5, 0}), a, "--input", x).code, success);
}

TEST(taper_compare, names_what_is_no_number) {
  const std::string a = tests::classifier().string(), x = npy("x.npy", {1, 2}, {1, 0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Outcome o = compare_command(npy("nan.npy", {1, 3}, {1, nan, 0}), a, "--input", x);
  expect_failure(o, "beyond");
  EXPECT_THAT(o.out, HasSubstr("element 1 is 5, not nan"));
}

TEST(taper_compare, finds_outputs_of_a_file_by_their_names) {
  const std::string a = tests::classifier().string(), x = npy("x.npy", {1, 2}, {1, 0});
  const float scores[] = {1, 5, 0};
  const auto file = scratch_file("outputs.safetensors");
  io::SafeTensors content;
  content.tensors["scores"] = io::Array::of<float>({1, 3}, std::span(scores));
  content.tensors["other\x1b[2J"] = io::Array::of<float>({3}, std::span(scores));
  io::write_safetensors(file, content);
  const Outcome o = compare_command(file.string(), a, "--input", x);
  EXPECT_EQ(o.code, success) << o.err;

  content.tensors.erase("scores");
  io::write_safetensors(file, content);
  const Outcome none = compare_command(file.string(), a, "--input", x);
  expect_failure(none, "the outputs cannot be matched");
  EXPECT_THAT(none.err, Not(HasSubstr("\x1b")));
}

TEST(taper_compare, refuses_files_of_other_kinds_by_name) {
  const std::string a = tests::classifier().string();
  const auto text = scratch_file("x.onnx"), cut = scratch_file("cut.taper"),
             no_model = scratch_file("no.pt2"), no_tensors = scratch_file("no.safetensors");
  for (const auto& path : {text, cut, no_model, no_tensors}) std::ofstream(path) << "hello";
  expect_failure(compare_command(a, text.string()), "give a PyTorch model (.pt2)");
  for (const auto& path : {cut, no_model, no_tensors}) {
    expect_failure(compare_command(a, path.string()), path.string());
    expect_failure(compare_command(path.string(), a), path.string());
  }
  expect_failure(compare_command(a, "/nowhere/x.taper"), "/nowhere/x.taper");
  expect_failure(compare_command("/nowhere/x.npy", a), "/nowhere/x.npy");
}

TEST(taper_compare, refuses_inputs_that_do_not_fit) {
  const std::string a = tests::classifier().string();
  expect_failure(compare_command(a, a, "--input", npy("x.npy", {1, 3}, {1, 0, 0})),
                 "does not accept f32 (1, 3); dimension 1 must be 2");
  expect_failure(compare_command(a, a, "--input", "y=1"), "forward has no input y");
  const std::string outputs = npy("y.npy", {1, 3}, {1, 5, 0});
  expect_failure(compare_command(outputs, a), "y.npy records no inputs");
  const std::string counter = tests::counter().string();
  expect_failure(compare_command(a, counter), "choose a method with --method");
}

TEST(taper_compare, refuses_programs_with_other_inputs_and_outputs) {
  const std::string a = tests::classifier().string();
  const std::string wide =
      tests::write_program("wide.taper",
                           {"graph forward\ninput \"x\" = %x: f32[1, 4]\n%y: f32[1, 4] = "
                            "mul.Scalar(%x, 2)\noutput \"y\" = %y\n"})
          .string();
  expect_failure(compare_command(a, wide), "input x: f32[1, 4] does not accept f32 (1, 2)");
  const std::string two =
      tests::write_program("two.taper",
                           {"graph forward\ninput \"x\" = %x: f32[1, 2]\n%y: f32[1, 2] = "
                            "mul.Scalar(%x, 2)\noutput \"y\" = %y\noutput \"x\" = %x\n"})
          .string();
  expect_failure(compare_command(a, two), "the outputs cannot be matched");
}

TEST(taper_compare, refuses_a_tolerance_that_is_none) {
  const std::string a = tests::classifier().string();
  for (const char* tolerance : {"nan", "-1", "small"})
    EXPECT_EQ(compare_command(a, a, "--tolerance", tolerance).code, usage) << tolerance;
  EXPECT_EQ(compare_command(a).code, usage);
}

}  // namespace
}  // namespace taper::cli
