// More than 200 broken or absurd inputs to `taper quantize`. Each ends with one clear line and
// without a program, or with a program and a warning.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Calls the command, and counts the inputs.
class absurd_input : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(lenet, "pt2/lenet.pt2");
    lenet_ = lenet.string();
    program_ = tests::scratch_file("refused.taper").string();
  }

  Outcome quantize(const std::vector<std::string>& arguments) {
    std::filesystem::remove(program_);
    ++inputs_;
    std::vector<std::string> all = {"quantize"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"-o", program_});
    std::ostringstream out, err;
    const int code = run(all, out, err);
    return {code, out.str(), err.str()};
  }
  /// One line that says what is wrong, and no program.
  void expect_refusal(const std::string& what, const std::vector<std::string>& arguments) {
    SCOPED_TRACE(what);
    const Outcome o = quantize(arguments);
    EXPECT_NE(o.code, success) << o.out;
    EXPECT_GT(o.err.size(), 20u);
    EXPECT_EQ(std::ranges::count(o.err, '\n'), 1) << o.err;
    EXPECT_FALSE(std::filesystem::exists(program_));
    for (const char c : o.err)
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32) << o.err;
  }
  /// A program, and a line that warns.
  void expect_warning(const std::string& what, const std::vector<std::string>& arguments) {
    SCOPED_TRACE(what);
    const Outcome o = quantize(arguments);
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_THAT(o.out + o.err, testing::HasSubstr("warning"));
  }
  void expect_recipe_refused(const std::string& text) {
    const std::string file = tests::scratch_file("recipe.json").string();
    std::ofstream(file, std::ios::binary) << text;
    expect_refusal("recipe " + text.substr(0, 80),
                   {lenet_, "--recipe", file, "--calibrate", digits()});
  }
  std::string digits() const {
    return (std::filesystem::path(lenet_).parent_path() / "lenet.io.safetensors").string();
  }
  static std::string scratch(const std::string& name, const std::string& bytes) {
    const std::string file = tests::scratch_file(name).string();
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  static std::string images(const std::string& name, const std::vector<float>& first,
                            int64_t count = 4) {
    std::vector<float> pixels(static_cast<size_t>(count) * 784);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = first[i % first.size()];
    return npy(name, {count, 1, 28, 28}, pixels);
  }

  std::string lenet_, program_;
  int inputs_ = 0;
};

TEST_F(absurd_input, makes_no_recipe) {
  for (const char* text : {"",
                           " ",
                           "[",
                           "]",
                           "[{]",
                           "{",
                           "{}",
                           "[]",
                           "null",
                           "true",
                           "3",
                           "\"int4\"",
                           "[3]",
                           "[null]",
                           "[[]]",
                           "[{}]",
                           "[{\"match\": \"*\"}]",
                           "[{\"scheme\": \"int4\"}]",
                           "[{\"match\": \"*\", \"scheme\": \"int4\"}",
                           "[{\"match\": \"*\", \"scheme\": \"int4\"}]]",
                           "[{\"match\": \"*\", \"scheme\": \"int4\"},]",
                           "[{match: \"*\", \"scheme\": \"int4\"}]",
                           "[{'match': '*', 'scheme': 'int4'}]",
                           "match = \"*\"\nscheme = \"int4\"\n",
                           "[{\"match\": \"*\", \"scheme\": \"int4\", \"bits\": 3}]",
                           "[{\"match\": \"*\", \"Scheme\": \"int4\"}]",
                           "\x80\x81\x82",
                           "[\"\\ud800\"]",
                           "PK\x03\x04",
                           "[{\"match\": \"\x01\", \"scheme\": \"int4\"}]"})
    expect_recipe_refused(text);
  expect_recipe_refused(std::string(100000, '['));
  expect_recipe_refused(std::string(1000, '\0'));
  for (const char* match : {"null", "3", "[]", "{}", "\"\"", "true", "[\"*\"]"})
    expect_recipe_refused("[{\"match\": " + std::string(match) + ", \"scheme\": \"int4\"}]");
  // proper JSON, too deep for a copy
  constexpr size_t deep = 100000;
  std::string schemes;
  for (size_t i = 0; i < deep; ++i) schemes += "{\"weights\": ";
  expect_recipe_refused("[{\"match\": \"*\", \"scheme\": " + schemes + "3" +
                        std::string(deep, '}') + "}]");
  expect_recipe_refused(std::string(deep, '[') + std::string(deep, ']'));
  EXPECT_EQ(inputs_, 41);
}

TEST_F(absurd_input, makes_no_scheme) {
  const char* schemes[] = {"null",
                           "3",
                           "[]",
                           "{}",
                           "\"\"",
                           "true",
                           "\"int1\"",
                           "\"int99\"",
                           "\"INT4\"",
                           "\"q4_0 \"",
                           "\"q9_9\"",
                           "\"int8-channel\"",
                           "{\"weights\": null}",
                           "{\"weights\": 4}",
                           "{\"weights\": \"\"}",
                           "{\"weights\": []}",
                           "{\"weights\": {}}",
                           "{\"weights\": [4]}",
                           "{\"weights\": [null]}",
                           "{\"weights\": [\"float\", \"int4\"]}",
                           "{\"weights\": [\"int4\", \"int8-channel\"]}",
                           "{\"weights\": [\"int4\", \"int5\"]}",
                           "{\"weights\": \"int4\", \"bits\": 4}",
                           "{\"weights\": \"int4\", \"method\": null}",
                           "{\"weights\": \"int4\", \"method\": \"\"}",
                           "{\"weights\": \"int4\", \"method\": \"GPTQ\"}",
                           "{\"weights\": \"int4\", \"method\": 1}",
                           "{\"weights\": \"int4\", \"method\": [\"gptq\"]}",
                           "{\"weights\": \"q4_0\", \"method\": \"hqq\"}",
                           "{\"weights\": \"int8\", \"method\": \"hqq\"}",
                           "{\"weights\": \"int4\", \"activations\": \"int4\"}",
                           "{\"weights\": \"int4\", \"activations\": 8}",
                           "{\"weights\": \"int4\", \"activations\": \"int8-static\"}",
                           "{\"weights\": \"float\", \"activations\": \"int8-static\"}",
                           "{\"weights\": \"int8-channel\"}",
                           "{\"weights\": \"int8-channel\", \"activations\": \"int8-dynamic\"}",
                           "{\"weights\": \"int4\", \"awq\": 1}",
                           "{\"weights\": \"int4\", \"awq\": \"yes\"}",
                           "{\"weights\": \"float\", \"awq\": true}",
                           "{\"weights\": \"f8_e4m3fn\", \"awq\": true}",
                           "{\"weights\": \"int4\", \"sequential\": 1}",
                           "{\"weights\": \"float\", \"sequential\": true}",
                           "{\"weights\": \"int4\", \"widen\": 1}",
                           "{\"weights\": \"float\", \"widen\": true}",
                           "{\"weights\": \"f8_e4m3fn\", \"widen\": true}",
                           "{\"weights\": \"int4\", \"observer\": \"mse\"}",
                           "{\"weights\": \"int4\", \"smooth\": 0.5}",
                           "{\"weights\": \"int4\", \"weight-bits\": 4}",
                           "{\"weights\": \"int4\", \"equalize\": true}",
                           "{\"weights\": \"int4\", \"correct-bias\": false}",
                           "\"float\""};
  for (const char* scheme : schemes)
    expect_recipe_refused("[{\"match\": \"*\", \"scheme\": " + std::string(scheme) + "}]");
  const char* of_static[] = {
      "\"observer\": \"\"",    "\"observer\": \"best\"", "\"observer\": 3",
      "\"observer\": null",    "\"correct-bias\": 1",    "\"correct-bias\": \"\"",
      "\"weight-bits\": 1",    "\"weight-bits\": 9",     "\"weight-bits\": 0",
      "\"weight-bits\": -4",   "\"weight-bits\": 4.5",   "\"weight-bits\": \"4\"",
      "\"weight-bits\": null", "\"equalize\": 1",        "\"equalize\": []",
      "\"smooth\": -0.1",      "\"smooth\": 1.1",        "\"smooth\": \"half\"",
      "\"smooth\": null",      "\"smooth\": 1e999",      "\"method\": \"none\"",
      "\"awq\": true"};
  for (const char* option : of_static)
    expect_recipe_refused(
        "[{\"match\": \"*\", \"scheme\": {\"weights\": \"int8-channel\", \"activations\": "
        "\"int8-static\", " +
        std::string(option) + "}}]");
  for (const char* format :
       {"nf4", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"}) {
    const std::string head =
        "[{\"match\": \"*\", \"scheme\": {\"weights\": \"" + std::string(format) + "\", ";
    expect_recipe_refused(head + "\"method\": \"hqq\"}}]");
    expect_recipe_refused(head + "\"method\": \"gptq\", \"sequential\": \"yes\"}}]");
    if (std::string(format) != "mxfp4")  // its levels are integers
      expect_recipe_refused(head + "\"activations\": \"int8-dynamic\"}}]");
  }
  EXPECT_EQ(inputs_, 90);
}

TEST_F(absurd_input, makes_no_rules_that_fit_nothing) {
  const std::string integers = R"({"weights": "int8-channel", "activations": "int8-static"}}])";
  for (const char* match : {"x", "layer*", "conv1.weights", "CONV*", "?", "*.conv*", "embedding"})
    for (const std::string& rest :
         {std::string("\"int4\"}]"), "\"float\"}, {\"match\": \"*\", \"scheme\": " + integers})
      expect_recipe_refused("[{\"match\": \"" + std::string(match) + "\", \"scheme\": " + rest);
  expect_recipe_refused(R"([{"match": "conv*", "scheme": "int4"}])");
  expect_recipe_refused(R"([{"match": "*", "scheme": )" + integers.substr(0, integers.size() - 1) +
                        R"(, {"match": "fc*", "scheme": "float"}])");
  expect_recipe_refused(R"([{"match": "fc*", "scheme": "int4"}, {"match": "*", "scheme": )" +
                        integers);
  expect_recipe_refused(R"([{"match": "*", "scheme": "float"}, {"match": "*", "scheme": )" +
                        integers);
  EXPECT_EQ(inputs_, 18);
}

TEST_F(absurd_input, teaches_nothing_as_data) {
  const std::vector<float> grey = {.1f, .7f, .3f};
  const std::string whole = content(images("whole.npy", grey));
  std::vector<std::string> files = {
      "none.npy",
      "",
      lenet_,
      scratch("empty.npy", ""),
      scratch("empty.safetensors", ""),
      scratch("short.npy", whole.substr(0, 60)),
      scratch("cut.npy", whole.substr(0, whole.size() - 9)),
      scratch("text.npy", "once upon a time"),
      scratch("story.txt", "once upon a time"),
      scratch("head.safetensors", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)),
      scratch("json.safetensors", std::string("\2\0\0\0\0\0\0\0[]", 10)),
      scratch("a.csv", "1,2,3\n"),
      scratch("a.png", "\x89PNG\r\n"),
      npy("one.npy", {1}, {1}),
      npy("flat.npy", {4, 784}, std::vector<float>(4 * 784, .5f)),
      npy("wide.npy", {1, 1, 28, 29}, std::vector<float>(28 * 29, .5f)),
      npy("rgb.npy", {1, 3, 28, 28}, std::vector<float>(3 * 784, .5f)),
      npy("none_of.npy", {0, 1, 28, 28}, {}),
      images("nan.npy", {NAN}),
      images("one_nan.npy", {.1f, .2f, NAN}),
      images("infinite.npy", {.1f, infinity}),
      images("minus.npy", {-infinity, 0}),
      images("huge.npy", {3e38f, -3e38f}),
      images("zero.npy", {0}),
      images("same.npy", {.5f})};
  const std::string folder = tests::scratch_file("no_pictures").string();
  std::filesystem::create_directories(folder);
  files.push_back(folder);
  const std::string texts = tests::scratch_file("texts").string();
  std::filesystem::create_directories(texts);
  std::ofstream(texts + "/a.png") << "no picture";
  files.push_back(texts);
  io::SafeTensors named;
  named.tensors["y"] = io::read_npy(images("y.npy", grey));
  const std::string other = tests::scratch_file("named.safetensors").string();
  io::write_safetensors(other, named);
  files.push_back(other), files.push_back(other + ":z"), files.push_back(other + ":");
  named.tensors = {{"x", io::Array::of<int64_t>({1}, std::vector<int64_t>{1})}};
  const std::string integers = tests::scratch_file("integers.safetensors").string();
  io::write_safetensors(integers, named);
  files.push_back(integers);
  for (const std::string& file : files)
    for (const char* recipe : {"int8", "int4-g32"}) {
      if (file.empty() && recipe == std::string("int4-g32")) continue;  // it needs no data
      expect_refusal(recipe + (" " + file), {lenet_, "--recipe", recipe, "--calibrate", file});
    }
  EXPECT_EQ(inputs_, 61);
}

TEST_F(absurd_input, is_no_goal_and_no_option) {
  for (const char* goal : {"",
                           " ",
                           "0.9",
                           "top-1",
                           "top-1 >=",
                           ">= 3",
                           ">=",
                           "cosine >= x",
                           "cosine >= nan",
                           "cosine >= inf",
                           "top-1 => 0.9",
                           "top-1 = 0.9",
                           "top-5 >",
                           "cosine >= 0.9 >= 0.8",
                           "cosine > 0.9 >= 0.8",
                           "top-1 0.9 >= 0.8",
                           "top-1 <= 0.9",
                           "perplexity >= 5",
                           "perplexity <= 5",
                           "cosine >= 1.5",
                           "top-1 >= 2",
                           "false >= 1",
                           "exit 3 >= 1",
                           "echo x; true >= 1",
                           "/no/such/program >= 1"}) {
    if (*goal == '\0') continue;  // as if there was none
    expect_refusal(
        goal, {lenet_, "--recipe", "int4-g32", "--target-accuracy", goal, "--evaluate", digits()});
  }
  expect_refusal("no data", {lenet_, "--recipe", "int8"});
  expect_refusal("no recipe", {lenet_});
  expect_refusal("no model", {"--recipe", "int8"});
  expect_refusal("two recipes", {lenet_, "--recipe", "int3", "--recipe", "int5"});
  const std::vector<std::pair<const char*, const char*>> options = {
      {"--samples", "0"},
      {"--samples", "-1"},
      {"--samples", "many"},
      {"--samples", "1e9"},
      {"--samples", "9223372036854775808"},
      {"--samples", ""},
      {"--report", "x.pdf"},
      {"--report", "/no/such/x.html"},
      {"--evaluate", "x"},
      {"--dim", "x.0"},
      {"--dim", "x.0=-1"},
      {"--dim", "y.0=1"},
      {"--target", "z80"},
      {"--recipe", "int99"},
      {"--recipe", ""},
      {"--backend", "none"}};
  for (const auto& [name, value] : options)
    expect_refusal(std::string(name) + " " + value,
                   {lenet_, "--recipe", "int4-g32", "--calibrate", digits(), name, value});
  expect_refusal("sensitivity of blocks", {lenet_, "--recipe", "int4-g32", "--sensitivity"});
  io::SafeTensors one_class;
  one_class.tensors["x"] = io::read_npy(images("x.npy", {.1f, .7f, .3f}));
  one_class.tensors["labels"] = io::Array::of<int64_t>({4}, std::vector<int64_t>(4, 7));
  const std::string sevens = tests::scratch_file("sevens.safetensors").string();
  io::write_safetensors(sevens, one_class);
  expect_warning("one class", {lenet_, "--recipe", "int4-g32", "--target-accuracy", "top-1 >= 0",
                               "--evaluate", sevens});
  EXPECT_EQ(inputs_, 46);
}

/// Tokens, as a language model has them.
TEST_F(absurd_input, teaches_nothing_as_tokens) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/stories260k.pt2");
  const auto tokens = [](const std::string& name, const std::vector<int64_t>& ids) {
    io::SafeTensors file;
    const auto count = static_cast<int64_t>(ids.size());
    file.tensors["input_ids"] = io::Array::of<int64_t>({1, count}, ids);
    const std::string path = tests::scratch_file(name + ".safetensors").string();
    io::write_safetensors(path, file);
    return path;
  };
  const std::string files[] = {tokens("same", std::vector<int64_t>(64, 5)),
                               tokens("one", {3}),
                               tokens("none", {}),
                               tokens("beyond", std::vector<int64_t>(64, 512)),
                               tokens("negative", std::vector<int64_t>(64, -1)),
                               tokens("huge", {1, 2, INT64_MAX}),
                               tokens("long", std::vector<int64_t>(257, 1))};
  for (const char* recipe : {"int8", "int8-weights", "int3-g32", "int2-g32", "8da4w", "mixed"})
    for (const std::string& file : files)
      expect_refusal(recipe + (" " + file),
                     {model.string(), "--recipe", recipe, "--calibrate", file});
  EXPECT_EQ(inputs_, 42);
}

TEST_F(absurd_input, would_overwrite_its_files) {
  const auto refused = [&](const std::string& output, const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"quantize", lenet_, "-o", output};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::ostringstream out, err;
    EXPECT_NE(run(all, out, err), success) << out.str();
    return err.str();
  };
  const std::string page = tests::scratch_file("page.html").string(),
                    recipe = scratch("own.json", R"([{"match": "*", "scheme": "int4"}])"),
                    data = scratch("own.safetensors", content(digits()));
  EXPECT_THAT(refused(page, {"--recipe", "int4-g32", "--report", page}),
              testing::HasSubstr("two outputs have this name"));
  EXPECT_THAT(refused(recipe, {"--recipe", recipe}), testing::HasSubstr("this is an input file"));
  for (const std::string& given : {data, data + ":x"}) {
    EXPECT_THAT(refused(data, {"--recipe", "int4-g32", "--calibrate", given}),
                testing::HasSubstr("this is an input file"));
    EXPECT_THAT(refused(data, {"--recipe", "int4-g32", "--target-accuracy", "cosine >= 0.9",
                               "--evaluate", given}),
                testing::HasSubstr("this is an input file"));
  }
  EXPECT_EQ(content(data), content(digits()));
}

TEST_F(absurd_input, may_leave_little_of_a_model) {
  expect_warning("two bits", {lenet_, "--recipe", "int2-g32"});
  expect_warning("two bits and data", {lenet_, "--recipe", "int2-g32", "--calibrate", digits()});
  const std::string static_bits =
      scratch("bits.json", R"([{"match": "*", "scheme": {"weights": "int8-channel",
                        "activations": "int8-static", "weight-bits": 2}}])");
  expect_warning("two bits in int8", {lenet_, "--recipe", static_bits, "--calibrate", digits()});
}

/// In a language model whose experts are stacked.
TEST_F(absurd_input, may_be_experts_that_are_no_numbers) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "hf_tiny/mixtral");
  const std::filesystem::path folder = tests::scratch_file("bad_experts");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(model / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  io::SafeTensors bad = io::read_safetensors(model / "model.safetensors");
  for (auto& [name, array] : bad.tensors) {
    if (name.find("experts") == std::string::npos || array.dtype != DType::bf16) continue;
    array = array.clone();
    const uint16_t no_number = 0x7fc0;
    std::memcpy(array.bytes.get() + 2 * array.sizes.back(), &no_number, 2);
    break;
  }
  io::write_safetensors(folder / "model.safetensors", bad);
  for (const char* recipe : {"int8-weights", "int4-g32", "int3-g32", "int2-g32", "8da4w", "mixed"})
    expect_refusal(recipe, {folder.string(), "--recipe", recipe});
}

TEST_F(absurd_input, prunes_nothing) {
  for (const char* pattern :
       {"",     "0",     "1",     "1.5",   "-0.5",    "nan",    "inf",         "50%",
        "half", "4:4",   "0:4",   "5:4",   "-1:4",    "2:",     ":4",          "2:4:8",
        "4x8",  "0:4x8", "1:4x8", "0.5:4", "0.5:0x8", "0.5:4x", "0.5:4x99999", "99999999999:4"})
    expect_refusal(std::string("--sparsity ") + pattern,
                   {lenet_, "--prune", "magnitude", "--sparsity", pattern});
  for (const char* method : {"", "random", "Magnitude", "wanda,sparsegpt"})
    expect_refusal(std::string("--prune ") + method,
                   {lenet_, "--prune", method, "--calibrate", digits()});
  for (const char* pattern : {"x", "conv1.weights", "CONV*", "embedding"})
    expect_refusal(pattern, {lenet_, "--prune", "magnitude", "--prune-exclude", pattern});
  expect_refusal("all", {lenet_, "--prune", "magnitude", "--prune-exclude", "*"});
  expect_refusal("too few", {lenet_, "--prune", "magnitude", "--sparsity", "0.5:512x512"});
  expect_refusal(
      "blocks", {lenet_, "--prune", "sparsegpt", "--sparsity", "0.5:4x8", "--calibrate", digits()});
  for (const char* method : {"wanda", "sparsegpt"}) {
    expect_refusal("no data", {lenet_, "--prune", method});
    for (const std::string& data : {std::string("none.npy"), images("nan.npy", {NAN}),
                                    images("same.npy", {.5f}), images("huge.npy", {3e38f, -3e38f})})
      expect_refusal(method + (" " + data), {lenet_, "--prune", method, "--calibrate", data});
  }
  expect_refusal("data for nothing", {lenet_, "--prune", "magnitude", "--calibrate", digits()});
  expect_refusal("pattern alone", {lenet_, "--recipe", "int4-g32", "--sparsity", "2:4"});
  expect_refusal("exclusion alone", {lenet_, "--recipe", "int4-g32", "--prune-exclude", "fc1*"});
  expect_refusal("goal alone", {lenet_, "--prune", "magnitude", "--target-accuracy",
                                "cosine >= 0.9", "--evaluate", digits()});
  expect_refusal("no page", {lenet_, "--prune", "magnitude", "--report", "x.pdf"});
  // the whole model meets the goal, and the pruned one does not
  expect_refusal("goal",
                 {lenet_, "--prune", "magnitude", "--sparsity", "0.9", "--recipe", "int8-weights",
                  "--target-accuracy", "cosine >= 0.9999", "--evaluate", digits()});
  expect_warning("too much", {lenet_, "--prune", "magnitude", "--sparsity", "0.95"});
  expect_warning("zeros are lost", {lenet_, "--prune", "magnitude", "--recipe", "int4-g32"});
  EXPECT_EQ(inputs_, 53);
}

TEST_F(absurd_input, may_be_a_damaged_model) {
  const std::string whole = content(lenet_);
  for (int part = 0; part < 20; ++part)
    expect_refusal(
        "cut", {scratch("cut.pt2", whole.substr(0, whole.size() * static_cast<size_t>(part) / 20)),
                "--recipe", "int8-weights"});
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "pt2/broken");
  int damaged = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".pt2") continue;
    SCOPED_TRACE(file.path().filename());
    const Outcome o = quantize({file.path().string(), "--recipe", "int8-weights"});
    ++damaged;
    if (o.code == success) continue;  // what is damaged does not matter: see its README
    EXPECT_GT(o.err.size(), 20u);
    EXPECT_FALSE(std::filesystem::exists(program_));
  }
  EXPECT_GT(damaged, 50);
}

/// A language model with other numbers in one weight.
TEST_F(absurd_input, may_be_weights_that_are_no_numbers) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "hf_tiny/qwen2");
  const std::filesystem::path folder = tests::scratch_file("bad_weights");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(model / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  const io::SafeTensors good = io::read_safetensors(model / "model.safetensors");
  int tried = 0;
  for (const auto& [name, array] : good.tensors) {
    if (array.dtype != DType::f16 || array.sizes.size() != 2 || tried == 12) continue;
    io::SafeTensors bad = good;
    bad.tensors[name] = array.clone();
    const uint16_t infinite = 0x7c00, no_number = 0x7e00;
    std::memcpy(bad.tensors[name].bytes.get() + 2 * array.sizes[1],
                ++tried % 2 == 0 ? &infinite : &no_number, 2);
    io::write_safetensors(folder / "model.safetensors", bad);
    expect_refusal(name, {folder.string(), "--recipe", "int8-weights"});
  }
  EXPECT_GT(tried, 5);
}

/// Their scales are zero in every format. The report counts the rows.
TEST_F(absurd_input, may_be_weights_of_zeros) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "hf_tiny/qwen2");
  const std::filesystem::path folder = tests::scratch_file("zeros");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(model / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  io::SafeTensors zeros = io::read_safetensors(model / "model.safetensors");
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  zeros.tensors[name] = zeros.at(name).clone();
  std::memset(zeros.tensors[name].bytes.get(), 0, zeros.at(name).size_bytes());
  io::write_safetensors(folder / "model.safetensors", zeros);
  std::vector<std::string> recipes = {"int8-weights", "int8-dynamic", "int4-g32", "int3-g32",
                                      "int2-g32",     "8da4w",        "mixed"};
  for (const char* format :
       {"q5_0", "q5_1", "nf4", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"})
    recipes.push_back(scratch(std::string(format) + ".json",
                              R"([{"match": "*", "scheme": ")" + std::string(format) + "\"}]"));
  for (const std::string& recipe : recipes) {
    SCOPED_TRACE(recipe);
    const Outcome o = quantize({folder.string(), "--recipe", recipe});
    EXPECT_EQ(o.code, success) << o.err;
    EXPECT_THAT(o.out, testing::HasSubstr("rows of zeros"));
    EXPECT_THAT(o.out, testing::Not(testing::HasSubstr("nan")));
  }
}

TEST_F(absurd_input, may_be_worth_a_note) {
  const std::string file =
      scratch("little.json",
              R"([{"match": "*", "scheme": {"weights": ["q2_k", "q4_0"], "method": "nearest"}}])");
  const Outcome o = quantize({lenet_, "--recipe", file});
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, testing::HasSubstr("dB"));
  const std::string unused =
      scratch("unused.json",
              R"([{"match": "fc1*", "scheme": "int4"}, {"match": "nothing*", "scheme": "int8"}])");
  EXPECT_THAT(quantize({lenet_, "--recipe", unused}).out,
              testing::HasSubstr("the rule for \"nothing*\" decided about no weight"));
}

}  // namespace
}  // namespace taper::cli
