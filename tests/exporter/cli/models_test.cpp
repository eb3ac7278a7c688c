// Models of PyTorch: exported, checked, and run as they are.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using tests::linear_model;
using tests::scratch_file;

std::string linear_calls() { return tests::test_data("pt2/v2_9_linear.io.safetensors").string(); }

TEST(taper_export, says_which_state_two_models_have_in_common) {
  const auto both = [](const char* name) {
    const std::string model = tests::test_data(std::string("pt2/") + name).string(),
                      first = scratch_file("first.pt2"), second = scratch_file("second.pt2");
    std::filesystem::copy_file(model, first, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(model, second, std::filesystem::copy_options::overwrite_existing);
    return taper_command("export", first, second, "-o", scratch_file("both.taper")).out;
  };
  EXPECT_THAT(both("position_in_cache.pt2"),
              HasSubstr("methods first, second share the state cache; export the models to"));
  EXPECT_THAT(both("v2_9_linear.pt2"), Not(HasSubstr("share the state")));
}

TEST(taper_export, makes_a_program_of_a_model_that_gives_its_results) {
  const std::string program = tests::scratch_file("linear.taper").string();
  const Outcome exported = taper_command("export", linear_model(), "-o", program);
  EXPECT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("forward(x: f32[x.0, "));
  for (const std::string& file : {program, linear_model()}) {
    const Outcome checked = taper_command("check", file, linear_calls());
    EXPECT_EQ(checked.code, success) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("ok    div"));
  }
}

TEST(taper_export, prints_the_graph_after_a_pass) {
  const std::string program = scratch_file("linear.taper").string();
  const Outcome o =
      taper_command("export", linear_model(), "-o", program, "--print-after", "fuse_pointwise");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("# after fuse_pointwise: "));
  EXPECT_THAT(o.out, HasSubstr("\ngraph forward\n"));
  const Outcome wrong =
      taper_command("export", linear_model(), "-o", program, "--print-after", "fuse");
  EXPECT_EQ(wrong.code, usage);
  EXPECT_THAT(wrong.err, HasSubstr("fold_constants"));
  EXPECT_THAT(wrong.err, HasSubstr("fuse_pointwise"));
}

TEST(taper_export, says_that_a_pass_to_print_did_not_run) {
  const std::string program = scratch_file("linear.taper").string();
  const Outcome exact = taper_command("export", linear_model(), "-o", program, "--exact",
                                      "--print-after", "fold_batch_norm"),
                f32 = taper_command("export", linear_model(), "-o", program, "--print-after",
                                    "halve_weights");
  EXPECT_THAT(exact.out,
              HasSubstr("fold_batch_norm: this pass did not run: --exact leaves it out"));
  EXPECT_THAT(f32.out, HasSubstr("halve_weights: this pass did not run: it needs --dtype"));
  const Outcome kernels =
      taper_command("export", linear_model(), "-o", program, "--print-after", "delegate");
  EXPECT_THAT(kernels.out, HasSubstr("delegate: this pass did not run: it needs --backend"));
}

TEST(taper_export, refuses_a_backend_that_this_build_lacks) {
  const std::string program = scratch_file("linear.taper").string();
  for (const char* option : {"--backend", "--require"}) {
    const Outcome o = taper_command("export", linear_model(), "-o", program, option, "tpu");
    EXPECT_EQ(o.code, failure);
    EXPECT_THAT(o.err, HasSubstr("there is no backend tpu in this build; it has none"));
    EXPECT_FALSE(std::filesystem::exists(program));
  }
  const Outcome both =
      taper_command("export", linear_model(), "-o", program, "--backend", "tpu", "--exact");
  EXPECT_EQ(both.code, usage);
}

TEST(taper_export, plans_for_a_target_and_its_memory) {
  const std::string program = scratch_file("linear.taper").string();
  for (const char* target : {"host", "x86-64", "x86-64-v3", "arm64", "cortex-m3", "portable"}) {
    const Outcome o = taper_command("export", linear_model(), "-o", program, "--target", target);
    EXPECT_EQ(o.code, success) << target << o.err;
    EXPECT_THAT(taper_command("inspect", program).out, HasSubstr(target));
  }
  const Outcome unknown = taper_command("export", linear_model(), "-o", program, "--target", "vax");
  EXPECT_EQ(unknown.code, usage);
  EXPECT_THAT(unknown.err, HasSubstr("x86-64-v4"));
  const Outcome small = taper_command("export", linear_model(), "-o", program, "--memory", "1");
  EXPECT_EQ(small.code, failure);
  EXPECT_THAT(small.err, HasSubstr("but the target has 1"));
  EXPECT_THAT(small.err, HasSubstr("bounds (--dim)"));
  for (const char* none : {"-1", "0"})
    EXPECT_EQ(taper_command("export", linear_model(), "-o", program, "--memory", none).code, usage);
}

TEST(taper_export, says_what_it_needs_for_a_model) {
  EXPECT_THAT(taper_command("export", linear_model()).err, HasSubstr("--output"));
  EXPECT_THAT(taper_command("export", linear_model(), "-o", "x.taper", "--dim", "s77").err,
              HasSubstr("NAME=LOW..HIGH"));
  EXPECT_THAT(taper_command("export", linear_model(), "-o", "x.taper", "--model", "encoder").err,
              HasSubstr("choose one of model"));
  EXPECT_THAT(taper_command("export", "absent.pt2", "-o", "x.taper").err, HasSubstr("absent.pt2"));
  EXPECT_THAT(taper_command("export", "model.pt", "-o", "x.taper").err, HasSubstr("is not a .pt2"));
  for (const char* command : {"run", "inspect", "profile", "check", "export"})
    EXPECT_THAT(taper_command(command, "model.pth").err,
                HasSubstr("save it with torch.export.save"));
  EXPECT_THAT(taper_command("export", linear_model(), linear_model(), "-o", "x.taper").err,
              HasSubstr("rename one"));
}
TEST(taper_export, refuses_empty_values) {
  for (const char* option : {"-o", "--weights", "--kernels", "--model", "--dim"}) {
    const Outcome o = taper_command("export", linear_model(), "-o", "x.taper", option, "");
    EXPECT_EQ(o.code, usage) << option;
    EXPECT_THAT(o.err, HasSubstr("the value is empty")) << option;
  }
  for (const char* command : {"run", "inspect", "profile", "check", "export"})
    EXPECT_THAT(taper_command(command, "").err, HasSubstr("file: the value is empty")) << command;
  EXPECT_THAT(taper_command("run", linear_model(), "--input", "").err,
              HasSubstr("--input: the value is empty"));
}
TEST(taper_export, narrows_only_symbols_that_the_model_has) {
  const std::string program = tests::scratch_file("narrow.taper").string();
  const auto exported = [&](const std::string& bounds) {
    return taper_command("export", linear_model(), "-o", program, "--dim", bounds);
  };
  EXPECT_THAT(exported("s77=2..3").out, HasSubstr("x.0 in 2..3"));
  EXPECT_THAT(exported("s7=2..3").err, HasSubstr("there are x.0 (1..64)"));
  EXPECT_THAT(exported("x.0=batch:2..3").out, HasSubstr("batch in 2..3"));
  EXPECT_THAT(exported("x.0=batch").out, HasSubstr("f32[batch, "));
  EXPECT_THAT(exported("x.0=batch:").err, HasSubstr("is none of NAME=NUMBER"));
  EXPECT_THAT(exported("s77=3..2").err, HasSubstr("the lower bound must stand first: 2..3"));
  EXPECT_THAT(exported("s77=1..100000").err, HasSubstr("export the model again with other bounds"));
}
TEST(taper_export, says_which_bounds_are_missing_or_have_a_wrong_name) {
  const std::string program = tests::scratch_file("bounded.taper").string(),
                    model = tests::test_data("pt2_refused/unbounded.pt2").string();
  const auto exported = [&](const std::string& bounds) {
    return taper_command("export", model, "-o", program, "--dim", bounds);
  };
  EXPECT_THAT(exported("batch=1..4").err, HasSubstr("has no upper bound"));
  EXPECT_THAT(exported("batch=1..4").err, HasSubstr("it has no size batch, but x.0 (2..)"));
  EXPECT_THAT(exported("y=1..4").err, HasSubstr("s44 (2..8, pairs.0 is s44*2)"));
  // n.item() can only be 3: PyTorch says so, and the program checks it
  const Outcome o = exported("x.0=1..9");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("item in 3..3"));
  EXPECT_EQ(taper_command("check", program).code, success);
}
TEST(taper_export, tells_all_that_it_refuses_in_one_list) {
  const Outcome o = taper_command(
      "export", tests::test_data("pt2_refused/missing_and_strided.pt2").string(), "-o", "x.taper");
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("missing_and_strided.pt2: 2 parts of the model cannot be imported"));
  // a dtype of an input that Taper lacks is a part, too
  EXPECT_THAT(taper_command("export", tests::test_data("pt2_refused/other_dtype.pt2").string(),
                            "-o", "x.taper")
                  .err,
              HasSubstr("not float8_e4m3fnuz  1 node"));
}
TEST(taper_export, refuses_sizes_whose_memory_no_machine_can_address) {
  const std::filesystem::path program = tests::scratch_file("addressed.taper");
  const auto exported = [&](const std::string& most, auto... options) {
    std::filesystem::remove(program);
    return taper_command("export", tests::test_data("pt2_refused/unbounded.pt2").string(), "-o",
                         program.string(), "--dim", "x.0=" + most, options...);
  };
  const Outcome fixed = exported("1000000000000000000", "--dim", "pairs.0=2");
  EXPECT_EQ(fixed.code, failure);
  EXPECT_THAT(fixed.err,
              AllOf(HasSubstr("buffers are larger than memory can be"), Not(HasSubstr("--dim"))));
  const Outcome refused = exported("1..1000000000000000000");
  EXPECT_EQ(refused.code, failure);
  EXPECT_THAT(refused.err, HasSubstr("cannot be prepared: forward: buffers are larger than memory "
                                     "can be; narrower bounds of its symbols may help: --dim"));
  EXPECT_FALSE(std::filesystem::exists(program));
  // a larger machine may have as much
  const Outcome noted = exported("1..100000000000000000");
  EXPECT_EQ(noted.code, success) << noted.err;
  EXPECT_THAT(noted.out, HasSubstr("this machine has too little memory to run it: with every"));
}
TEST(taper_export, writes_to_a_device_and_leaves_it) {
  EXPECT_EQ(taper_command("export", linear_model(), "-o", "/dev/null").code, success);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}
TEST(taper_export, does_not_write_over_the_model) {
  const std::filesystem::path model = tests::scratch_file("kept.pt2");
  std::filesystem::copy_file(linear_model(), model,
                             std::filesystem::copy_options::overwrite_existing);
  const Outcome o = taper_command("export", model.string(), "-o", model.string());
  EXPECT_EQ(o.code, usage);
  EXPECT_THAT(o.err, HasSubstr("this is an input file"));
  EXPECT_EQ(content(model), content(linear_model()));
}
TEST(taper_check, fails_where_results_differ) {
  io::SafeTensors calls = io::read_safetensors(linear_calls());
  calls.tensors["set0.output.0"].values<float>()[0] += 1;
  const std::string changed = tests::scratch_file("changed.safetensors").string();
  io::write_safetensors(changed, calls);
  const Outcome wrong = taper_command("check", linear_model(), changed);
  EXPECT_EQ(wrong.code, failure);
  EXPECT_THAT(wrong.out, HasSubstr("WRONG div"));
  calls.tensors["surprise"] = calls.tensors["set0.output.0"];
  io::write_safetensors(changed, calls);
  EXPECT_THAT(taper_command("check", linear_model(), changed).err,
              HasSubstr("\"surprise\" is no part of a recorded call"));
}
TEST(taper_check, leaves_out_constants_that_a_program_does_not_take) {
  const std::string program = scratch_file("linear.taper").string(),
                    recorded = scratch_file("with_constants.safetensors").string();
  ASSERT_EQ(taper_command("export", linear_model(), "-o", program).code, success);
  io::SafeTensors calls = io::read_safetensors(linear_calls());
  const auto add_argument = [&](const char* key, const io::Array& array) {
    for (int k = 0; calls.tensors.contains("set" + std::to_string(k) + ".input.0"); ++k)
      calls.tensors["set" + std::to_string(k) + key] = array;
    io::write_safetensors(recorded, calls);
  };
  add_argument(".input.1", io::Array::zeros(DType::i64, {}));
  const Outcome told_apart = taper_command("check", program, recorded);
  EXPECT_EQ(told_apart.code, success) << told_apart.err;
  add_argument(".input.2", calls.at("set0.input.0"));
  EXPECT_THAT(taper_command("check", program, recorded).err, HasSubstr("constant arguments"));
}
TEST(taper_check, refuses_recordings_of_another_model) {
  const io::SafeTensors calls = io::read_safetensors(linear_calls());
  const std::string file = tests::scratch_file("recorded.safetensors").string();
  const auto error_of = [&](const io::SafeTensors& changed) {
    io::write_safetensors(file, changed);
    return taper_command("check", linear_model(), file).err;
  };
  io::SafeTensors changed = calls;
  changed.tensors["set0.output.7"] = calls.tensors.at("set0.output.0");
  EXPECT_THAT(error_of(changed), HasSubstr("result 7, which the model does not have"));
  changed = calls;
  changed.tensors["set0.mutated.0"] = calls.tensors.at("set0.output.0");
  EXPECT_THAT(error_of(changed), HasSubstr("1 changed arguments a call, but the method has 0"));
  changed = calls;
  std::erase_if(changed.tensors,
                [](const auto& t) { return t.first.find("output") != std::string::npos; });
  EXPECT_THAT(error_of(changed), HasSubstr("records no result to compare with"));
}
TEST(taper_inspect, takes_a_model) {
  EXPECT_THAT(taper_command("inspect", linear_model()).out, HasSubstr("method forward"));
}

// ---- run ----

std::string cache_model() { return tests::test_data("pt2/position_in_cache.pt2").string(); }
/// Of a recorded call of it.
std::string cache_array(const std::string& key) {
  const io::SafeTensors calls =
      io::read_safetensors(tests::test_data("pt2/position_in_cache.io.safetensors"));
  const std::filesystem::path path = scratch_file(key + ".npy");
  io::write_npy(path, calls.at(key));
  return path.string();
}

TEST(taper_run, runs_a_model_as_its_program) {
  const std::string program = scratch_file("cache.taper").string();
  ASSERT_EQ(taper_command("export", cache_model(), "-o", program).code, success);
  const std::string states = scratch_file("states.safetensors").string(),
                    after = scratch_file("after.safetensors").string();
  const std::string rows = cache_array("set0.input.0"), more = cache_array("set1.input.0");
  // what one of them saved the other loads
  for (const auto& [first, second] :
       {std::pair(cache_model(), program), std::pair(program, cache_model())}) {
    const Outcome begun = taper_command("run", first, "--input", rows, "--input", "position=0",
                                        "--top", "0", "--save-states", states);
    ASSERT_EQ(begun.code, success) << begun.err;
    EXPECT_THAT(begun.out, HasSubstr("-0.637793, 0.275002"));
    const Outcome gone_on =
        taper_command("run", second, "--load-states", states, "--input", more, "--input",
                      "position=2", "--top", "0", "--save-states", after);
    ASSERT_EQ(gone_on.code, success) << gone_on.err;
    EXPECT_THAT(gone_on.out, HasSubstr("-3.49154, 0.59373"));
    EXPECT_EQ(io::read_safetensors(after).tensors.size(), 1u);
  }
}
TEST(taper_run, gives_what_a_model_writes_into_its_inputs) {
  const std::string model = tests::test_data("pt2/written_arguments.pt2").string();
  const Outcome o = taper_command("run", model, "--input", npy("three.npy", {3}, {1, 2, 3}),
                                  "--input", npy("two.npy", {2}, {1, 2}), "--top", "0");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("_mutated: f32 (3,)\n  2, 3, 4"));
  EXPECT_THAT(o.out, HasSubstr("_mutated: f32 (2,)\n  2, 4"));
}
TEST(taper_run, names_the_dimension_that_a_bound_excludes) {
  const Outcome o = taper_command("run", linear_model(), "--dim", "x.0=1..4", "--input",
                                  npy("nine.npy", {9, 5}, std::vector<float>(45)));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("input x: dimension 0 is 9, and must lie in 1..4"));
}

// PyTorch calls the size s77. Nobody who reads a report has seen that name.
TEST(taper_export, calls_sizes_by_their_places_everywhere) {
  const std::string program = scratch_file("places.taper").string();
  std::string all;
  const auto add = [&](const Outcome& o) { all += o.out + o.err; };
  add(taper_command("export", linear_model(), "-o", program));
  EXPECT_THAT(all, HasSubstr("forward(x: f32[x.0, 5]) -> div: f32[x.0, 3]   x.0 in "));
  const std::string graph = scratch_file("places.html").string();
  add(taper_command("inspect", program, "--graph", graph));
  EXPECT_THAT(all, HasSubstr("x.0 in 1..64  (dimension 0 of x)"));
  EXPECT_THAT(content(graph), HasSubstr("f32[x.0, 3]"));
  add(taper_command("inspect", program, "--json"));
  add(taper_command("profile", program, "--dim", "x.0=3", "--repeat", "1"));
  EXPECT_THAT(all, HasSubstr("x: f32[3, 5]"));
  add(taper_command("profile", program, "--dim", "x.0=99"));
  EXPECT_THAT(all, HasSubstr("x.0 = 99 is outside "));
  const std::string nine = npy("ninety.npy", {90, 5}, std::vector<float>(450));
  for (const std::string& model : {program, linear_model()}) {
    add(taper_command("run", model));
    add(taper_command("run", model, "--input", nine));
    add(taper_command("check", model));
  }
  add(taper_command("export", linear_model(), "-o", program, "--print-after", "decompose"));
  EXPECT_THAT(all, HasSubstr("symbol x.0 in [1, 64]"));
  EXPECT_THAT(all, Not(ContainsRegex("[^a-z0-9]s[0-9]+[^a-z0-9]")));

  taper_command("export", linear_model(), "-o", program, "--dim", "x.0=batch");
  for (const char* name : {"x.0=3", "batch=3"})
    EXPECT_EQ(taper_command("profile", program, "--dim", name, "--repeat", "1").code, success);
  EXPECT_THAT(taper_command("run", linear_model(), "--dim", "x.0=batch", "--input", nine).err,
              HasSubstr("dimension 0 (batch) is 90, and must lie in "));
}

TEST(taper_run, says_what_a_model_takes) {
  const auto error_of = [](const auto&... arguments) {
    return taper_command("run", cache_model(), arguments...).err;
  };
  const std::string rows = cache_array("set0.input.0");
  EXPECT_THAT(error_of(), HasSubstr("input x: f32[x.0, 2] is missing"));
  EXPECT_THAT(error_of(), MatchesRegex(".*give --input x=FILE; x.0 must lie in 1..8\n"));
  EXPECT_THAT(error_of("--input", rows), HasSubstr("input position: i64[] is missing"));
  EXPECT_THAT(error_of("--input", rows, "--input", "position=1.5"), HasSubstr("1.5"));
  EXPECT_THAT(error_of("--input", npy("line.npy", {2}, {1, 2}), "--input", "position=0"),
              HasSubstr("does not accept f32 (2,); it must have 2 dimensions"));
  EXPECT_THAT(
      error_of("--input", npy("wide.npy", {2, 3}, std::vector<float>(6)), "--input", "position=0"),
      HasSubstr("must be"));
  EXPECT_THAT(error_of("--method", "train"), HasSubstr("has no method train"));
  EXPECT_THAT(error_of("--dim", "s0=1..2"), HasSubstr("there is no such size"));
  EXPECT_THAT(error_of("--input", rows, "--input", "position=0", "--load-states",
                       tests::test_data("pt2/v2_9_linear.io.safetensors").string()),
              HasSubstr("no parameter or buffer set0."));
}

TEST(taper_run, wants_a_label_for_each_class) {
  const std::filesystem::path labels = scratch_file("two.txt");
  std::ofstream(labels) << "ant\nbee\n";
  const Outcome o =
      taper_command("run", linear_model(), "--input", npy("x.npy", {1, 5}, std::vector<float>(5)),
                    "--labels", labels.string());
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("has 2 lines, one for each class, but no output has as many"));
}

}  // namespace
}  // namespace taper::cli
