#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "taper/exporter/cli/taper.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/support/environment.h"
#include "taper/tests/support/sanitizers.h"

namespace taper::cli {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::scratch_file;

void expect_one_line(const std::string& text) {
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

// ---- the command ----

TEST(taper_command, helps_and_succeeds) {
  const Outcome help = taper_command("--help");
  EXPECT_EQ(help.code, success);
  for (const char* word : {"inspect", "run", "profile", "export", "operators", "Exit codes"})
    EXPECT_THAT(help.out, HasSubstr(word));
  EXPECT_EQ(taper_command("run", "--help").code, success);
}

// The files of the examples are absent, so every example that wants files fails. Only a wrong
// option is wrong usage.
TEST(taper_command, gives_examples_that_are_right_usage) {
  int examples = 0;
  for (const char* command :
       {"", "inspect", "run", "profile", "check", "compare", "export", "quantize", "operators"}) {
    const Outcome help = *command ? taper_command(command, "--help") : taper_command("--help");
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  taper ")) continue;
      std::istringstream words(line.substr(8));
      const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      std::ostringstream out, err;
      const int expected = arguments.front() == "operators" ? success : failure;
      EXPECT_EQ(run(arguments, out, err), expected) << line << '\n' << err.str();
      ++examples;
    }
  }
  EXPECT_GE(examples, 20);
}

// What Taper can compute, and how well. These numbers grow; they must not shrink unnoticed.
TEST(taper_command, lists_no_fewer_kernels_halves_and_gradients) {
  std::istringstream lines(taper_command("operators").out);
  int operators = 0, kernels = 0, native = 0, in_f32 = 0, formulas = 0, gradients = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, halves, gradient, form;
    if (!(words >> name >> halves >> gradient) || !std::getline(words >> std::ws, form)) continue;
    ++operators;
    kernels += form.starts_with("a kernel");
    native += halves == "native";
    in_f32 += halves == "widen";
    formulas += gradient == "formula";
    gradients += gradient == "formula" || gradient == "parts";
  }
  EXPECT_GE(operators, 793);
  EXPECT_GE(kernels, 315);
  EXPECT_GE(native, 210);
  EXPECT_GE(native + in_f32, 349);
  EXPECT_GE(formulas, 281);
  EXPECT_GE(gradients, 713);
}

TEST(taper_command, says_how_operators_are_computed) {
  const Outcome all = taper_command("operators"), glu = taper_command("operators", "glu"),
                add = taper_command("operators", "add"), view = taper_command("operators", "view");
  EXPECT_EQ(all.code, success);
  // the heading and the number
  EXPECT_EQ(std::ranges::count(all.out, '\n'), std::ssize(eager::all_operators()) + 2);
  EXPECT_THAT(glu.out, AllOf(HasSubstr("glu(Tensor self, int dim=-1) -> Tensor"),
                             HasSubstr("  becomes   mul.Tensor sigmoid\n"),
                             HasSubstr("  halves    widen\n")));
  EXPECT_THAT(add.out, AllOf(HasSubstr("add.Tensor("), HasSubstr("add.Scalar("),
                             HasSubstr("  becomes   a kernel\n"), HasSubstr(" small_integer"),
                             HasSubstr("  gradient  formula\n"), Not(HasSubstr("addmm("))));
  EXPECT_THAT(view.out, HasSubstr("  becomes   a view\n"));
  const Outcome unknown = taper_command("operators", "frobnicate");
  EXPECT_EQ(unknown.code, failure);
  EXPECT_THAT(unknown.err, HasSubstr("there is no operator frobnicate"));
}

TEST(taper_command, answers_wrong_usage_with_2_and_one_line) {
  const Outcome none = taper_command(), unknown = taper_command("frobnicate"),
                option = taper_command("inspect", "x.taper", "--colour");
  for (const Outcome& o : {none, unknown, option}) {
    EXPECT_EQ(o.code, usage);
    EXPECT_THAT(o.err, HasSubstr("--help"));
    expect_one_line(o.err);
  }
}

#if defined(__x86_64__)
TEST(taper_command, refuses_a_cpu_feature_that_does_not_exist) {
  const tests::Environment wrong("TAPER_CPU", "avx1024");
  const Outcome o = taper_command("inspect", tests::classifier().string());
  EXPECT_EQ(o.code, usage);
  EXPECT_THAT(o.err, HasSubstr("TAPER_CPU is avx1024; it can be portable, or names"));
  expect_one_line(o.err);
}
#endif

TEST(taper_command, names_the_commands_that_there_are) {
  EXPECT_THAT(taper_command("frobnicate").err,
              HasSubstr("there is no command frobnicate; the commands are inspect, run, profile, "
                        "check, compare, export, "
                        "quantize, operators"));
  EXPECT_THAT(taper_command().err, HasSubstr("a command is missing; the commands are inspect"));
}

TEST(taper_command, fails_if_its_output_cannot_be_written) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(run({"inspect", tests::classifier().string()}, out, err), failure);
  expect_one_line(err.str());
}

TEST(taper_command, fails_if_its_help_cannot_be_written) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"--version"}, {"run", "--help"}}) {
    std::ofstream full("/dev/full");
    if (!full) GTEST_SKIP() << "there is no /dev/full";
    std::ostringstream err;
    EXPECT_EQ(run(arguments, full, err), failure) << arguments.back();
    EXPECT_THAT(err.str(), HasSubstr("cannot write to the standard output"));
    expect_one_line(err.str());
  }
}

TEST(taper_run, says_what_an_input_must_be) {
  const std::string program = tests::classifier().string();
  const auto error_of = [&](const std::string& input) {
    const Outcome o = taper_command("run", program, "--input", input);
    EXPECT_EQ(o.code, failure);
    expect_one_line(o.err);
    return o.err;
  };
  EXPECT_THAT(taper_command("run", program).err, HasSubstr("is missing; give --input x=FILE; "));
  EXPECT_THAT(error_of("x=5"), HasSubstr("is a tensor, not the number 5; give --input x=FILE"));
  EXPECT_THAT(error_of("x=two.npz"), HasSubstr("holds several arrays; save the one for x: f32["));
  const std::string weights = scratch_file("weights.safetensors").string();
  io::SafeTensors file;
  file.tensors["w"] = io::Array::zeros(DType::f32, {1, 2});
  io::write_safetensors(weights, file);
  EXPECT_THAT(error_of("x=" + weights + ":v"), HasSubstr(weights + ": no tensor 'v'; there are w"));
  const std::string doubles = scratch_file("doubles.npy").string();
  io::write_npy(doubles, io::Array::zeros(DType::f64, {1, 2}));
  EXPECT_THAT(error_of(doubles),
              HasSubstr("f64 (1, 2); convert it to f32 first (numpy: x.astype)"));
  io::write_npy(doubles, io::Array::zeros(DType::f64, {2}));
  EXPECT_THAT(error_of(doubles), HasSubstr("f64 (2,); it must have 2 dimensions"));
}

TEST(taper_command, names_the_file_first_and_what_is_wrong_with_it) {
  EXPECT_EQ(taper_command("run", "nowhere.taper").err,
            "taper run: nowhere.taper: No such file or directory\n");
  const std::string text = scratch_file("text.taper").string();
  std::ofstream(text) << "hello";
  EXPECT_EQ(taper_command("run", text).err,
            "taper run: " + text + ": this is not a Taper program: the file is too short\n");
  std::ofstream(text).close();
  EXPECT_EQ(taper_command("run", text).err, "taper run: " + text + ": is empty\n");
  EXPECT_THAT(taper_command("export", text).err, HasSubstr("is not a .pt2 file"));
}

TEST(taper_command, says_which_values_an_option_takes) {
  EXPECT_THAT(taper_command("export", "x.pt2", "--target", "vax").err,
              HasSubstr("--target: vax is none of host, x86-64, x86-64-v3, "));
  EXPECT_THAT(taper_command("inspect", "x.taper", "--graph").err,
              HasSubstr("--graph needs a value: FILE"));
}

TEST(taper_command, refuses_numbers_that_mean_nothing) {
  const std::string program = tests::classifier().string(), x = npy("x.npy", {1, 2}, {1, 0});
  const std::vector<std::string> cases[] = {
      {"run", "--threads", "100000", "is not a whole number from 1 to 256"},
      {"run", "--threads", "0", "is not a whole number from 1 to 256"},
      {"profile", "--threads", "257", "is not a whole number from 1 to 256"},
      {"run", "--top", "-1", "is not a whole number from 0 to 1000000"},
      {"profile", "--repeat", "2000000000", "is not a whole number from 1 to 100000"},
      {"profile", "--repeat", "0", "is not a whole number from 1 to 100000"},
      {"profile", "--dim", "batch=99999999999999999999", "batch=99999999999999999999 is not"},
      {"profile", "--dim", "=3", "=3 is not NAME=NUMBER"},
      {"run", "--std", "0", "divided by 0"},
      {"run", "--std", "1,-0", "divided by 0"},
      {"run", "--mean", "nan", "nan is not a finite number"},
      {"run", "--std", "inf", "inf is not a finite number"},
  };
  for (const auto& c : cases) {
    const Outcome o = taper_command(c[0], program, "--input", x, c[1], c[2]);
    EXPECT_EQ(o.code, usage) << c[1] << ' ' << c[2];
    EXPECT_THAT(o.err, HasSubstr(c[3]));
    expect_one_line(o.err);
  }
}

TEST(taper_command, refuses_what_would_be_ignored_or_lost) {
  const std::string program = tests::classifier().string();
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"profile", program, "--dim", "batch=2", "--dim", "batch=3"}, "batch is given twice"},
      {{"check", program, "--tolerance", "inf"}, "inf is not a number"},
      {{"export", program, "--header", "c.h", "--dtype", "f16"}, "is a program already"},
      {{"export", program, "--header", "c.h", "--exact"}, "is a program already"},
      {{"export", program, "--kernels", "c.cpp", "--array", "./c.cpp"}, "two outputs"},
      {{"export", program, "--header", program}, "this is an input file"},
      {{"run", program, "--inputs", "x.npy"}, "there is no option --inputs"},
      {{"inspect", program, "other"}, "no argument is expected here: other"},
      {{"quantize", "m.pt2", "--recipe", "int8", "--samples", "9223372036854775808"},
       "--samples: 9223372036854775808 needs more than 64 bits"},
      {{"export", "m.pt2", "--memory", "-99999999999999999999"},
       "--memory: -99999999999999999999 needs more than 64 bits"},
  };
  for (const auto& [arguments, text] : cases) {
    std::ostringstream out, err;
    EXPECT_EQ(run(arguments, out, err), usage) << text;
    EXPECT_THAT(err.str(), HasSubstr(text));
    expect_one_line(err.str());
  }
  const Outcome method = taper_command("check", program, "--method", "nope");
  EXPECT_EQ(method.code, failure);
  EXPECT_THAT(method.err, HasSubstr("nope"));
}

TEST(taper_command, answers_a_missing_or_damaged_file_with_1_and_its_name) {
  const Outcome missing = taper_command("inspect", "/nowhere/x.taper");
  EXPECT_EQ(missing.code, failure);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/x.taper"));
  expect_one_line(missing.err);

  const auto path = tests::classifier();
  std::string bytes = content(path);
  bytes[bytes.size() / 3] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  for (const char* command : {"inspect", "run", "profile"}) {
    const Outcome damaged = taper_command(command, path.string());
    EXPECT_EQ(damaged.code, failure) << command;
    EXPECT_THAT(damaged.err, HasSubstr("classifier.taper")) << command;
    expect_one_line(damaged.err);
  }
}

// The tables of this program are whole: the bit lies in a weight.
std::string program_with_a_damaged_weight() {
  const auto path = tests::classifier();
  std::string bytes = content(path);
  const float weight = 8;
  const size_t at =
      bytes.find(std::string_view(reinterpret_cast<const char*>(&weight), sizeof weight));
  EXPECT_NE(at, bytes.npos);
  bytes.at(at) ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

TEST(taper_command, refuses_damaged_weights) {
  const std::string program = program_with_a_damaged_weight(), x = npy("x.npy", {1, 2}, {1, 0});
  const std::string sources = scratch_file("sources").string();
  std::filesystem::remove(sources);
  const std::string calls = scratch_file("calls.safetensors").string();
  io::SafeTensors recorded;
  recorded.tensors["set0.input.0"] = io::read_npy(x);
  recorded.tensors["set0.output.0"] = io::Array::zeros(DType::f32, {1, 3});
  io::write_safetensors(calls, recorded);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"inspect", program},
           {"check", program},
           {"check", program, calls},
           {"export", program, "--array", sources},
           {"export", program, "--kernels", sources},
           {"export", program, "--header", sources},
           {"run", program, "--input", x, "--verify"},
           {"run", program, "--input", x, "--verify", "--read"},
           {"compare", program, program, "--input", x, "--verify"},
           {"profile", program, "--verify"}}) {
    std::ostringstream out, err;
    EXPECT_EQ(run(arguments, out, err), failure) << arguments[0];
    EXPECT_THAT(err.str(), HasSubstr("classifier.taper: "));
    EXPECT_THAT(err.str(), HasSubstr("the weights ("));
    EXPECT_THAT(err.str(), HasSubstr("the file is damaged; copy it again"));
    expect_one_line(err.str());
  }
  EXPECT_FALSE(std::filesystem::exists(sources));
  EXPECT_EQ(taper_command("run", program, "--input", x).code, success) << "run maps, and trusts";
}

TEST(taper_command, reads_a_file_instead_of_mapping_it) {
  const std::string x = npy("x.npy", {1, 2}, {1, 0}), z = npy("z.npy", {1, 5}, {1, 2, 3, 4, 5});
  for (const auto& [file, input] :
       {std::pair(tests::classifier().string(), x), std::pair(tests::linear_model(), z)}) {
    const Outcome mapped = taper_command("run", file, "--input", input),
                  read = taper_command("run", file, "--input", input, "--read");
    EXPECT_EQ(read.code, success) << read.err;
    EXPECT_EQ(read.out, mapped.out);
  }
}

TEST(taper_command, computes_with_one_thread_unless_it_is_told) {
  const std::string program = tests::classifier().string();
  EXPECT_THAT(taper_command("profile", program).out, HasSubstr(", 1 thread\n"));
  EXPECT_THAT(taper_command("profile", program, "--threads", "2").out, HasSubstr(", 2 threads\n"));
  for (const char* command : {"run", "check", "compare", "profile"})
    EXPECT_THAT(taper_command(command, "--help").out,
                HasSubstr("--threads INT:INT in [1 - 256]=1\n"));
}

// A file's names may contain anything.
std::string program_with_hostile_names() {
  const auto graph = ir::parse(
      "graph forward\ninput \"x\" = %x: f32[2]\n%y: f32[2] = mul.Scalar(%x, 2)\noutput \"y\" = "
      "%y\n",
      {});
  graph->inputs()[0].name = "x\x1b[31m";
  graph->outputs()[0].name = "y\r\xc2\x9b";
  emit::EmitOptions options;
  const auto path = scratch_file("hostile.taper");
  emit::write(path.string(), {{"forward\nint injected;\x1b[2J", graph.get()}}, options);
  return path.string();
}

TEST(taper_command, shows_control_characters_as_text) {
  const std::string program = program_with_hostile_names(), x = npy("x.npy", {2}, {1, 0}),
                    header = scratch_file("h.h").string();
  const std::string texts[] = {
      taper_command("inspect", program).out,
      taper_command("run", program).err,
      taper_command("run", program, "--input", x).out,
      taper_command("profile", program, "--repeat", "1").out,
      (taper_command("export", program, "--header", header), content(header)),
  };
  for (const std::string& text : texts) {
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("\x1b"), HasSubstr("\r"), HasSubstr("\x9b"))));
    EXPECT_THAT(text, Not(HasSubstr("\nint injected")));
    EXPECT_THAT(text, AnyOf(HasSubstr("x\\x1b[31m"), HasSubstr("y\\x0d"), HasSubstr("\\nint")));
  }
}

// ---- inspect ----

TEST(taper_inspect, tells_what_a_program_takes_gives_and_needs) {
  const Outcome o = taper_command("inspect", tests::classifier().string());
  EXPECT_EQ(o.code, success) << o.err;
  for (const char* text : {"x: f32[batch, 2]", "scores: f32[batch, 3]", "batch in 1..16", "1 addmm",
                           "addmm(f32, f32, f32) -> f32", "lower bound", "fc.weight"})
    EXPECT_THAT(o.out, HasSubstr(text));
}

TEST(taper_inspect, gives_the_same_as_json_and_parts_that_make_up_the_file) {
  const auto path = tests::counter();
  const Outcome o = taper_command("inspect", path.string(), "--json");
  ASSERT_EQ(o.code, success) << o.err;
  const auto report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["methods"].size(), 2u);
  EXPECT_EQ(report["states"][0]["path"], "total");
  EXPECT_EQ(report["methods"][0]["states_written"][0], "total");
  int64_t sum = 0;
  for (const auto& part : report["parts"]) sum += part.get<int64_t>();
  EXPECT_EQ(sum, static_cast<int64_t>(std::filesystem::file_size(path)));
}

TEST(taper_inspect, draws_the_graphs) {
  const auto html = scratch_file("graph.html");
  const Outcome o = taper_command("inspect", tests::counter().string(), "--graph", html.string());
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(taper_command("inspect", tests::counter().string(), "--graph", "x.png").err,
              HasSubstr("must end in .html"));
  const std::string picture = content(html);
  for (const char* text :
       {"<html", "count", "twice", "add.Tensor", "f32[2]", "writes total", "</html>"})
    EXPECT_THAT(picture, HasSubstr(text));
}

TEST(taper_inspect, draws_the_graphs_as_a_page_that_folds_modules) {
  const auto html = scratch_file("graph.html");
  for (const std::string& program :
       {tests::counter().string(), tests::test_data("pt2/v2_9_linear.pt2").string()}) {
    const Outcome o = taper_command("inspect", program, "--graph", html.string());
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_THAT(
        content(html),
        AllOf(HasSubstr("<!DOCTYPE html>"),
              HasSubstr("\"title\":\"" + std::filesystem::path(program).filename().string())));
  }
  taper_command("inspect", program_with_hostile_names(), "--graph", html.string());
  EXPECT_THAT(content(html), Not(AnyOf(HasSubstr("\x1b"), HasSubstr("\r"), HasSubstr("\x9b"))));
  EXPECT_THAT(content(html), HasSubstr("x\\\\x1b[31m"));
}

// ---- run ----

TEST(taper_run, shows_the_best_classes_with_labels) {
  const auto labels = scratch_file("labels.txt");
  std::ofstream(labels) << "ant\nbee\ncat\n";
  const Outcome o =
      taper_command("run", tests::classifier().string(), "--input", npy("x.npy", {1, 2}, {1, 0}),
                    "--labels", labels.string(), "--top", "2");
  EXPECT_EQ(o.code, success) << o.err;
  // softmax(1, 5, 0) = 0.0179, 0.9756, 0.0066
  EXPECT_THAT(o.out, HasSubstr("1    97.6 %  bee"));
  EXPECT_THAT(o.out, HasSubstr("0     1.8 %  ant"));
  EXPECT_THAT(o.out, Not(HasSubstr("cat")));
}

TEST(taper_run, writes_outputs_that_a_file_keeps_exactly) {
  const std::string program = tests::classifier().string(),
                    x = npy("x.npy", {3, 2}, {1, 0, 0, 1, 2, -1});
  const auto y = scratch_file("y.npy"), all = scratch_file("y.safetensors");
  const Outcome o = taper_command("run", program, "--input", "x=" + x, "--output", y.string(),
                                  "--output", all.string());
  ASSERT_EQ(o.code, success) << o.err;
  const io::Array scores = io::read_npy(y);
  EXPECT_THAT(scores.sizes, ElementsAre(3, 3));
  EXPECT_THAT(scores.values<float>(), ElementsAre(1, 5, 0, 0, 1, 8, 2, 9, -8));
  EXPECT_THAT(io::read_safetensors(all).at("scores").values<float>(),
              ElementsAre(1, 5, 0, 0, 1, 8, 2, 9, -8));
  // and what was written is an input again
  const auto inputs = scratch_file("inputs.safetensors");
  io::SafeTensors content;
  content.tensors["x"] = io::read_npy(x);
  io::write_safetensors(inputs, content);
  EXPECT_EQ(taper_command("run", program, "--input", inputs.string()).code, success);
  EXPECT_EQ(taper_command("run", program, "--input", "x=" + inputs.string() + ":x").code, success);
}

TEST(taper_run, keeps_states_in_a_file) {
  const std::string program = tests::counter().string(), x = npy("x.npy", {2}, {1, 2}),
                    states = scratch_file("states.safetensors").string();
  ASSERT_EQ(
      taper_command("run", program, "--method", "count", "--input", x, "--save-states", states)
          .code,
      success);
  const Outcome again = taper_command("run", program, "--method", "count", "--input", x,
                                      "--load-states", states, "--save-states", states);
  ASSERT_EQ(again.code, success) << again.err;
  EXPECT_THAT(io::read_safetensors(states).at("total").values<float>(), ElementsAre(2, 4));
}

TEST(taper_run, says_what_is_missing_or_does_not_fit) {
  const std::string classifier = tests::classifier().string(), counter = tests::counter().string(),
                    x = npy("row.npy", {1, 2}, {1, 0});
  const Outcome cases[] = {
      taper_command("run", classifier),  // no input
      taper_command("run", classifier, "--input",
                    npy("long.npy", {1, 3}, {1, 2, 3})),  // another extent
      taper_command("run", classifier, "--input",
                    npy("large.npy", {17, 2}, std::vector<float>(34))),  // beyond the range
      taper_command("run", classifier, "--input",
                    "z=" + npy("x.npy", {1, 2}, {1, 0})),                  // another name
      taper_command("run", classifier, "--input", "picture.gif"),          // another kind of file
      taper_command("run", counter),                                       // which method?
      taper_command("run", classifier, "--input", "x="),                   // nothing
      taper_command("run", classifier, "--input", x, "--labels", "/tmp"),  // a folder
      taper_command("run", counter, "--method", "train"),                  // not there
  };
  const char* texts[] = {
      "--input x=FILE", "f32[batch, 2]", "f32[batch, 2]",           "no input z",
      "picture.gif",    "count, twice",  "has no value for x: f32", "/tmp: is a folder",
      "count, twice"};
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(cases[i].code, failure) << i;
    EXPECT_THAT(cases[i].err, HasSubstr(texts[i])) << i;
    expect_one_line(cases[i].err);
  }
}

TEST(taper_run, says_how_much_memory_it_cannot_have) {
#if defined(TAPER_ADDRESS_SANITIZER) || defined(TAPER_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer ends the program instead";
#endif
  const auto program = tests::write_program(
      "large.taper", {"graph forward\nsymbol batch in [1, 17592186044416]\ninput \"x\" = %x: "
                      "f32[batch, 2]\n%y: f32[batch, 2] = mul.Scalar(%x, 2)\noutput \"y\" = "
                      "%y\nbind batch = extent 0 of input 0\n"});
  const Outcome o = taper_command("run", program.string(), "--input", npy("x.npy", {1, 2}, {1, 0}));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("large.taper: with every symbol at its maximum, "
                               "forward needs 2814749767"));
  expect_one_line(o.err);
}

}  // namespace
}  // namespace taper::cli
